package gates

// Bash keeps the shell inside subagents. The main thread is where there is no agent id; the agent type is no test,
// because a session that is started as an agent has one on its main thread.
func Bash() Gate {
	return func(c Call) Verdict {
		if !Shell(c.Tool) || c.AgentID != "" {
			return Verdict{}
		}
		return Verdict{Outcome: Deny, Code: CodeBash, Reason: "Bash is only available to dedicated subagents, not the main agent directly — use the Agent tool to delegate to one of them instead."}
	}
}
