package settings

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var hook = Hook{Type: "command", Command: "/usr/local/bin/capgate-hook", Args: []string{}, Timeout: 10, OnFailure: "block"}

func ours(h Hook) bool { return path.Base(h.Command) == "capgate-hook" }

func install(t *testing.T, text string) string {
	d, err := Parse([]byte(text))
	require.NoError(t, err)
	require.NoError(t, d.SetHooks("PreToolUse", []Group{{Hook: hook}}, ours))
	require.NoError(t, d.SetHooks("SessionEnd", []Group{{Hook: hook}}, ours))
	require.NoError(t, d.SetEnv("CAPGATE_ENABLED", "1"))
	require.NoError(t, d.SetEnv("CAPGATE_DATA_DIR", "/state <&> ü"))
	return string(d.Bytes())
}

func uninstall(t *testing.T, text string) string {
	d, err := Parse([]byte(text))
	require.NoError(t, err)
	d.RemoveHooks(ours)
	d.UnsetEnv("CAPGATE_ENABLED")
	d.UnsetEnv("CAPGATE_DATA_DIR")
	return string(d.Bytes())
}

// Files as people and other tools write them: installing adds our parts and changes nothing else, installing twice is
// installing once, and uninstalling gives back every byte.
var wild = map[string]string{
	"empty object":         "{}\n",
	"no final newline":     `{"model":"opus"}`,
	"one line with spaces": `{ "model": "opus", "env": { "A": "1" } }` + "\n",
	"two spaces": `{
  "model": "opus",
  "permissions": {
    "allow": ["Bash(git:*)"]
  }
}
`,
	"tabs":                            "{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"1\"\n\t}\n}\n",
	"CRLF":                            "{\r\n    \"model\": \"opus\",\r\n    \"env\": {\r\n        \"A\": \"1\"\r\n    }\r\n}\r\n",
	"a byte order mark":               "\ufeff{\n  \"a\": 1\n}\n",
	"key order, big numbers, escapes": "{\n  \"z\": 1152921504606846976,\n  \"a\": \"\\u00fc\\/<>\",\n  \"m\": [1.0, 1e3, -0]\n}",
	"other hooks": `{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {"type": "command", "command": "guard.sh"}
        ]
      },
      { "hooks": [ { "type": "command", "command": "/opt/log", "args": ["x"], "unknown": {"k": [1]} } ] }
    ],
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
  }
}
`,
	"odd white space": "\n\n {  \"a\"  :  1  ,\n\"b\":2 }  \n\n",
	"a minified file": `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"x"}]}]},"env":{"A":"1"}}`,
	"hooks of another kind": `{
  "hooks": {
    "PreToolUse": [
      {"hooks": [{"type": "prompt", "prompt": "is this fine?"}, 7, null, {"command": 1}]}, "text", null
    ]
  }
}`,
	"a huge file": "{\n  \"x\": [\n" + strings.Repeat("    {\"k\": \"v\"},\n", 50_000) + "    {}\n  ]\n}\n",
}

func TestInstallAddsAndUninstallGivesBackEveryByte(t *testing.T) {
	for name, text := range wild {
		t.Run(name, func(t *testing.T) {
			installed := install(t, text)
			require.Equal(t, installed, install(t, installed), "twice is once")
			require.Equal(t, text, uninstall(t, installed))
			require.Equal(t, text, uninstall(t, text), "uninstall without install")

			d, err := Parse([]byte(installed))
			require.NoError(t, err)
			require.Equal(t, []Hook{hook}, d.Hooks("PreToolUse", ours))
			require.Equal(t, []Hook{hook}, d.Hooks("SessionEnd", ours))
			value, ok := d.Env("CAPGATE_DATA_DIR")
			require.True(t, ok)
			require.Equal(t, "/state <&> ü", value)

			// Everything else means what it meant.
			var was, is map[string]any
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(text, byteOrderMark)), &was))
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(installed, byteOrderMark)), &is))
			for key, value := range was {
				if key != "hooks" && key != "env" {
					require.Equal(t, value, is[key])
				}
			}
			if strings.Contains(text, "\r\n") {
				require.NotRegexp(t, `[^\r]\n`, installed)
			}
			if !strings.Contains(strings.TrimSpace(text), "\n") && text != "{}\n" {
				require.NotContains(t, strings.TrimSpace(installed), "\n", "one line stays one line")
			}
		})
	}
}

func TestTheLayoutFollowsTheFile(t *testing.T) {
	require.Equal(t, "{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"1\",\n\t\t\"CAPGATE_ENABLED\": \"1\",\n\t\t\"CAPGATE_DATA_DIR\": \"/state <&> ü\"\n\t},\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t{\n\t\t\t\t\"hooks\": [\n\t\t\t\t\t{\n\t\t\t\t\t\t\"type\": \"command\",\n\t\t\t\t\t\t\"command\": \"/usr/local/bin/capgate-hook\",\n\t\t\t\t\t\t\"args\": [],\n\t\t\t\t\t\t\"timeout\": 10,\n\t\t\t\t\t\t\"onFailure\": \"block\"\n\t\t\t\t\t}\n\t\t\t\t]\n\t\t\t}\n\t\t],\n\t\t\"SessionEnd\": [\n\t\t\t{\n\t\t\t\t\"hooks\": [\n\t\t\t\t\t{\n\t\t\t\t\t\t\"type\": \"command\",\n\t\t\t\t\t\t\"command\": \"/usr/local/bin/capgate-hook\",\n\t\t\t\t\t\t\"args\": [],\n\t\t\t\t\t\t\"timeout\": 10,\n\t\t\t\t\t\t\"onFailure\": \"block\"\n\t\t\t\t\t}\n\t\t\t\t]\n\t\t\t}\n\t\t]\n\t}\n}\n",
		install(t, wild["tabs"]))
}

func TestANewFileIsWellFormed(t *testing.T) {
	for _, text := range []string{"", " \n"} {
		got := install(t, text)
		require.True(t, strings.HasPrefix(got, "{\n  \"hooks\": {\n    \"PreToolUse\": [\n"), got)
		require.True(t, strings.HasSuffix(got, "\n  }\n}\n"), got)
		d, err := Parse([]byte(uninstall(t, got)))
		require.NoError(t, err)
		require.True(t, d.Empty())
	}
}

func TestAnOlderEntryIsUpdatedInItsPlaceAndCopiesGo(t *testing.T) {
	const text = `{
  "hooks": {
    "PreToolUse": [
      {"hooks": [{"type": "command", "command": "first"}, {"type": "command", "command": "/old/capgate-hook"}]},
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "/older/capgate-hook"}]},
      {"hooks": [{"type": "command", "command": "/usr/local/bin/capgate-hook"}, {"type": "command", "command": "last"}]}
    ]
  }
}
`
	got := install(t, text)
	d, err := Parse([]byte(got))
	require.NoError(t, err)
	require.Equal(t, []Hook{hook}, d.Hooks("PreToolUse", ours))
	require.Equal(t, []string{"first", "last"}, commands(d.Hooks("PreToolUse", func(h Hook) bool { return !ours(h) })))
	require.Less(t, strings.Index(got, "first"), strings.Index(got, "capgate-hook"))
	require.Less(t, strings.Index(got, "capgate-hook"), strings.Index(got, "last"))
	require.NotContains(t, got, "Bash", "a group that is empty now goes")
}

func commands(hooks []Hook) (names []string) {
	for _, h := range hooks {
		names = append(names, h.Command)
	}
	return names
}

func TestAnEntryForSomeToolsIsReplacedByOneForAll(t *testing.T) {
	got := install(t, `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"/x/capgate-hook"}]}]}}`)
	d, err := Parse([]byte(got))
	require.NoError(t, err)
	require.Equal(t, []Hook{hook}, d.Hooks("PreToolUse", ours))
	require.Empty(t, d.Groups("PreToolUse", ours)[0].Matcher)
}

func TestBrokenSettingsAreRefusedWithLineAndColumn(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a comment", "{\n  // note\n  \"a\": 1\n}", "line 2, column 3"},
		{"a trailing comma", "{\n  \"a\": 1,\n}", "line 3, column 1"},
		{"cut off", "{\n  \"a\": 1", "line 2, column 8"},
		{"two objects", "{}\n{}", "line 2, column 1"},
		{"a list", "[]", "line 1, column 1: it is not an object"},
		{"null", "null", "it is null, not an object"},
		{"text", "hello", "line 1, column 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			require.ErrorIs(t, err, ErrSyntax)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestMembersOfAnotherKindAreRefused(t *testing.T) {
	for _, text := range []string{`{"hooks":[]}`, `{"hooks":null}`, `{"hooks":{"PreToolUse":{}}}`, `{"hooks":{"PreToolUse":"x"}}`} {
		d, err := Parse([]byte(text))
		require.NoError(t, err)
		require.ErrorContains(t, d.SetHooks("PreToolUse", []Group{{Hook: hook}}, ours), "mend it by hand")
	}
	d, err := Parse([]byte(`{"env":"x"}`))
	require.NoError(t, err)
	require.ErrorContains(t, d.SetEnv("A", "1"), "mend it by hand")
}

// FuzzSettings: what is installed into any settings file can be taken out again, and means what it meant in between.
func FuzzSettings(f *testing.F) {
	for _, text := range wild {
		if len(text) < 10_000 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse([]byte(text))
		if err != nil || strings.Contains(text, "capgate") || strings.Contains(text, `\u`) {
			return
		}
		if d.SetHooks("PreToolUse", []Group{{Hook: hook}}, ours) != nil || d.SetEnv("CAPGATE_ENABLED", "1") != nil {
			return
		}
		installed := d.Bytes()
		again, err := Parse(installed)
		require.NoError(t, err, "%q", installed)
		require.Equal(t, []Hook{hook}, again.Hooks("PreToolUse", ours))
		again.RemoveHooks(ours)
		again.UnsetEnv("CAPGATE_ENABLED")
		var was, is any
		if json.Unmarshal([]byte(strings.TrimPrefix(text, byteOrderMark)), &was) != nil {
			return
		}
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(string(again.Bytes()), byteOrderMark)), &is))
		before, after := was.(map[string]any), is.(map[string]any)
		for key, value := range before {
			if key != "hooks" && key != "env" {
				require.Equal(t, value, after[key])
			}
		}
	})
}

func TestAnEntryWithOtherMembersIsFoundAndRewritten(t *testing.T) {
	for text, want := range map[string]Hook{
		`"async": true`:             {Async: true, Odd: []string{"async"}, Timeout: 10},
		`"async": false`:            {Odd: []string{"async"}, Timeout: 10},
		`"if": "Bash(git *)"`:       {If: true, Odd: []string{"if"}, Timeout: 10},
		`"timeout": "10"`:           {Odd: []string{"timeout"}},
		`"shell": {"x": [1, null]}`: {Odd: []string{"shell"}, Timeout: 10},
	} {
		file := `{"hooks":{"PreToolUse":[{"matcher":".*","hooks":[{"type":"command","command":"/usr/local/bin/capgate-hook","args":[],"timeout":10,"onFailure":"block",` + text + `}]}]}}`
		if strings.Contains(text, "timeout") {
			file = strings.Replace(file, `"timeout":10,`, "", 1)
		}
		d, err := Parse([]byte(file))
		require.NoError(t, err)
		want.Type, want.Command, want.Args, want.OnFailure = hook.Type, hook.Command, hook.Args, hook.OnFailure
		require.Equal(t, []Hook{want}, d.Hooks("PreToolUse", ours), text)
		require.Empty(t, d.Groups("PreToolUse", ours)[0].Matcher)
		require.NoError(t, d.SetHooks("PreToolUse", []Group{{Hook: hook}}, ours))
		require.Equal(t, []Hook{hook}, d.Hooks("PreToolUse", ours), text)
		require.Contains(t, string(d.Bytes()), `".*"`, "it is updated where it stands")
	}
}
