package gates

// Bash keeps the shell inside subagents. The main thread is where there is no agent id; the agent type is no test,
// because a session that is started as an agent has one on its main thread. A subagent without a type is no dedicated one,
// unless the client does not know every type (Call.Untyped).
func Bash() Gate {
	return func(c Call) Verdict {
		switch {
		case !Shell(c.Tool), c.AgentID != "" && !c.untyped():
			return Verdict{}
		case c.AgentID != "":
			return Verdict{Outcome: Deny, Code: CodeBash, Reason: "Bash is only available to dedicated subagents, and this agent has no type. Do not retry: finish without a shell, and say what you could not do."}
		}
		return Verdict{Outcome: Deny, Code: CodeBash, Reason: "Bash is only available to dedicated subagents, not the main agent directly — use the Agent tool to delegate to one of them instead."}
	}
}
