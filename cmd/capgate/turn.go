package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/ledger"
)

type turnOptions struct {
	run            flagText
	dimension, key string
}

func newTurnCmd(a *app) *cobra.Command {
	var o turnOptions
	cmd := &cobra.Command{
		Use:     "turn",
		GroupID: groupLoop,
		Short:   "Record one turn, or refuse it at the cap (exit status 2)",
		Long: `Records one turn of the run, before it is taken. When this prints the turn and exits with 0, the turn is counted and
survives a crash. At the cap nothing is recorded, one line on standard error says what is spent, and the exit status is
2: stop the loop and write up what there is. Any other failure has exit status 1, and the turn must not be taken.

With --dimension the turn also counts against that dimension: it has at most max-conv-turns turns, and the run at most
max-dimensions dimensions. With --key a repeated call is counted once: the same key on the same run gives the first
answer again, also at the cap, so a loop may retry what it is not sure about.`,
		Example: `  capgate turn --run storm-42
  capgate turn --run storm-42 --dimension economics --key interview-7
  capgate turn --run storm-42 || exit   # in a shell loop`,
		Args: noArgs,
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			return a.turn(cmd, o)
		}),
	}
	runFlag(a, cmd, &o.run)
	cmd.Flags().StringVar(&o.dimension, "dimension", "", "dimension that the turn belongs to; none by default")
	cmd.Flags().StringVar(&o.key, "key", "", "idempotency key: the same key on the same run counts once")
	must(cmd.RegisterFlagCompletionFunc("dimension", a.completeDimensions))
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
}

func (a *app) turn(cmd *cobra.Command, o turnOptions) error {
	l, err := a.openLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.context(cmd)
	defer cancel()
	r, err := l.RecordTurn(ctx, string(o.run), o.dimension, o.key)
	if spent, ok := errors.AsType[*ledger.SpentError](err); ok {
		return refusal{spent}
	}
	if err != nil {
		return err
	}
	a.changes = !r.Replayed
	if a.json {
		return a.printJSON(recordedTurn{
			Run: r.Run, Turn: r.Used, Limit: r.Limit, Remaining: r.Limit - r.Used, Dimension: r.Dimension, Key: r.Key,
			At: r.At, Replayed: r.Replayed, Seq: r.Seq, Hash: r.Hash,
		})
	}
	a.printf("turn %d of %d (run %s", r.Used, r.Limit, r.Run)
	if r.Dimension != "" {
		a.printf(", dimension %s", r.Dimension)
	}
	if r.Replayed {
		a.printf(", recorded before with this key")
	}
	a.printf(")\n")
	return nil
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
