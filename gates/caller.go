package gates

import (
	"fmt"
	"slices"
)

// Caller lets only subagents of the allowed types make calls. It closes what [Type] cannot see: forked skills, agents
// of a workflow, agents that are resumed. A call whose subagent has no type, and every call of the main thread, passes.
func Caller(allowed []string) Gate {
	return func(c Call) Verdict {
		if c.AgentID == "" || c.AgentType == "" || slices.Contains(allowed, c.AgentType) {
			return Verdict{}
		}
		return Verdict{Outcome: Deny, Code: CodeCaller, Reason: fmt.Sprintf(
			`Tools are only available to %s subagents in this session, not to "%s". Do not retry: finish with what you have, and say that this agent's type is not declared.`,
			quoted(allowed), c.AgentType)}
	}
}
