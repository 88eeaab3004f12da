package gates

import (
	"encoding/json"
	"fmt"
	"strings"

	"testing"

	"github.com/stretchr/testify/require"
)

func agent(input string) Call { return Call{Tool: "Agent", Input: json.RawMessage(input)} }

const typeReason = `Delegation is only available for "joke-finder"/"joke-critic" in this session, not "%s" - do the task directly with your own tools instead of spawning another agent for it.`

var jokes = []string{"joke-finder", "joke-critic"}

func TestTypeAllowsExactlyTheDeclaredTypes(t *testing.T) {
	for _, c := range []struct {
		name, tool, input string
		named             string // the type the reason names; "" = passes
	}{
		{"declared", "Agent", `{"subagent_type":"joke-finder"}`, ""},
		{"declared second", "Agent", `{"subagent_type":"joke-critic"}`, ""},
		{"by the old name of the tool", "Task", `{"subagent_type":"joke-finder"}`, ""},
		{"not declared", "Agent", `{"subagent_type":"general-purpose"}`, "general-purpose"},
		{"not declared, old name", "Task", `{"subagent_type":"general-purpose"}`, "general-purpose"},
		{"missing", "Agent", `{"prompt":"x"}`, "(unset)"},
		{"null", "Agent", `{"subagent_type":null}`, "(unset)"},
		{"empty", "Agent", `{"subagent_type":""}`, "(unset)"},
		{"a number", "Agent", `{"subagent_type":7}`, "(unset)"},
		{"a list", "Agent", `{"subagent_type":["joke-finder"]}`, "(unset)"},
		{"wrong case", "Agent", `{"subagent_type":"Joke-Finder"}`, "Joke-Finder"},
		{"trailing space", "Agent", `{"subagent_type":"joke-finder "}`, "joke-finder "},
		{"full-width letters", "Agent", `{"subagent_type":"ｊoke-finder"}`, "ｊoke-finder"},
		{"escaped, still the same", "Agent", `{"subagent_type":"joke\u002dfinder"}`, ""},
		{"fork", "Agent", `{"subagent_type":"fork"}`, "fork"},
		{"claude", "Agent", `{"subagent_type":"claude"}`, "claude"},
		{"a plugin's", "Agent", `{"subagent_type":"plugin:joke-finder"}`, "plugin:joke-finder"},
		{"the last of two counts", "Agent", `{"subagent_type":"joke-finder","subagent_type":"fork"}`, "fork"},
		{"another key's case is another key", "Agent", `{"Subagent_Type":"joke-finder"}`, "(unset)"},
		{"no input", "Agent", ``, "(unset)"},
		{"input is no object", "Agent", `["joke-finder"]`, "(unset)"},
		{"a workflow", "Workflow", `{"script":"agent('x')"}`, "workflow-subagent"},
		{"a tool that spawns nothing", "Read", `{"subagent_type":"fork"}`, ""},
		{"Oh My Pi, flat", "task", `{"agent":"joke-finder","task":"x"}`, ""},
		{"Oh My Pi, flat, not declared", "task", `{"agent":"task","task":"x"}`, "task"},
		{"Oh My Pi, batch", "task", `{"context":"c","tasks":[{"agent":"joke-finder"},{"agent":"joke-critic"}]}`, ""},
		{"Oh My Pi, one of a batch", "task", `{"tasks":[{"agent":"joke-finder"},{"agent":"scout"}]}`, "scout"},
		{"Oh My Pi, one of a batch without a type", "task", `{"tasks":[{"agent":"joke-finder"},{"task":"x"}]}`, "(unset)"},
		{"Oh My Pi, an empty batch", "task", `{"tasks":[]}`, "(unset)"},
		{"Oh My Pi, a batch that is no list", "task", `{"tasks":{"agent":"joke-finder"}}`, "(unset)"},
		{"Oh My Pi, a batch that is a text beside a declared type", "task", `{"agent":"joke-finder","tasks":"x"}`, "(unset)"},
		{"Oh My Pi, a batch nested deeper than encoding/json goes", "task",
			`{"agent":"joke-finder","tasks":[{"agent":"scout","q":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}]}`, "scout"},
		{"Oh My Pi, both forms at once", "task", `{"agent":"scout","tasks":[{"agent":"joke-finder"}]}`, "scout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, thread := range []string{"", "a17a27154ebb0dfe8"} { // from any thread
				v := Type(jokes)(Call{Tool: c.tool, Input: json.RawMessage(c.input), AgentID: thread, AgentType: "joke-finder"})
				if c.named == "" {
					require.Equal(t, Verdict{}, v)
					continue
				}
				require.Equal(t, Verdict{Outcome: Deny, Code: CodeType, Reason: fmt.Sprintf(typeReason, c.named)}, v)
			}
		})
	}
	t.Run("a declared plugin type", func(t *testing.T) {
		require.Equal(t, Pass, Type([]string{"plugin:name"})(agent(`{"subagent_type":"plugin:name"}`)).Outcome)
	})
	t.Run("a declared workflow", func(t *testing.T) {
		require.Equal(t, Pass, Type([]string{WorkflowType})(Call{Tool: "Workflow"}).Outcome)
	})
	t.Run("an empty list denies all", func(t *testing.T) {
		for _, input := range []string{`{}`, `{"subagent_type":""}`, `{"subagent_type":"joke-finder"}`} {
			require.Equal(t, Deny, Type(nil)(agent(input)).Outcome)
		}
	})
	t.Run("an empty name in the list allows nothing", func(t *testing.T) {
		require.Equal(t, Deny, Type([]string{""})(agent(`{"subagent_type":""}`)).Outcome)
	})
}

func TestCallerJudgesCallsOfSubagentsByTheirType(t *testing.T) {
	for _, c := range []struct {
		name string
		call Call
		deny bool
	}{
		{"the main thread", Call{Tool: "Bash"}, false},
		{"the main thread of a session started as an agent", Call{Tool: "Bash", AgentType: "general-purpose"}, false},
		{"a declared subagent", Call{Tool: "Bash", AgentID: "a1", AgentType: "joke-finder"}, false},
		{"an undeclared one", Call{Tool: "Bash", AgentID: "a1", AgentType: "general-purpose"}, true},
		{"an undeclared one that only reads", Call{Tool: "Read", AgentID: "a1", AgentType: "general-purpose"}, true},
		{"wrong case", Call{Tool: "Bash", AgentID: "a1", AgentType: "Joke-Finder"}, true},
		{"a workflow's agent", Call{Tool: "Bash", AgentID: "a1", AgentType: WorkflowType}, true},
		{"a subagent without a type", Call{Tool: "Bash", AgentID: "a1"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Caller(jokes)(c.call)
			require.Equal(t, c.deny, v.Outcome == Deny)
			if c.deny {
				require.Equal(t, CodeCaller, v.Code)
				require.Contains(t, v.Reason, `"`+c.call.AgentType+`"`)
			}
		})
	}
	require.Equal(t, Deny, Caller(nil)(Call{AgentID: "a", AgentType: "x"}).Outcome, "an empty list denies all")
}

func TestBashIsForSubagentsOnly(t *testing.T) {
	const reason = "Bash is only available to dedicated subagents, not the main agent directly — use the Agent tool to delegate to one of them instead."
	for _, c := range []struct {
		name string
		call Call
		deny bool
	}{
		{"Bash on the main thread", Call{Tool: "Bash"}, true},
		{"PowerShell", Call{Tool: "PowerShell"}, true},
		{"Monitor", Call{Tool: "Monitor"}, true},
		{"Oh My Pi's", Call{Tool: "bash"}, true},
		{"an empty agent id is the main thread", Call{Tool: "Bash", AgentID: "", AgentType: "joke-finder"}, true},
		{"a type without an id is the main thread", Call{Tool: "Bash", AgentType: "joke-finder"}, true},
		{"inside a subagent", Call{Tool: "Bash", AgentID: "a1", AgentType: "joke-finder"}, false},
		{"inside a subagent without a type", Call{Tool: "Bash", AgentID: "a1"}, false},
		{"another tool", Call{Tool: "Read"}, false},
		{"names are exact", Call{Tool: "BASH"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Bash()(c.call)
			if !c.deny {
				require.Equal(t, Verdict{}, v)
				return
			}
			require.Equal(t, Verdict{Outcome: Deny, Code: CodeBash, Reason: reason}, v)
		})
	}
}

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

func TestGuard(t *testing.T) {
	guard := Guard(Protected{StateDir: "/state", Ledger: "/elsewhere/ledger.db", Spec: "/etc/spec.json"})
	for _, c := range []struct {
		name string
		call Call
		code string
	}{
		{"into the state directory", Call{Tool: "Write", Writes: []FileWrite{{Path: "/state/ledger.db"}}}, CodeGuardState},
		{"deep in it", Call{Tool: "Edit", Writes: []FileWrite{{Path: "/state/trekresearch-loop-scope/s.json"}}}, CodeGuardState},
		{"the directory itself", Call{Tool: "MultiEdit", Writes: []FileWrite{{Path: "/state"}}}, CodeGuardState},
		{"a notebook there", Call{Tool: "NotebookEdit", Writes: []FileWrite{{Path: "/state/x.ipynb"}}}, CodeGuardState},
		{"the ledger elsewhere", Call{Tool: "Write", Writes: []FileWrite{{Path: "/elsewhere/ledger.db"}}}, CodeGuardState},
		{"beside it", Call{Tool: "Write", Writes: []FileWrite{{Path: "/state-2/x"}}}, ""},
		{"above it", Call{Tool: "Write", Writes: []FileWrite{{Path: "/x"}}}, ""},
		{"a name that begins with dots", Call{Tool: "Write", Writes: []FileWrite{{Path: "/state/..x"}}}, CodeGuardState},
		{"the spec", Call{Tool: "Write", Writes: []FileWrite{{Path: "/etc/spec.json"}}}, CodeGuardSpec},
		{"beside the spec", Call{Tool: "Write", Writes: []FileWrite{{Path: "/etc/spec.json.bak"}}}, ""},
		{"settings with the hook", Call{Tool: "Edit", Writes: []FileWrite{{Path: "/p/.claude/settings.json", HoldsHook: true}}}, CodeGuardSettings},
		{"settings without", Call{Tool: "Edit", Writes: []FileWrite{{Path: "/p/.claude/settings.json"}}}, ""},
		{"reading", Call{Tool: "Read", Writes: []FileWrite{{Path: "/state/ledger.db"}}}, ""},
		{"a write without a path", Call{Tool: "Write"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := guard(c.call)
			require.Equal(t, c.code, v.Code)
			want := Deny
			switch c.code {
			case "":
				want = Pass
			case CodeGuardSettings:
				want = Ask
			}
			require.Equal(t, want, v.Outcome)
		})
	}
	require.Equal(t, Verdict{}, Guard(Protected{})(Call{Tool: "Write", Writes: []FileWrite{{Path: "/x"}}}), "nothing to protect")
}

func TestGuardLooksAtEveryPathOfACall(t *testing.T) {
	v := Guard(Protected{StateDir: "/state"})(Call{Tool: "edit", Writes: []FileWrite{{Path: "/a"}, {Path: "/b", HoldsHook: true}, {Path: "/state/x"}}})
	require.Equal(t, CodeGuardState, v.Code)
}

func TestWritePathsAreWhatTheToolNames(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        []string
	}{
		{"Write", `{"file_path":"/a","content":"x"}`, []string{"/a"}},
		{"Edit", `{"file_path":"/a"}`, []string{"/a"}},
		{"MultiEdit", `{"file_path":"/a"}`, []string{"/a"}},
		{"NotebookEdit", `{"notebook_path":"/n","file_path":"/a"}`, []string{"/n"}},
		{"Write", `{"file_path":7}`, nil},
		{"Read", `{"file_path":"/a"}`, nil},
		{"Write", `{"file_path":"/a","file_path":"/b"}`, []string{"/b"}},
		{"write", `{"path":"a","content":"x"}`, []string{"a"}},
		{"edit", `{"path":"a"}`, []string{"a"}},
		{"edit", `{"paths":["a","b",7]}`, []string{"a", "b"}},
		{"ast_edit", `{"paths":["a"],"path":"c"}`, []string{"c", "a"}},
	} {
		require.Equal(t, c.want, WritePaths(Call{Tool: c.tool, Input: json.RawMessage(c.input)}), "%v", c)
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
		require.Equal(t, `joke-finder`, fields(v.Input).text("subagent_type"))
		delete(was, backgroundKey)
		delete(is, backgroundKey)
		require.Equal(t, was, is)
	})
}
