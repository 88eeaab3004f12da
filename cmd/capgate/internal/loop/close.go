package loop

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/scope"
)

func newCloseCmd(a *cli.App) *cobra.Command {
	var session cli.Text
	cmd := &cobra.Command{
		Use:   "close",
		Short: "Disarm a session",
		Long: `Disarms the session: the hook lets its calls pass again. The run stays open and keeps its count. A session that is not
armed is no error, so a loop may close its scope in any clean-up.`,
		Example: `  capgate scope close --session S`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			return closeScope(a, session)
		}),
	}
	sessionFlag(a, cmd, &session)
	return cmd
}

func closeScope(a *cli.App, flag cli.Text) error {
	session, err := session(a.Lookup, flag)
	if err != nil {
		return err
	}
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	closed, err := scope.Close(state, session)
	if err != nil {
		return err
	}
	_ = scope.Forget(state, session)
	if closed {
		a.Changed()
	}
	if a.AsJSON {
		return a.JSON(struct {
			Session string `json:"session"`
			Closed  bool   `json:"closed"` // false: it was not armed
		}{session, closed})
	}
	if closed {
		a.Printf("session %s is disarmed\n", session)
	} else {
		a.Printf("session %s was not armed in %s\n", session, state)
	}
	return nil
}
