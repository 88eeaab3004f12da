package cli

import "fmt"

// agentVariables are what clients set in the shells that their agents use: Claude Code (and Oh My Pi with it), Codex,
// Copilot, and, for Oh My Pi and pi, our extension.
var agentVariables = []string{"CLAUDECODE", "CODEX_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "CAPGATE_SESSION_ID"}

// OperatorOnly refuses what an operator alone may say where the shell is an agent's. without says what does not happen
// therefore. It is a rail and no wall: a shell can unset a variable.
func (a *App) OperatorOnly(without string) error {
	for _, name := range agentVariables {
		if v, _ := a.Lookup(name); v != "" {
			return fmt.Errorf("%s, because this shell is an agent's (%s is set) and this is for an operator alone: run it in a terminal of your own", without, name)
		}
	}
	return nil
}
