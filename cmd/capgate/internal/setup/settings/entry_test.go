package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAnEntryOfOursSays(t *testing.T) {
	require.Equal(t, Hook{Type: "command", Command: "/b/capgate-hook", Args: []string{"a"}, Timeout: 10, OnFailure: "block"}, Entry("PreToolUse", "/b/capgate-hook", []string{"a"}))
	require.Equal(t, Hook{Type: "command", Command: "c", Timeout: 10}, Entry("SessionEnd", "c", nil))
}

// An entry of ours is known by its program, in exec form and as a shell's command line; it is not known by a word in it.
func TestWhichEntriesAreOurs(t *testing.T) {
	for _, c := range []struct {
		hook    Hook
		ours    bool
		program string
		args    []string
	}{
		{Hook{Command: "/b/capgate-hook", Args: []string{}}, true, "/b/capgate-hook", []string{}},
		{Hook{Command: "/b/capgate-hook.exe", Args: []string{"--env-file", "/f"}}, true, "/b/capgate-hook.exe", []string{"--env-file", "/f"}},
		{Hook{Command: "/b/capgate", Args: []string{"hook", "--client", "omp"}}, true, "/b/capgate", []string{"--client", "omp"}},
		{Hook{Command: "/b/capgate", Args: []string{"status"}}, false, "/b/capgate", []string{"status"}},
		{Hook{Command: "/b/capgate", Args: []string{}}, false, "/b/capgate", []string{}},
		{Hook{Command: "/b/capgate-hook x", Args: []string{}}, false, "/b/capgate-hook x", []string{}},
		{Hook{Command: "/b/capgate-hook --env-file /f"}, true, "/b/capgate-hook", []string{"--env-file", "/f"}},
		{Hook{Command: "capgate hook --client claude"}, true, "capgate", []string{"--client", "claude"}},
		{Hook{Command: "capgate status"}, false, "capgate", []string{"status"}},
		{Hook{Command: "capgate"}, false, "capgate", []string{}},
		{Hook{Command: "'/a b/capgate-hook' x"}, true, "/a b/capgate-hook", []string{"x"}},
		{Hook{Command: `'/it'\''s/capgate-hook' --env-file .capgate/env`}, true, "/it's/capgate-hook", []string{"--env-file", ".capgate/env"}},
		{Hook{Command: `/a\ b/capgate hook`}, true, "/a b/capgate", []string{}},
		{Hook{Command: `'/it'\''s/other'`}, false, "/it's/other", []string{}},
		{Hook{Command: "capgate-hook | tee log"}, true, "capgate-hook", nil},
		{Hook{Command: "guard.sh capgate-hook"}, false, "guard.sh", []string{"capgate-hook"}},
		{Hook{Command: Find("capgate-hook", "capgate-hook --env-file .capgate/env")}, true, "capgate-hook", []string{"--env-file", ".capgate/env"}},
		{Hook{Command: Find("capgate", "capgate hook --env-file .capgate/env")}, true, "capgate", []string{"--env-file", ".capgate/env"}},
		{Hook{Command: Find("other", "other capgate-hook")}, false, "other", []string{"capgate-hook"}},
		{Hook{Command: "tee -a /var/log/capgate-hook"}, false, "tee", []string{"-a", "/var/log/capgate-hook"}},
		{Hook{Command: ""}, false, "", nil},
	} {
		require.Equal(t, c.ours, IsOurs(c.hook), "%q", c.hook)
		require.Equal(t, c.program, c.hook.Program(), "%q", c.hook)
		require.Equal(t, c.args, c.hook.Arguments(), "%q", c.hook)
	}
}

func TestWiredIsSomeEventAndInstalledIsAll(t *testing.T) {
	require.Equal(t, []string{"PreToolUse", "SessionStart", "SessionEnd"}, Events)
	d, err := Parse([]byte(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"capgate-hook"}]}]}}`))
	require.NoError(t, err)
	for i, event := range Events {
		require.Equal(t, i > 0, d.Wired())
		require.False(t, d.Installed())
		require.NoError(t, d.SetHooks(event, []Group{{Hook: hook}}, ours))
	}
	require.True(t, d.Wired())
	require.True(t, d.Installed())
}

func TestVariablesAndFlags(t *testing.T) {
	d, err := Parse([]byte(`{"env":{"A":"1","A":"2","N":1,"O":{}},"on":true,"off":false,"text":"true"}`))
	require.NoError(t, err)
	for name, want := range map[string]string{"A": "2", "N": "", "O": "", "B": ""} {
		value, ok := d.Env(name)
		require.Equal(t, want, value, name)
		require.Equal(t, want != "", ok, name)
	}
	for name, want := range map[string]bool{"on": true, "off": false, "text": false, "env": false, "none": false} {
		require.Equal(t, want, d.Flag(name), name)
	}
	for _, text := range []string{`{}`, `{"env":[]}`} {
		d, err := Parse([]byte(text))
		require.NoError(t, err)
		_, ok := d.Env("A")
		require.False(t, ok)
		require.Equal(t, text == `{}`, d.Empty())
	}
}

// What changes nothing gives back every byte, and a file that is not there stays so.
func TestWhatChangesNothingLeavesEveryByte(t *testing.T) {
	const text = ` {"env" : {"A":"1" , "B":"\u0032"},  "hooks":{"X":[{"hooks":[{"command":"c"}]}, 7, {"hooks":{}}],"Y":{},"Z":[]}} `
	for name, change := range map[string]func(*Doc){
		"the value is there":    func(d *Doc) { require.NoError(t, d.SetEnv("A", "1")) },
		"as an escape":          func(d *Doc) { require.NoError(t, d.SetEnv("B", "2")) },
		"no such variable":      func(d *Doc) { d.UnsetEnv("C") },
		"no entry of ours":      func(d *Doc) { d.RemoveHooks(ours) },
		"no such member at all": func(d *Doc) { d.removeEntries("W", ours, nil) },
	} {
		d, err := Parse([]byte(text))
		require.NoError(t, err)
		change(d)
		require.Equal(t, text, string(d.Bytes()), name)
		require.False(t, d.edited, name)
	}
	for _, blank := range []string{"", " \n"} {
		d, err := Parse([]byte(blank))
		require.NoError(t, err)
		d.UnsetEnv("A")
		d.RemoveHooks(ours)
		require.Nil(t, d.Bytes())
		require.NoError(t, d.SetEnv("A", "1"))
		require.Equal(t, "{\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n", string(d.Bytes()))
	}
	for _, text := range []string{`{"hooks":[]}`, `{"hooks":7}`, `{"env":7}`, `{"env":{}}`} {
		d, err := Parse([]byte(text))
		require.NoError(t, err)
		d.RemoveHooks(ours)
		d.UnsetEnv("A")
		require.Equal(t, text, string(d.Bytes()))
		require.Empty(t, d.Hooks("X", ours))
	}
}

// Removing takes out each thing that it leaves empty, and nothing else.
func TestRemovingTakesOutWhatItEmpties(t *testing.T) {
	const our = `{"command":"capgate-hook"}`
	for _, c := range [][2]string{
		{`{"hooks":{"X":[{"hooks":[` + our + `]}]}}`, `{}`},
		{`{"a":1,"hooks":{"X":[{"hooks":[` + our + `]}]}}`, `{"a":1}`},
		{`{"hooks":{"X":[{"hooks":[` + our + `]}]},"a":1}`, `{"a":1}`},
		{`{"hooks":{"X":[{"hooks":[` + our + `]}],"Y":[]}}`, `{"hooks":{"Y":[]}}`},
		{`{"hooks":{"X":[{"hooks":[` + our + `]},{"hooks":[]}]}}`, `{"hooks":{"X":[{"hooks":[]}]}}`},
		{`{"hooks":{"X":[{"hooks":[{"command":"c"},` + our + `]}]}}`, `{"hooks":{"X":[{"hooks":[{"command":"c"}]}]}}`},
		{`{"hooks":{"X":[{"hooks":[` + our + `,{"command":"c"},` + our + `]}],"Y":[{"hooks":[` + our + `]}]}}`, `{"hooks":{"X":[{"hooks":[{"command":"c"}]}]}}`},
		{`{"hooks":{"X":[7,{"a":1},{"hooks":[7,` + our + `]},{"hooks":[{"args":["capgate-hook"]}]}]}}`, `{"hooks":{"X":[7,{"a":1},{"hooks":[7]},{"hooks":[{"args":["capgate-hook"]}]}]}}`},
		{"{\"hooks\":{\"X\":[{\"hooks\":[{\"command\":\"c\"}\n,\n" + our + "\n]}]}}", "{\"hooks\":{\"X\":[{\"hooks\":[{\"command\":\"c\"}\n]}]}}"},
	} {
		d, err := Parse([]byte(c[0]))
		require.NoError(t, err)
		d.RemoveHooks(ours)
		require.Equal(t, c[1], string(d.Bytes()), c[0])
		_, err = Parse(d.Bytes())
		require.NoError(t, err)
	}
	for _, c := range [][2]string{
		{`{"env":{"A":"1"}}`, `{}`}, {`{"env":{"A":"1","B":"2"}}`, `{"env":{"B":"2"}}`}, {`{"env":{"B":"2","A":"1"}}`, `{"env":{"B":"2"}}`},
		{`{"env":{"B":"2" ,"A":"1"}}`, `{"env":{"B":"2"}}`}, {`{"env":{"A":"1","B":"2" ,"C":"3"}}`, `{"env":{"B":"2" ,"C":"3"}}`}, {`{"env":{"B":"2" ,"A":"1" ,"C":"3"}}`, `{"env":{"B":"2" ,"C":"3"}}`},
		{`{"env":{"A":"1","B":"2","A":"3"}}`, `{"env":{"B":"2"}}`}, {`{"x":{}, "env":{ "A":"1" } }`, `{"x":{} }`},
	} {
		d, err := Parse([]byte(c[0]))
		require.NoError(t, err)
		d.UnsetEnv("A")
		require.Equal(t, c[1], string(d.Bytes()), c[0])
		require.True(t, d.edited)
	}
}

// An entry beside others is laid out as they are.
func TestAnEntryIsPutBehindTheOthers(t *testing.T) {
	const other = `{"hooks":[{"command":"c"}]}`
	d, err := Parse([]byte(`{"hooks":{"SessionEnd":[  ` + other + `]}}`))
	require.NoError(t, err)
	require.NoError(t, d.SetHooks("SessionEnd", []Group{{Hook: Hook{Type: "command", Command: "capgate-hook"}}}, ours))
	require.True(t, d.edited)
	require.Equal(t, `{"hooks":{"SessionEnd":[  `+other+`,  {"hooks":[{"type":"command","command":"capgate-hook"}]}]}}`, string(d.Bytes()))
}

// An entry that is ours and differs in anything from what is written is rewritten, and one that does not keeps its bytes.
func TestAnEntryThatDiffersIsRewritten(t *testing.T) {
	const same = `{"onFailure":"block", "type":"command","command":"/usr/local/bin/capgate-hook","args":[],"timeout":10}`
	for _, c := range [][2]string{
		{``, ``}, {`"block"`, `"x"`}, {`"type":"command"`, `"type":"x"`}, {`/usr/local`, `/opt`}, {`[]`, `["a"]`}, {`"args":[],`, ``}, {`10`, `11`}, {`"type"`, `"x":1,"type"`},
	} {
		text := `{"hooks":{"PreToolUse":[{"hooks":[{"command":"c"},` + strings.Replace(same, c[0], c[1], 1) + `]}]}}`
		d, err := Parse([]byte(text))
		require.NoError(t, err)
		require.NoError(t, d.SetHooks("PreToolUse", []Group{{Hook: hook}}, ours))
		require.Equal(t, c[0] == "", string(d.Bytes()) == text, "%q", c)
		require.Equal(t, c[0] != "", d.edited)
		require.Equal(t, []Hook{hook}, d.Hooks("PreToolUse", ours))
		require.Len(t, d.Hooks("PreToolUse", func(Hook) bool { return true }), 2)
	}
}

func TestWhichGroupsAreForAllTools(t *testing.T) {
	for matcher, want := range map[string]string{``: "", `"matcher":"",`: "", `"matcher":"*",`: "", `"matcher":".*",`: "", `"matcher":"Bash",`: "Bash", `"matcher":7,`: noTool, `"matcher":[],`: noTool} {
		text := `{"hooks":{"PreToolUse":[{"hooks":[{"command":"c"}]},{` + matcher + `"hooks":[{"command":"capgate-hook"}]}]}}`
		d, err := Parse([]byte(text))
		require.NoError(t, err)
		require.Equal(t, []Group{{want, Hook{Command: "capgate-hook"}}}, d.Groups("PreToolUse", ours), matcher)
		require.Empty(t, d.Groups("Stop", ours))
		require.NoError(t, d.SetHooks("PreToolUse", []Group{{Hook: hook}}, ours))
		require.Equal(t, []Group{{"", hook}}, d.Groups("PreToolUse", ours), matcher)
		require.Equal(t, want == "" && matcher != "", matcher != "" && strings.Contains(string(d.Bytes()), matcher), "it is updated where it stands, if it stands for all tools")
	}
}

// Of several groups each has the matcher that was asked for, an entry stays where its group has that, and others of ours go.
func TestEachGroupHasItsMatcher(t *testing.T) {
	rest := hook
	rest.OnFailure = ""
	want := []Group{{"^(?:A)$", hook}, {"^(?!(?:A)$).*", rest}}
	const ours7 = `{"type":"command","command":"capgate-hook","timeout":7}`
	for _, text := range []string{
		`{}`,
		`{"hooks":{"PreToolUse":[{"hooks":[{"command":"c"},` + ours7 + `]},{"matcher":"B","hooks":[` + ours7 + `]}]}}`,
		`{"hooks":{"PreToolUse":[{"matcher":"^(?!(?:A)$).*","hooks":[` + ours7 + `,{"command":"c"},` + ours7 + `]},{"matcher":"^(?:A)$","hooks":[` + ours7 + `]}]}}`,
	} {
		d, err := Parse([]byte(text))
		require.NoError(t, err)
		require.NoError(t, d.SetHooks("PreToolUse", want, ours))
		require.ElementsMatch(t, want, d.Groups("PreToolUse", ours), text)
		once := string(d.Bytes())
		require.Equal(t, strings.Contains(text, `"command":"c"`), strings.Contains(once, `"command":"c"`))
		require.Equal(t, strings.Contains(text, `"matcher":"^(?!(?:A)$).*"`), strings.Index(once, "(?!") < strings.Index(once, "(?:A)$\""), "they stay where they stand")
		d, err = Parse([]byte(once))
		require.NoError(t, err)
		require.NoError(t, d.SetHooks("PreToolUse", want, ours))
		require.Equal(t, once, string(d.Bytes()))
		require.Equal(t, []Hook{d.Groups("PreToolUse", ours)[0].Hook}, d.Hooks("PreToolUse", ours), "they run the same")
	}
}

// New parts are laid out as the file is: one line stays one, white space and line ends are the file's.
func TestNewPartsLookLikeTheFile(t *testing.T) {
	for _, c := range [][2]string{
		{`{}`, "{\n  \"env\": {\n    \"A\": \"<1>\"\n  }\n}"},
		{`{"a":1}`, `{"a":1,"env":{"A":"<1>"}}`},
		{`{"a": 1}`, `{"a": 1,"env": {"A":"<1>"}}`},
		{`{"env":{"B": "2"}}`, `{"env":{"B": "2","A": "<1>"}}`},
		{"{\n\t\"a\":1\n}", "{\n\t\"a\":1,\n\t\"env\": {\n\t\t\"A\": \"<1>\"\n\t}\n}"},
		{"{\r\n \"a\":1\r\n}\r\n", "{\r\n \"a\":1,\r\n \"env\": {\r\n  \"A\": \"<1>\"\r\n }\r\n}\r\n"},
		{"{\"a\":1,\n   \"b\":2}", "{\"a\":1,\n   \"b\":2,\n   \"env\": {\n      \"A\": \"<1>\"\n   }}"},
		{"{ \"a\":\n1}", "{ \"a\":\n1, \"env\": {\n    \"A\": \"<1>\"\n  }}"},
		{"\ufeff{\"a\":1}\n", "\ufeff{\"a\":1,\"env\":{\"A\":\"<1>\"}}\n"},
		{`{"env":{"A":"0"},"env":{"A":"0"}}`, `{"env":{"A":"0"},"env":{"A":"<1>"}}`},
	} {
		d, err := Parse([]byte(c[0]))
		require.NoError(t, err)
		require.NoError(t, d.SetEnv("A", "<1>"))
		require.Equal(t, c[1], string(d.Bytes()), c[0])
	}
	for offset, want := range map[int][2]int{-1: {1, 1}, 0: {1, 1}, 2: {1, 3}, 3: {2, 1}, 5: {2, 3}, 99: {2, 3}} {
		line, column := position([]byte("ab\ncd"), offset)
		require.Equal(t, want, [2]int{line, column}, offset)
	}
}
