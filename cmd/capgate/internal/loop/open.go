package loop

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/run"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

type openOptions struct {
	session cli.Text
	run     cli.Text
	limits  run.Limits
}

func newOpenCmd(a *cli.App) *cobra.Command {
	var o openOptions
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open a run and arm a session for it",
		Long: `Opens the run in the ledger, creating state directory and ledger where there are none, and arms the session for it.

Opening a run again with the same limits changes nothing in the ledger and arms the session afresh; other limits are an
error. A session that is armed for another run is armed for this one from now on. The marker remembers how far the
ledger had come, so that the hook and turn notice a ledger that was deleted, replaced or rolled back. So does this
command: it does not arm a session again over such a loss, nor with another ledger, until scope close gives the old
count up.

The hook finds both by CAPGATE_DATA_DIR and CAPGATE_LEDGER alone: with --state or --ledger, name the same places there.`,
		Example: `  capgate scope open --session S --run storm-42 --max-conv-turns 4 --max-dimensions 2`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return open(a, cmd, o)
		}),
	}
	sessionFlag(a, cmd, &o.session)
	run.Flag(a, cmd, &o.run)
	o.limits.Flags(cmd)
	return cmd
}

// opened is what `scope open --json` prints.
type opened struct {
	Session   string        `json:"session"`
	Run       string        `json:"run"`
	StartedAt time.Time     `json:"started_at"`
	Used      int64         `json:"used"`
	Limit     int64         `json:"limit"`
	Remaining int64         `json:"remaining"`
	Marker    string        `json:"marker"`
	Anchor    ledger.Anchor `json:"anchor"`
	// Replaced is the run that the session was armed for; "" when it was not, or its marker was unreadable.
	Replaced string `json:"replaced_run,omitempty"`
}

func open(a *cli.App, cmd *cobra.Command, o openOptions) error {
	session, err := session(a.Lookup, o.session)
	if err != nil {
		return err
	}
	a.About(string(o.run), session)
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	done, err := arm(a, cmd, l, session, func() (ledger.Usage, error) {
		u, _, err := run.Open(a, cmd, l, string(o.run), o.limits)
		return u, err
	})
	if err != nil {
		return err
	}
	opened := opened{
		Session: session, Run: done.usage.Run, StartedAt: done.marker.StartedAt,
		Used: done.usage.Used, Limit: done.usage.Limit, Remaining: done.usage.Remaining,
		Marker: scope.Path(done.state, session), Anchor: done.head,
	}
	again := ""
	switch {
	case errors.Is(done.beforeErr, scope.ErrUnreadable):
		again = ", in place of a marker that could not be read"
	case done.beforeErr != nil:
	case done.before.Run == done.usage.Run:
		opened.Replaced = done.before.Run
		again = ", as it was before"
	default:
		opened.Replaced = done.before.Run
		again = fmt.Sprintf(", and no longer for run %s", done.before.Run)
	}
	if a.AsJSON {
		return a.JSON(opened)
	}
	a.Printf("session %s is armed for run %s%s: %d of %d turns used\n", session, done.usage.Run, again, done.usage.Used, done.usage.Limit)
	return nil
}

// notArmed words that only half of what was asked is done.
func notArmed(run string, err error) error {
	return fmt.Errorf("run %s is open, but the session is not armed: %w", run, err)
}
