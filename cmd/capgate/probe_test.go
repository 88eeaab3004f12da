package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// probed is a client whose hook was asked, inside a subagent, about the words, of which those in ran were made.
func probed(completed bool, words, ran []string, denied ...string) observed {
	o := observed{outcome: clientOutcome{Completed: completed}}
	add := func(c probeCall, word string) {
		c.Line, c.Tool, c.UseID, c.AgentID = len(o.calls)+1, "Bash", "t-"+word, "a1"
		c.Input, _ = json.Marshal(map[string]string{"command": "echo capgate-probe-" + word})
		o.calls = append(o.calls, c)
	}
	for _, word := range words {
		add(probeCall{Event: "PreToolUse"}, word)
	}
	for _, word := range ran {
		add(probeCall{Event: "PostToolUse", Response: json.RawMessage(`{"stdout":"something else"}`)}, word)
	}
	for _, word := range denied {
		o.outcome.Denials = append(o.outcome.Denials, probeDenial{UseID: "t-" + word})
	}
	return o
}

// TestProbeNeverGuesses: without evidence for it, nothing is answered yes or no.
func TestProbeNeverGuesses(t *testing.T) {
	both, pass, none := []string{wordExit2, wordPass}, []string{wordPass}, []string(nil)
	for _, tt := range []struct {
		name   string
		seen   observed
		want   string
		result string
	}{
		{"blocked, and the control ran", probed(true, both, pass), answerYes, probeFires},
		{"blocked, by the client's word", probed(true, both, none, wordExit2), answerYes, probeFires},
		{"blocked, by the client's word, before it failed", probed(false, both, none, wordExit2), answerYes, probeFires},
		{"it ran", probed(true, both, both), answerNo, probeNot},
		{"it ran, whatever the client says", probed(true, both, both, wordExit2), answerNo, probeNot},
		{"no end of anything is reported", probed(true, both, none), answerNotObserved, probeNot},
		{"the client failed on the way", probed(false, both, pass), answerNotObserved, probeNot},
		{"the command was not run", probed(true, pass, pass), answerNotObserved, probeNot},
		{"nothing at all", probed(true, none, none), answerNotObserved, probeNot},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers, result := tt.seen.evaluate("claude")
			assert.Equal(t, questionExit2, answers[1].Question)
			assert.Equal(t, tt.want, answers[1].Answer, answers[1].Why)
			assert.Equal(t, tt.result, result)
		})
	}
}

func TestProbeRewriteIsJudgedByTheOutput(t *testing.T) {
	words := []string{wordRewrite}
	for output, want := range map[string]string{
		`{"stdout":"capgate-probe-rewritten"}`: answerYes,
		`{"stdout":"capgate-probe-rewrite"}`:   answerNo,
		`{"stdout":""}`:                        answerNotObserved,
	} {
		o := probed(true, words, words)
		o.calls[1].Response = json.RawMessage(output)
		assert.Equal(t, want, o.rewrites().Answer, output)
	}
	assert.Equal(t, answerNotObserved, probed(true, words, nil).rewrites().Answer)
}

func TestProbeSpawnNeedsTheClientsWord(t *testing.T) {
	o := probed(true, []string{wordPass}, []string{wordPass})
	o.calls = append(o.calls, probeCall{Line: 3, Tool: "task", UseID: "t-spawn", Input: json.RawMessage(`{"task":"capgate-probe-spawn"}`)})
	assert.Equal(t, answerNotObserved, o.blocks(questionSpawn, wordSpawn, false).Answer)
	o.outcome.Denials = []probeDenial{{UseID: "t-spawn"}}
	assert.Equal(t, answerYes, o.blocks(questionSpawn, wordSpawn, false).Answer)
}

// TestProbeEvidenceIsRedacted: no paths of the person's, and nothing of what the model did beside the probe's steps.
func TestProbeEvidenceIsRedacted(t *testing.T) {
	for payload, want := range map[string]string{
		`{"tool_name":"Bash","tool_input":{"command":"echo capgate-probe-pass"},"transcript_path":"p","cwd":"p","scratchpad_dir":"p"}`: `{"tool_name":"Bash","tool_input":{"command":"echo capgate-probe-pass"}}`,
		`{"tool_name":"Bash","tool_input":{"command":"cat diary"},"tool_response":{"stdout":"dear"}}`:                                  `{"tool_name":"Bash"}`,
		`{"tool_name":"Agent","tool_input":{"prompt":"capgate-probe"},"tool_response":{"agentTranscriptPath":"p","outputFile":"p"}}`:   `{"tool_name":"Agent","tool_input":{"prompt":"capgate-probe"},"tool_response":{}}`,
		`["transcript_path",{"transcript_path":"p"}]`: `["transcript_path",{}]`,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(payload), &v))
		got, err := json.Marshal(redacted(v, parseCall([]byte(payload)).ours()))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got))
	}
}

func TestProbeOutputIsBounded(t *testing.T) {
	var b bounded
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 40 {
		n, err := b.Write(chunk)
		require.NoError(t, err)
		require.Equal(t, len(chunk), n)
	}
	_, _ = b.Write([]byte("the result"))
	assert.LessOrEqual(t, b.Len(), 2*maxClientOutput+len(chunk))
	assert.True(t, bytes.HasSuffix(b.Bytes(), []byte("the result")))
}

func TestProbeEnvironmentIsNotThatOfASession(t *testing.T) {
	assert.Equal(t, []string{"HOME=/h", "ANTHROPIC_API_KEY=k", "CAPGATE_DISABLE=1"},
		probeEnvironment([]string{"HOME=/h", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=s", "ANTHROPIC_API_KEY=k", "CAPGATE_DISABLE=0"}))
}
