package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
)

// SessionVariables are where a client tells its commands the session they run in: Claude Code does so itself, for Oh My
// Pi our extension does.
var SessionVariables = []string{"CLAUDE_CODE_SESSION_ID", "CAPGATE_SESSION_ID"}

// variable is one element of what `help environment --json` prints.
type variable struct {
	Name    string `json:"name"`
	Also    string `json:"also,omitempty"`
	Meaning string `json:"meaning"`
	Value   string `json:"value"`
	From    string `json:"from,omitempty"`
}

// newEnvironmentTopic is no command: cobra offers what has nothing to run as a help topic.
func newEnvironmentTopic(a *App) *cobra.Command {
	topic := &cobra.Command{
		Use:   "environment",
		Short: "the variables that set up the hook and the command line",
		Long: `Everything is set up by variables: those of the environment file that the hook's entry names (lines NAME=VALUE, in force
at the next call), or of the environment where it names none. A switch is on when its value is exactly 1; anything else
is off, and a kill switch (DISABLE) that is 1 holds wherever it stands. Switches act on the hook: capgate turn refuses at
the cap whatever they say.`,
	}
	topic.SetHelpFunc(func(*cobra.Command, []string) { a.environment(topic.Long) })
	return topic
}

func (a *App) environment(intro string) {
	vars := []variable{}
	for _, v := range capgate.Variables(a.Settings()) {
		vars = append(vars, variable(v))
	}
	session := variable{
		Name: SessionVariables[0], Also: SessionVariables[1],
		Meaning: "the session that scope open and scope close are about without --session; the client sets it, for Oh My Pi its extension",
	}
	for _, name := range SessionVariables {
		if v, _ := a.Lookup(name); v != "" && session.Value == "" {
			session.Value, session.From = v, name
		}
	}
	vars = append(vars, session)
	if a.AsJSON {
		_ = a.JSON(vars) // an error stays in the printer, where Main finds it
		return
	}
	fmt.Fprintln(a.Printer, intro)
	for _, v := range vars {
		a.Printf("\n%s", v.Name)
		if v.Also != "" {
			a.Printf(" (also read as %s)", v.Also)
		}
		a.Printf("\n    %s\n", v.Meaning)
		switch v.From {
		case "":
			a.Printf("    not set\n")
		default:
			a.Printf("    now: %s (from %s)\n", v.Value, v.From)
		}
	}
	if c, err := a.Config(); err == nil && c.EnvFile != "" {
		a.Printf("\nThese are the settings of the installation, from %s.\n", c.EnvFile)
	}
	a.Printf("\nWith these, and the flags of this command line:\n")
	state, err := a.StateDir()
	a.Printf("    state directory: %s\n", orError(state, err))
	file, err := a.LedgerPath()
	a.Printf("    ledger:          %s\n", orError(file, err))
}

func orError(text string, err error) string {
	if err != nil {
		return "none: " + err.Error()
	}
	return text
}
