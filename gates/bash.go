package gates

// Bash keeps the shell inside subagents. The main thread is where there is no agent id; the agent type is no test,
// because a session that is started as an agent has one on its main thread. A subagent without a type is no dedicated one,
// unless the client does not know every type (Call.Untyped).
func Bash() Gate {
	return func(c Call) Verdict {
		tool := toolAgent
		if c.Tool == toolOMPShell {
			tool = toolOMPTask
		}
		return bash(c, "Bash is only available to dedicated subagents, not the main agent directly — use the "+tool+" tool to delegate to one of them instead.")
	}
}

// BashAlone is [Bash] for a session in which no subagent can be started. why ends the sentence that says so; the advice to
// delegate would send the model from one denial to the next.
func BashAlone(why string) Gate {
	return func(c Call) Verdict {
		return bash(c, "Bash is only available to dedicated subagents, not the main agent directly, and "+why+". Do not retry: go on without a shell, and tell the user what you could not run.")
	}
}

func bash(c Call, reason string) Verdict {
	switch {
	case !Shell(c.Tool), c.AgentID != "" && !c.untyped():
		return Verdict{}
	case c.AgentID != "":
		reason = "Bash is only available to dedicated subagents, and this agent has no type. Do not retry: finish without a shell, and say what you could not do."
	}
	return Verdict{Outcome: Deny, Code: CodeBash, Reason: reason}
}
