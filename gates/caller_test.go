package gates

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
)

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
		{"a subagent without a type", Call{Tool: "Read", AgentID: "a1"}, true},
		{"a subagent of a client that does not know every type", Call{Tool: "Read", AgentID: "a1", Untyped: true}, false},
		{"an undeclared one of such a client", Call{Tool: "Read", AgentID: "a1", AgentType: "scout", Untyped: true}, true},
		{"the agent of a hook", Call{Tool: "Read", AgentID: "hook-agent-5c1f"}, true},
		{"one that only looks like it", Call{Tool: "Read", AgentID: "hook-agents"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Caller(jokes)(c.call)
			require.Equal(t, c.deny, v.Outcome == Deny)
			if c.deny {
				require.Equal(t, CodeCaller, v.Code)
				require.Contains(t, v.Reason, `"`+cmp.Or(c.call.CallerType(), "(unset)")+`"`)
			}
		})
	}
	for _, declared := range []string{"hook-agent", "joke-finder"} {
		v := Caller([]string{declared})(Call{Tool: "Bash", AgentID: "hook-agent-5c1f"})
		require.Equal(t, declared != "hook-agent", v.Outcome == Deny, "declared: %s", declared)
	}
	require.Equal(t, Deny, Caller([]string{""})(Call{AgentID: "a"}).Outcome, "an empty name in the list allows nothing")
	require.Equal(t, Deny, Caller(nil)(Call{AgentID: "a", AgentType: "x"}).Outcome, "an empty list denies all")
}

func TestWithoutAListOnlyAdmittedTypesMakeCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		call Call
		deny bool
	}{
		{"the main thread", Call{Tool: "Bash"}, false},
		{"the main thread of a session started as an agent", Call{Tool: "Bash", AgentType: "general-purpose"}, false},
		{"an admitted type", Call{Tool: "Read", AgentID: "a1", AgentType: "joke-finder"}, false},
		{"another type", Call{Tool: "Read", AgentID: "a1", AgentType: "scout"}, true},
		{"no type", Call{Tool: "Read", AgentID: "a1"}, true},
		{"no type, of a client that does not know every one", Call{Tool: "Read", AgentID: "a1", Untyped: true}, true},
		{"the agent of a hook", Call{Tool: "Read", AgentID: "hook-agent-5c1f"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := CallerAdmitted(jokes)(c.call)
			require.Equal(t, c.deny, v.Outcome == Deny)
			if c.deny {
				require.Equal(t, CodeCallerNotAdmitted, v.Code)
				require.Contains(t, v.Reason, `"`+cmp.Or(c.call.CallerType(), "(unset)")+`"`)
			}
		})
	}
	require.Equal(t, Deny, CallerAdmitted([]string{""})(Call{AgentID: "a"}).Outcome)
}
