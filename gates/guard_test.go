package gates

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard(t *testing.T) {
	protected := Protected{StateDir: "/state", Ledger: "/elsewhere/ledger.db", Spec: "/etc/spec.json"}
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
		{"settings with the hook", "Edit", []FileWrite{{Path: "/p/.claude/settings.json", HoldsHook: true}}, CodeGuardSettings},
		{"settings without", "Edit", []FileWrite{{Path: "/p/.claude/settings.json"}}, ""},
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

func TestGuardLooksAtEveryPathOfACall(t *testing.T) {
	v := Guard(Protected{StateDir: "/state"}, []FileWrite{{Path: "/a"}, {Path: "/b", HoldsHook: true}, {Path: "/state/x"}})(Call{Tool: "edit"})
	require.Equal(t, CodeGuardState, v.Code)
}

func TestGuardOfTrees(t *testing.T) {
	protected := Protected{StateDir: "/s/state", Ledger: "/l/ledger.db", Spec: "/e/spec.json", Programs: []string{"/b/capgate-hook", "/b/capgate"}}
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
