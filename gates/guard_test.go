package gates

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard(t *testing.T) {
	protected := Protected{StateDir: "/state", Files: []string{"/elsewhere/ledger.db", "/plugin/loops", "/e/capgate.env"}, Spec: "/etc/spec.json"}
	for _, c := range []struct {
		name, tool string
		writes     []FileWrite
		code       string
	}{
		{"into the state directory", "Write", []FileWrite{{Path: "/state/ledger.db"}}, CodeGuardState},
		{"deep in it", "Edit", []FileWrite{{Path: "/state/trekresearch-loop-scope/s.json"}}, CodeGuardState},
		{"the directory itself", "MultiEdit", []FileWrite{{Path: "/state"}}, CodeGuardState},
		{"a notebook there", "NotebookEdit", []FileWrite{{Path: "/state/x.ipynb"}}, CodeGuardState},
		{"the ledger elsewhere", "Write", []FileWrite{{Path: "/elsewhere/ledger.db"}}, CodeGuardState},
		{"beside it", "Write", []FileWrite{{Path: "/state-2/x"}}, ""},
		{"above it", "Write", []FileWrite{{Path: "/x"}}, ""},
		{"a name that begins with dots", "Write", []FileWrite{{Path: "/state/..x"}}, CodeGuardState},
		{"the spec", "Write", []FileWrite{{Path: "/etc/spec.json"}}, CodeGuardSpec},
		{"beside the spec", "Write", []FileWrite{{Path: "/etc/spec.json.bak"}}, ""},
		{"settings with the hook", "Edit", []FileWrite{{Path: "/p/.claude/settings.json", Settings: true}}, CodeGuardSettings},
		{"settings without", "Edit", []FileWrite{{Path: "/p/.claude/settings.json"}}, ""},
		{"of a plugin's directory what is ours", "Write", []FileWrite{{Path: "/plugin/loops/x.json"}}, CodeGuardState},
		{"of a plugin's directory what is the plugin's", "Write", []FileWrite{{Path: "/plugin/cache.json"}}, ""},
		{"the environment file", "Edit", []FileWrite{{Path: "/e/capgate.env"}}, CodeGuardState},
		{"an environment file of ours that no entry names", "Edit", []FileWrite{{Path: "/p/.capgate/env", Own: true}}, CodeGuardState},
		{"a name of each process's own", "Write", []FileWrite{{Path: "/proc/self/cwd/x", PerProcess: true}}, CodeGuardPath},
		{"a name of each process's own that is settings, too", "Write", []FileWrite{{Path: "/proc/self/cwd/x", PerProcess: true, Settings: true}}, CodeGuardPath},
		{"reading", "Read", []FileWrite{{Path: "/state/ledger.db"}}, ""},
		{"a write without a path", "Write", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Guard(protected, c.writes)(Call{Tool: c.tool})
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
	require.Equal(t, Verdict{}, Guard(Protected{}, []FileWrite{{Path: "/x"}})(Call{Tool: "Write"}), "nothing to protect")
}

// A question that nobody sees is no guard: the client writes all the same, or loses our words.
func TestSettingsAreDeniedWhereNobodyIsAsked(t *testing.T) {
	settings := []FileWrite{{Path: "/p/.claude/settings.json", Settings: true}}
	for _, c := range []struct {
		mode     string
		attended Presence
		asked    bool
	}{
		{"default", Attended, true}, {"plan", Attended, true}, {"acceptEdits", Attended, true}, {"auto", Attended, true}, {"", Attended, true},
		{"dontAsk", Attended, false}, {"bypassPermissions", Attended, false},
		{"default", Unknown, true}, {"acceptEdits", Unknown, true}, {"bypassPermissions", Unknown, false}, {"dontAsk", Unknown, false},
		{"default", Absent, false}, {"plan", Absent, false}, {"acceptEdits", Absent, false}, {"auto", Absent, false}, {"dontAsk", Absent, false}, {"bypassPermissions", Absent, false},
	} {
		v := Guard(Protected{}, settings)(Call{Tool: "Write", Mode: c.mode, Attended: c.attended})
		if c.asked {
			require.Equal(t, Ask, v.Outcome, "%+v", c)
			require.Equal(t, CodeGuardSettings, v.Code)
			continue
		}
		require.Equal(t, Deny, v.Outcome, "%+v", c)
		require.Equal(t, CodeGuardUnasked, v.Code)
		require.Contains(t, v.Reason, "This is final: do not retry")
	}
}

// What a model wrote does not push the advice out of the reason.
func TestALongPathIsCutBeforeTheAdvice(t *testing.T) {
	long := "/p/.claude/" + strings.Repeat("x", 5000)
	for _, w := range []FileWrite{{Path: long, Settings: true}, {Path: long, PerProcess: true}} {
		v := Guard(Protected{}, []FileWrite{w})(Call{Tool: "Write", Attended: Absent})
		require.Less(t, len(v.Reason), 600)
	}
}

func TestGuardLooksAtEveryPathOfACall(t *testing.T) {
	v := Guard(Protected{StateDir: "/state"}, []FileWrite{{Path: "/a"}, {Path: "/b", Settings: true}, {Path: "/state/x"}})(Call{Tool: "edit"})
	require.Equal(t, CodeGuardState, v.Code)
}

func TestGuardOfTrees(t *testing.T) {
	protected := Protected{StateDir: "/s/state", Files: []string{"/l/ledger.db"}, Spec: "/e/spec.json", Programs: []string{"/b/capgate-hook", "/b/capgate"}}
	for path, want := range map[string]string{
		"/s": CodeGuardState, "/s/state/x": CodeGuardState, "/l": CodeGuardState, "/b": CodeGuardState, "/b/capgate": CodeGuardState,
		"/e": CodeGuardSpec, "/e/spec.json": CodeGuardSpec, "/": CodeGuardState, "/e/other": "", "/x": "", "/s/state-2": "",
	} {
		require.Equal(t, want, Guard(protected, []FileWrite{{Path: path, Tree: true}})(Call{Tool: "ast_edit"}).Code, path)
	}
}

func TestGuardSaysWhichProgram(t *testing.T) {
	protected := Protected{StateDir: "/state", Programs: []string{"/b/capgate-hook", "/b/capgate"}}
	for _, path := range []string{"/b/capgate", "/b/capgate-hook"} {
		v := Guard(protected, []FileWrite{{Path: path}})(Call{Tool: "Write"})
		require.Equal(t, Deny, v.Outcome)
		require.Equal(t, CodeGuardState, v.Code)
		require.Contains(t, v.Reason, "The program that bounds this session ")
	}
	require.Equal(t, Verdict{}, Guard(protected, []FileWrite{{Path: "/b"}, {Path: "/b/capgate-x"}})(Call{Tool: "Write"}))
}
