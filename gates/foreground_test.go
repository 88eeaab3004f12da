package gates

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForegroundChangesOneMemberAndNoOtherByte(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"missing", `{"subagent_type":"joke-finder"}`, `{"subagent_type":"joke-finder","run_in_background":false}`},
		{"true", `{"run_in_background":true,"subagent_type":"joke-finder"}`, `{"run_in_background":false,"subagent_type":"joke-finder"}`},
		{"the text false", `{"run_in_background":"false","subagent_type":"joke-finder"}`, `{"run_in_background":false,"subagent_type":"joke-finder"}`},
		{"null", `{"subagent_type":"joke-finder","run_in_background":null}`, `{"subagent_type":"joke-finder","run_in_background":false}`},
		{"0", `{"subagent_type":"joke-finder","run_in_background":0}`, `{"subagent_type":"joke-finder","run_in_background":false}`},
		{"an object", `{"subagent_type":"joke-finder","run_in_background":{"a":[1]}}`, `{"subagent_type":"joke-finder","run_in_background":false}`},
		{"white space, order, unknown keys, big numbers, escapes, other scripts",
			"{ \"zz\" : 1152921504606846976 ,\n\t\"prompt\":\"\\u00fc ü 🙂 \\ud83d\\ude42 \\/ \\u003c<\", \"subagent_type\":\"joke-finder\" , \"a\":[1.0,1e400, -0 ] }",
			"{ \"zz\" : 1152921504606846976 ,\n\t\"prompt\":\"\\u00fc ü 🙂 \\ud83d\\ude42 \\/ \\u003c<\", \"subagent_type\":\"joke-finder\" , \"a\":[1.0,1e400, -0 ] ,\"run_in_background\":false}"},
		{"an escaped name is the same member", `{"subagent_type":"joke-finder","run_in\u005fbackground":true}`, `{"subagent_type":"joke-finder","run_in\u005fbackground":false}`},
		{"each of two", `{"run_in_background":false,"subagent_type":"joke-finder","run_in_background":true}`, `{"run_in_background":false,"subagent_type":"joke-finder","run_in_background":false}`},
		{"the same name deeper down stays", `{"subagent_type":"joke-finder","x":{"run_in_background":true}}`, `{"subagent_type":"joke-finder","x":{"run_in_background":true},"run_in_background":false}`},
		{"a brace in the last text", `{"subagent_type":"joke-finder","prompt":"}"}` + " \n", `{"subagent_type":"joke-finder","prompt":"}","run_in_background":false}` + " \n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, tool := range []string{"Agent", "Task"} {
				v := Foreground(jokes, ForegroundRewrite)(Call{Tool: tool, Input: json.RawMessage(c.in)})
				require.Equal(t, Rewrite, v.Outcome)
				require.Equal(t, CodeForeground, v.Code)
				require.Equal(t, c.out, string(v.Input))
				require.True(t, json.Valid(v.Input))
			}
		})
	}
}

func TestForegroundLeavesAlone(t *testing.T) {
	for name, call := range map[string]Call{
		"exactly false":          agent(`{"subagent_type":"joke-finder","run_in_background":false}`),
		"a type not declared":    agent(`{"subagent_type":"fork"}`),
		"no type":                agent(`{}`),
		"a workflow":             {Tool: "Workflow", Input: json.RawMessage(`{"subagent_type":"joke-finder"}`)},
		"Oh My Pi's task":        {Tool: "task", Input: json.RawMessage(`{"subagent_type":"joke-finder"}`)},
		"an input of no object":  agent(`[]`),
		"false as the last word": agent(`{"run_in_background":true,"subagent_type":"joke-finder","run_in_background":false}`),
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, Verdict{}, Foreground(jokes, ForegroundRewrite)(call))
			require.Equal(t, Verdict{}, Foreground(jokes, ForegroundRequire)(call))
		})
	}
	require.Equal(t, Verdict{}, Foreground(jokes, ForegroundOff)(agent(`{"subagent_type":"joke-finder"}`)), "switched off")
}

// Interactive sessions ignore the member without a word (measured), so requiring the foreground must deny there.
func TestForegroundRequiredDeniesWhereTheClientWouldNotListen(t *testing.T) {
	for _, c := range []struct {
		attended     Presence
		noBackground bool
		input        string
		want         Outcome
	}{
		{Attended, false, `{"subagent_type":"joke-finder"}`, Deny},
		{Attended, false, `{"subagent_type":"joke-finder","run_in_background":false}`, Deny},
		{Attended, true, `{"subagent_type":"joke-finder"}`, Rewrite},
		{Attended, true, `{"subagent_type":"joke-finder","run_in_background":false}`, Pass},
		{Absent, false, `{"subagent_type":"joke-finder"}`, Rewrite},
		{Unknown, false, `{"subagent_type":"joke-finder"}`, Rewrite},
	} {
		call := agent(c.input)
		call.Attended, call.NoBackground = c.attended, c.noBackground
		v := Foreground(jokes, ForegroundRequire)(call)
		require.Equal(t, c.want, v.Outcome, "%+v", c)
		if c.want == Deny {
			require.Equal(t, CodeForegroundRequired, v.Code)
			require.Contains(t, v.Reason, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1")
		}
	}
}

// The invariant of every rewrite: one member differs, nothing else.
func FuzzForeground(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"subagent_type":"joke-finder"}`, `{"subagent_type":"joke-finder","run_in_background":"\u0041"}`,
		`{"a":{"run_in_background":1},"subagent_type":"joke-finder","run_in_background":[]}`, ` {"subagent_type":"joke-finder" } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		v := Foreground(jokes, ForegroundRewrite)(Call{Tool: "Agent", Input: input})
		if v.Outcome == Pass {
			return
		}
		require.Equal(t, Rewrite, v.Outcome)
		was, is := map[string]string{}, map[string]string{}
		require.NoError(t, Members(input, func(k string, val []byte) { was[k] = string(val) }))
		require.NoError(t, Members(v.Input, func(k string, val []byte) { is[k] = string(val) }))
		require.Equal(t, "false", is[backgroundKey])
		require.Equal(t, `joke-finder`, fields(v.Input, "subagent_type").text("subagent_type"))
		delete(was, backgroundKey)
		delete(is, backgroundKey)
		require.Equal(t, was, is)
	})
}

func TestAMemberIsAddedToAnEmptyObject(t *testing.T) {
	require.Equal(t, `{"a":1}`, string(withMember([]byte(`{}`), "a", "1")))
	require.Equal(t, ` { "a":1} `, string(withMember([]byte(` { } `), "a", "1")))
}
