package gates

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBashIsForSubagentsOnly(t *testing.T) {
	const reason = "Bash is only available to dedicated subagents, not the main agent directly — use the %s tool to delegate to one of them instead."
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
		{"inside a subagent of a client that does not know every type", Call{Tool: "bash", AgentID: "a1", Untyped: true}, false},
		{"inside the agent of a hook, whose type is Caller's to judge", Call{Tool: "Bash", AgentID: "hook-agent-5c1f"}, false},
		{"another tool", Call{Tool: "Read"}, false},
		{"names are exact", Call{Tool: "BASH"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Bash()(c.call)
			if !c.deny {
				require.Equal(t, Verdict{}, v)
				return
			}
			tool := "Agent"
			if c.call.Tool == "bash" {
				tool = "task"
			}
			require.Equal(t, Verdict{Outcome: Deny, Code: CodeBash, Reason: fmt.Sprintf(reason, tool)}, v)
			alone := BashAlone("none is declared")(c.call)
			require.Equal(t, CodeBash, alone.Code)
			require.NotContains(t, alone.Reason, "delegate")
		})
	}
}

func TestASubagentWithoutATypeIsNoDedicatedOne(t *testing.T) {
	for _, tool := range []string{"Bash", "PowerShell", "Monitor"} {
		v := Bash()(Call{Tool: tool, AgentID: "a1"})
		require.Equal(t, Deny, v.Outcome)
		require.Equal(t, CodeBash, v.Code)
		require.NotContains(t, v.Reason, "main agent")
	}
	require.Equal(t, Verdict{}, Bash()(Call{Tool: "Read", AgentID: "a1"}))
}
