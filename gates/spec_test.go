package gates

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const jokeSpec = `{"subagents": {"joke-finder": {"tools": ["Bash", "Read"]}, "joke-critic": {"tools": []}}, "foreground": "require", "admission": "ask"}`

func TestParseSpec(t *testing.T) {
	s, err := ParseSpec([]byte(jokeSpec))
	require.NoError(t, err)
	require.Equal(t, Spec{
		Subagents:  []Subagent{{Type: "joke-finder", Tools: []string{"Bash", "Read"}}, {Type: "joke-critic", Tools: []string{}}},
		Foreground: ForegroundRequire, Admission: AdmissionAsk,
	}, s)
	require.Equal(t, []string{"joke-finder", "joke-critic"}, s.Allowed())

	s, err = ParseSpec([]byte(`{"subagents":{"b":{},"a":{}}}`))
	require.NoError(t, err)
	require.Equal(t, Spec{
		Subagents:  []Subagent{{Type: "b", Inherits: true}, {Type: "a", Inherits: true}}, // the file's order
		Foreground: ForegroundRewrite, Admission: AdmissionOff,
	}, s)
	s, err = ParseSpec([]byte(`{"subagents":{}}`))
	require.NoError(t, err)
	require.Empty(t, s.Allowed(), "no subagent at all is a spec, too")
}

func TestAWrongSpecNamesTheKeyAndTheFix(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", ``, "cut off"},
		{"not JSON", `subagents: []`, "byte 0"},
		{"a list", `[]`, "'{' was expected"},
		{"no subagents", `{}`, `no "subagents": add`},
		{"unknown key", `{"subagents":{},"subAgents":{}}`, `unknown key "subAgents": keys are subagents, foreground and admission`},
		{"repeated key", `{"subagents":{},"subagents":{"a":{}}}`, `key "subagents" stands twice`},
		{"repeated type", `{"subagents":{"a":{},"a":{}}}`, `subagents: key "a" stands twice`},
		{"subagents is a list", `{"subagents":["a"]}`, "subagents: not a JSON object"},
		{"a subagent is a list", `{"subagents":{"a":["Bash"]}}`, `subagents."a": not a JSON object`},
		{"unknown key of a subagent", `{"subagents":{"a":{"tool":["Bash"]}}}`, `subagents."a": unknown key "tool": the only key is tools`},
		{"tools is a text", `{"subagents":{"a":{"tools":"Bash"}}}`, `subagents."a".tools must be a list of tool names`},
		{"tools is null", `{"subagents":{"a":{"tools":null}}}`, `subagents."a".tools must be a list`},
		{"a tool is a number", `{"subagents":{"a":{"tools":["Bash",1]}}}`, `subagents."a".tools must be a list`},
		{"an empty tool", `{"subagents":{"a":{"tools":[""]}}}`, `subagents."a".tools must be a list`},
		{"an empty type", `{"subagents":{"":{}}}`, `"" cannot be a type`},
		{"a type with a space", `{"subagents":{"a ":{}}}`, `"a " cannot be a type`},
		{"a type that hides something", `{"subagents":{"a\u202e":{}}}`, `cannot be a type`},
		{"wrong foreground", `{"subagents":{},"foreground":"on"}`, `foreground is "on": write "rewrite" or "require" or "off"`},
		{"foreground is false", `{"subagents":{},"foreground":false}`, `foreground is false: write`},
		{"wrong admission", `{"subagents":{},"admission":"Ask"}`, `admission is "Ask": write "off" or "ask" or "deny"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseSpec([]byte(c.text))
			require.ErrorIs(t, err, ErrSpec)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestSessionToolsHaveTheShellOnlyWhereASubagentNeedsIt(t *testing.T) {
	for text, want := range map[string][]string{
		`{"subagents":{"a":{"tools":["Read"]}}}`:                        {"Agent"},
		`{"subagents":{"a":{"tools":[]}}}`:                              {"Agent"},
		`{"subagents":{}}`:                                              {"Agent"},
		`{"subagents":{"a":{"tools":["Read"]},"b":{"tools":["Bash"]}}}`: {"Agent", "Bash"},
		`{"subagents":{"a":{"tools":["Read"]},"b":{}}}`:                 {"Agent", "Bash"},
		`{"subagents":{"a":{"tools":["bash"]}}}`:                        {"Agent"},
		`{"subagents":{"a":{"tools":["Bash(git:*)"]}}}`:                 {"Agent", "Bash"},
		`{"subagents":{"a":{"tools":["Bashful"]}}}`:                     {"Agent"},
	} {
		s, err := ParseSpec([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, s.SessionTools(), text)
	}
}

func TestASubagentOfWhoseToolsTheSessionHasNoneCannotStart(t *testing.T) {
	s, err := ParseSpec([]byte(`{"subagents":{"a":{"tools":["Read","Bash(git:*)","Edit"]},"b":{"tools":["Read"]},"c":{},"d":{"tools":[]}}}`))
	require.NoError(t, err)
	for _, c := range []struct {
		session []string
		stuck   []string
		lacking map[string][]string
	}{
		{[]string{"Agent", "Bash", "Read", "Edit"}, nil, map[string][]string{}},
		{[]string{"Agent", "Bash"}, []string{"b"}, map[string][]string{"a": {"Read", "Edit"}, "b": {"Read"}}},
		{[]string{"Agent"}, []string{"a", "b"}, map[string][]string{"a": {"Read", "Bash(git:*)", "Edit"}, "b": {"Read"}}},
		{[]string{"Read"}, nil, map[string][]string{"a": {"Bash(git:*)", "Edit"}}},
	} {
		require.Equal(t, c.stuck, s.Unstartable(c.session), c.session)
		require.Equal(t, c.lacking, s.Lacking(c.session), c.session)
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(jokeSpec))
	f.Add([]byte(`{"subagents":{"a":{}},"foreground":"off"}`))
	f.Add([]byte(`{"subagents":{"a":{"tools":["Bash",{}]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSpec(text)
		if err != nil {
			require.ErrorIs(t, err, ErrSpec)
			require.Empty(t, s.Allowed())
			return
		}
		seen := map[string]bool{}
		for _, a := range s.Subagents {
			require.False(t, seen[a.Type])
			seen[a.Type] = true
			require.Equal(t, strings.TrimSpace(a.Type), a.Type)
			require.NotEmpty(t, a.Type)
		}
		require.Contains(t, []ForegroundMode{ForegroundRewrite, ForegroundRequire, ForegroundOff}, s.Foreground)
		require.Contains(t, []AdmissionMode{AdmissionOff, AdmissionAsk, AdmissionDeny}, s.Admission)
	})
}
