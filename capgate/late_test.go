package capgate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
)

// Once the deadline has passed the input is not looked into: it may be what took so long. What starts agents is denied by its
// tool alone, and what is judged by its thread or by facts that are there is judged as ever.
func TestALateCallIsJudgedWithoutItsInput(t *testing.T) {
	for _, c := range []struct {
		name  string
		env   map[string]string
		call  gates.Call
		known Stage
		code  string
	}{
		{"a spawn, the spec was awaited", env(list, "finder"), finder, StagePayload, CodeSpecUnreadable},
		{"a spawn, nothing was", env(list, "finder"), finder, StageSpec, CodeGatesOverdue},
		{"a spawn, an admission was", env(admit, "ask"), finder, StageLedger, CodeGatesOverdue},
		{"a spawn, and all is known", env(list, "finder"), finder, StageAdmission, CodeGatesOverdue},
		{"a workflow", env(list, "finder"), gates.Call{Tool: "Workflow"}, StageSpec, CodeGatesOverdue},
		{"Oh My Pi's task", env(list, "finder"), gates.Call{Tool: "task"}, StageSpec, CodeGatesOverdue},
		{"a shell on the main thread", env(list, "finder"), shell, StageSpec, gates.CodeBash},
		{"an agent that is not declared", env(list, "finder"), foreign, StageSpec, gates.CodeCaller},
		{"a tool of no gate", env(list, "finder"), reading, StageSpec, CodeNotEnabled},
		{"a spawn, the gates are off", env("CAPGATE_ENABLED", "1", list, "finder", "CAPGATE_DISABLE_GATES", "1"), reading, StageSpec, CodeToolNotCapped},
		{"a capped spawn, the gates are off", env("CAPGATE_ENABLED", "1"), gates.Call{Tool: "Agent", Session: "s-1"}, StageMarker, CodeLedgerUnreadable},
	} {
		for _, input := range []string{``, `{"subagent_type":"finder"}`, `{"subagent_type":"other"}`, strings.Repeat("[", 1<<21)} {
			t.Run(c.name, func(t *testing.T) {
				f := Facts{Config: LoadConfig(lookupIn(c.env)), Now: now, Known: c.known, Call: c.call}
				f.Call.Input = json.RawMessage(input)
				f = f.Overdue()
				_, more := f.Next()
				require.False(t, more)
				d := Decide(f)
				code := d.Verdict.Code
				require.Equal(t, c.code, code)
				for _, j := range d.Gates {
					require.NotContains(t, []string{"type", "foreground", "admission"}, j.Gate)
				}
				if code == CodeGatesOverdue {
					require.Equal(t, gates.Deny, d.Verdict.Outcome)
					require.Contains(t, d.Verdict.Reason, "could not be judged within 2s")
				}
			})
		}
	}
}

// What a reason quotes may be long: it is cut before it is looked through, and after what that made of it.
func TestALongReasonIsCutOnce(t *testing.T) {
	for _, text := range []string{strings.Repeat("\a", 1<<20), strings.Repeat("ü", 1<<20), strings.Repeat("x", MaxReason)} {
		got := WithID(text, "ID")
		require.LessOrEqual(t, len(got), MaxReason)
		require.Greater(t, len(got), MaxReason-20)
		require.Equal(t, 1, strings.Count(got, "…"))
	}
}
