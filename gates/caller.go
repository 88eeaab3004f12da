package gates

import (
	"fmt"
	"slices"
	"strings"
)

// HookAgentType is the type as which the agents of Claude Code's hooks of type "agent" count. The client gives their
// calls an agent id that begins with it, and no type.
const HookAgentType = "hook-agent"

// CallerType returns the type of the subagent that makes the call, "" on the main thread and where the client gives none.
func (c Call) CallerType() string {
	switch {
	case c.AgentID == "":
		return ""
	case c.AgentType == "" && strings.HasPrefix(c.AgentID, HookAgentType+"-"):
		return HookAgentType
	}
	return c.AgentType
}

// untyped reports whether a subagent makes the call whose client should have given a type and did not.
func (c Call) untyped() bool { return c.AgentID != "" && c.CallerType() == "" && !c.Untyped }

// Caller lets only subagents of the allowed types make calls. It closes what [Type] cannot see: forked skills, agents
// of a workflow or of a hook, agents that are resumed. A subagent without a type is of none that is allowed, unless the
// client does not know every type (Call.Untyped). Calls of the main thread pass.
func Caller(allowed []string) Gate {
	return func(c Call) Verdict {
		kind := c.CallerType()
		switch {
		case c.AgentID == "", kind == "" && c.Untyped, kind != "" && slices.Contains(allowed, kind):
			return Verdict{}
		case kind == "":
			kind = unset
		}
		available := fmt.Sprintf(`only available to %s subagents in this session, not to "%s"`, quoted(allowed), shorten(kind, maxName))
		if len(allowed) == 0 {
			available = fmt.Sprintf(`available to no subagent in this session, neither to "%s" nor to any other type`, shorten(kind, maxName))
		}
		return Verdict{Outcome: Deny, Code: CodeCaller, Reason: "Tools are " + available +
			". Do not retry: finish with what you have, and say that this agent's type is not declared."}
	}
}

// CallerAdmitted is [Caller] where spawns are denied and nothing is declared: subagents may make calls whose types were
// admitted, in this session, by an operator. It closes ways to start an agent that are no tool call. What has no type was
// not admitted, whatever the client knows.
func CallerAdmitted(types []string) Gate {
	return func(c Call) Verdict {
		kind := c.CallerType()
		switch {
		case c.AgentID == "", kind != "" && slices.Contains(types, kind):
			return Verdict{}
		case kind == "":
			kind = unset
		}
		return Verdict{Outcome: Deny, Code: CodeCallerNotAdmitted, Reason: fmt.Sprintf(
			`Subagents are switched off in this session, and no operator has admitted one of type "%s". Do not retry: finish with what you have, and say that this agent was not admitted.`, shorten(kind, maxName))}
	}
}
