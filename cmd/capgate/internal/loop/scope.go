// Package loop has the commands that a research loop runs itself: scope, which arms and disarms its session, and turn,
// which counts a turn before it is taken.
package loop

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/scope"
)

// NewScope returns the command scope.
func NewScope(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "scope",
		GroupID: cli.GroupLoop,
		Short:   "Arm and disarm sessions: while one is armed, the hook holds it to its run's cap",
		Long: `A session is in scope of a run while it has a fresh marker, a small file in the state directory. The hook judges only
sessions in scope; everything else passes. A marker that is older than CAPGATE_SCOPE_TTL_MS (6 hours by default) counts
no more, so that a crashed loop does not hold its session for ever.`,
		Example: `  capgate scope open --run storm-42 --max-conv-turns 4 --max-dimensions 2
  capgate scope list
  capgate scope close`,
	}, newOpenCmd(a), newCloseCmd(a), newListCmd(a), newSweepCmd(a))
}

// sessionFlag adds --session to a command.
func sessionFlag(a *cli.App, cmd *cobra.Command, session *cli.Text) {
	cmd.Flags().Var(session, "session", "session id; default "+strings.Join(cli.SessionVariables, " or "))
	cli.Must(cmd.RegisterFlagCompletionFunc("session", a.Sessions))
}

// session returns the session that a command is about.
func session(lookup capgate.Lookup, flag cli.Text) (string, error) {
	id := string(flag)
	for _, name := range cli.SessionVariables {
		if id == "" {
			id, _ = lookup(name)
		}
	}
	if id == "" {
		return "", cli.Usagef("no session: give --session, or run inside a client that sets %s", strings.Join(cli.SessionVariables, " or "))
	}
	if !scope.ValidSession(id) {
		return "", cli.Usagef("session id %.140q cannot be armed: ids are 1 to 128 of A-Z a-z 0-9 . _ - and start with no dot", id)
	}
	return id, nil
}
