package loop

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/hearing"
	"github.com/capgate/capgate/cmd/capgate/internal/run"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

type turnOptions struct {
	run, dimension, key cli.Text
}

// NewTurn returns the command turn.
func NewTurn(a *cli.App) *cobra.Command {
	var o turnOptions
	cmd := &cobra.Command{
		Use:     "turn",
		GroupID: cli.GroupLoop,
		Short:   "Record one turn, or refuse it at the cap (exit status 2)",
		Long: `Records one turn of the run, before it is taken. When this prints the turn and exits with 0, the turn is counted and
survives a crash. At the cap nothing is recorded, one line on standard error says what is spent, and the exit status is
2: stop the loop and write up what there is. Any other failure has exit status 1, and the turn must not be taken.

With --dimension the turn also counts against that dimension: it has at most max-conv-turns turns, and the run at most
max-dimensions dimensions. With --key a repeated call is counted once: the same key on the same run gives the first
answer again, also at the cap, so a loop may retry what it is not sure about.

While a session is armed for the run, the turn is recorded only where the ledger still holds what it held then: a ledger
that was replaced or rolled back gives no turns back.`,
		Example: `  capgate turn --run storm-42
  capgate turn --run storm-42 --dimension economics --key interview-7
  capgate turn --run storm-42 || exit   # in a shell loop`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return turn(a, cmd, o)
		}),
	}
	run.Flag(a, cmd, &o.run)
	cmd.Flags().Var(&o.dimension, "dimension", "dimension that the turn belongs to; none by default")
	cmd.Flags().Var(&o.key, "key", "idempotency key: the same key on the same run counts once")
	cli.Must(cmd.RegisterFlagCompletionFunc("dimension", run.CompleteDimensions(a.Places)))
	return cmd
}

// recordedTurn is what `turn --json` prints.
type recordedTurn struct {
	Run       string    `json:"run"`
	Turn      int64     `json:"turn"` // the number of this turn in its run, from 1
	Limit     int64     `json:"limit"`
	Remaining int64     `json:"remaining"` // after this turn
	Dimension string    `json:"dimension,omitempty"`
	Key       string    `json:"key,omitempty"`
	At        time.Time `json:"at"`
	Replayed  bool      `json:"replayed"` // the key was there: nothing was recorded, this is the first answer
	Seq       uint64    `json:"seq"`
	Hash      string    `json:"hash"`
	// HookSilent names the armed sessions of this run whose hook was not heard since they were armed, though it is not
	// the first turn since then.
	HookSilent []string `json:"hook_silent,omitempty"`
}

func turn(a *cli.App, cmd *cobra.Command, o turnOptions) error {
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	armed := armedFor(a.Places, string(o.run))
	anchors := make([]ledger.Anchor, len(armed))
	for i, m := range armed {
		anchors[i] = ledger.Anchor(*m.Anchor)
	}
	r, err := l.RecordTurn(ctx, string(o.run), string(o.dimension), string(o.key), anchors...)
	if spent, ok := errors.AsType[*ledger.SpentError](err); ok {
		return cli.WithStatus(cli.StatusRefused, refusal{spent})
	}
	if err != nil {
		for _, m := range armed { // which of them was it?
			if lost := stillHeld(a, cmd, l, m); errors.Is(lost, ledger.ErrAnchorLost) {
				return fmt.Errorf("not recorded: %w", lost)
			}
		}
		return err
	}
	if !r.Replayed {
		a.Changed()
	}
	silent := silentSessions(a.Places, armed, r)
	if a.AsJSON {
		return a.JSON(recordedTurn{
			Run: r.Run, Turn: r.Used, Limit: r.Limit, Remaining: r.Limit - r.Used, Dimension: r.Dimension, Key: r.Key,
			At: r.At, Replayed: r.Replayed, Seq: r.Seq, Hash: r.Hash, HookSilent: silent,
		})
	}
	a.Printf("turn %d of %d (run %s", r.Used, r.Limit, r.Run)
	if r.Dimension != "" {
		a.Printf(", dimension %s", r.Dimension)
	}
	if r.Replayed {
		a.Printf(", recorded before with this key")
	}
	a.Printf(")\n")
	for _, session := range silent {
		a.Printf("hook: silent for session %s since it was armed: only this check holds, run capgate doctor\n", session)
	}
	return nil
}

// silentSessions returns the armed sessions whose hook should have been heard by the time of this turn.
func silentSessions(p *cli.Places, armed []scope.Marker, r ledger.Receipt) []string {
	state, err := p.StateDir()
	if err != nil || r.Replayed {
		return nil
	}
	var silent []string
	for _, m := range armed {
		f := hearing.Facts{Heard: !m.Silent(state), Used: r.Used, Newest: r.Seq, Armed: m.Anchor.Seq}
		if hearing.Silence(hearing.Turn, f) == hearing.Silent {
			silent = append(silent, m.Session)
		}
	}
	return silent
}

// armedFor returns the markers of a run that have an anchor, expired ones as well: they remember what the ledger held.
// One that cannot be read is for the hook to judge, and without a state directory there is none.
func armedFor(p *cli.Places, run string) []scope.Marker {
	state, err := p.StateDir()
	if err != nil {
		return nil
	}
	all, err := scope.List(state)
	if err != nil {
		return nil
	}
	var armed []scope.Marker
	for _, m := range all {
		if m.Err == nil && m.Run == run && m.Anchor != nil {
			armed = append(armed, m.Marker)
		}
	}
	return armed
}

// refusal words a refused turn for the loop, and for the model that reads its output.
type refusal struct{ *ledger.SpentError }

func (r refusal) Error() string {
	switch r.Bound {
	case "dimension-turns":
		return fmt.Sprintf("turn budget of dimension %s spent (%d of %d, run %s). This is final for this dimension: do not retry. "+
			"Go on with another dimension, or write up what you have", r.Dimension, r.Used, r.Limit, r.Run)
	case "dimensions":
		return fmt.Sprintf("no dimension left for %s (%d of %d, run %s). This is final for this run: do not retry. "+
			"Go on with one of its dimensions, or write up what you have", r.Dimension, r.Used, r.Limit, r.Run)
	}
	return fmt.Sprintf("turn budget spent (%d of %d, run %s). This is final for this run: do not retry. "+
		"Write up what you have", r.Used, r.Limit, r.Run)
}
