package probe

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// probed is a client whose hook was asked, inside a subagent, about the words, of which those in ran were made.
func probed(completed bool, words, ran []string, denied ...string) observed {
	o := observed{outcome: outcome{Completed: completed}}
	add := func(c call, word string) {
		c.Line, c.Tool, c.UseID, c.AgentID = len(o.calls)+1, "Bash", "t-"+word, "a1"
		c.Input, _ = json.Marshal(map[string]string{"command": "echo capgate-probe-" + word})
		o.calls = append(o.calls, c)
	}
	for _, word := range words {
		add(call{Event: "PreToolUse"}, word)
	}
	for _, word := range ran {
		add(call{Event: "PostToolUse", Response: json.RawMessage(`{"stdout":"something else"}`)}, word)
	}
	for _, word := range denied {
		o.outcome.Denials = append(o.outcome.Denials, Denial{UseID: "t-" + word})
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
		{"blocked, and the control ran", probed(true, both, pass), Yes, Fires},
		{"blocked, by the client's word", probed(true, both, none, wordExit2), Yes, Fires},
		{"blocked, by the client's word, before it failed", probed(false, both, none, wordExit2), Yes, Fires},
		{"it ran", probed(true, both, both), No, DoesNotFire},
		{"it ran, whatever the client says", probed(true, both, both, wordExit2), No, DoesNotFire},
		{"no end of anything is reported", probed(true, both, none), NotObserved, DoesNotFire},
		{"the client failed on the way", probed(false, both, pass), NotObserved, DoesNotFire},
		{"the command was not run", probed(true, pass, pass), NotObserved, DoesNotFire},
		{"nothing at all", probed(true, none, none), NotObserved, DoesNotFire},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers, result := tt.seen.evaluate("claude")
			assert.Equal(t, QuestionExit2, answers[1].Question)
			assert.Equal(t, tt.want, answers[1].Answer, answers[1].Why)
			assert.Equal(t, tt.result, result)
		})
	}
}

func TestProbeRewriteIsJudgedByTheOutput(t *testing.T) {
	words := []string{wordRewrite}
	for output, want := range map[string]string{
		`{"stdout":"capgate-probe-rewritten"}`: Yes,
		`{"stdout":"capgate-probe-rewrite"}`:   No,
		`{"stdout":""}`:                        NotObserved,
	} {
		o := probed(true, words, words)
		o.calls[1].Response = json.RawMessage(output)
		assert.Equal(t, want, o.rewrites().Answer, output)
	}
	assert.Equal(t, NotObserved, probed(true, words, nil).rewrites().Answer)
}

func TestProbeSpawnNeedsTheClientsWord(t *testing.T) {
	o := probed(true, []string{wordPass}, []string{wordPass})
	o.calls = append(o.calls, call{Line: 3, Tool: "task", UseID: "t-spawn", Input: json.RawMessage(`{"task":"capgate-probe-spawn"}`)})
	assert.Equal(t, NotObserved, o.blocks(QuestionSpawn, wordSpawn, false).Answer)
	o.outcome.Denials = []Denial{{UseID: "t-spawn"}}
	assert.Equal(t, Yes, o.blocks(QuestionSpawn, wordSpawn, false).Answer)
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

func TestProbeEnvironmentIsNotThatOfASession(t *testing.T) {
	assert.Equal(t, []string{"HOME=/h", "ANTHROPIC_API_KEY=k", "CAPGATE_DISABLE=1"},
		environment([]string{"HOME=/h", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=s", "ANTHROPIC_API_KEY=k", "CAPGATE_DISABLE=0"}))
}
