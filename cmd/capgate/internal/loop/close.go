package loop

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/scope"
)

func newCloseCmd(a *cli.App) *cobra.Command {
	var session cli.Text
	cmd := &cobra.Command{
		Use:   "close",
		Short: "Disarm a session",
		Long: `Disarms the session, and those that took its place by /clear: the hook lets its calls pass again. The run stays open and
keeps its count. A session that is not armed is no error, so a loop may close its scope in any clean-up.`,
		Example: `  capgate scope close --session S`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			return closeScope(a, session)
		}),
	}
	sessionFlag(a, cmd, &session)
	return cmd
}

// Disarm ends the scope of a session, and of those that took its place or whose place it took, as /clear does. It reports
// whether one of them was armed.
func Disarm(state, session string) (closed bool, err error) {
	related, err := scope.Related(state, session)
	if err != nil {
		related = []string{session} // what cannot be listed may still be removed
	}
	var failed error
	gone := map[string]bool{}
	for len(related) > 0 {
		for _, s := range related {
			was, err := scope.Close(state, s)
			closed, failed = closed || was, errors.Join(failed, err)
			_ = scope.Forget(state, s)
			gone[s] = true
		}
		// A session that was just taking the place of one of them has been armed meanwhile.
		all, _ := scope.List(state)
		related = nil
		for _, m := range all {
			if gone[m.From] && !gone[m.Session] {
				related = append(related, m.Session)
			}
		}
	}
	return closed, failed
}

func closeScope(a *cli.App, flag cli.Text) error {
	session, err := session(a.Lookup, flag)
	if err != nil {
		return err
	}
	a.About("", session)
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	closed, err := Disarm(state, session)
	if err != nil {
		return err
	}
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
