package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/run"
	"github.com/capgate/capgate/cmd/capgate/internal/shell"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

type turnOptions struct {
	run, dimension, key cli.Text
}

// NewTurn returns the command turn.
func NewTurn(a *cli.App) *cobra.Command {
	cmd := newTurnCmd(a, turnCmd{
		use:   "turn",
		short: "Begin and end turns, or record one that was taken; refused at the cap (exit status 2)",
		long: `Counts turns of a run. A loop begins each turn before it takes it, and ends it when it is over:

  capgate turn begin --run RUN    exit status 0: take the turn; 2: the cap refused it, stop
  capgate turn end --run RUN      the turn is over

While a turn is open its searches pass, also those of the last turn of the run; once that has ended, the hook denies
them.

Without begin or end this records one turn that is begun and ended in one word, for loops that count a turn after they
took it. All of it is on disk and survives a crash when the exit status is 0. At the cap one line on standard error
says what is spent, and the exit status is 2: stop the loop and write up what there is. Any other failure has exit
status 1, and the turn must not be taken.

With --dimension the turn also counts against that dimension: it has at most max-conv-turns turns, and the run at most
max-dimensions dimensions. With --key a repeated call is counted once: the same key, with the same dimension, gives
the first answer again, so a loop may retry what it is not sure about.

While a session is armed for the run, turns are counted only where the ledger still holds what it held then: a ledger
that was replaced or rolled back gives no turns back.`,
		example: `  capgate turn begin --run storm-42 || exit   # in a shell loop
  capgate turn end --run storm-42
  capgate turn --run storm-42 --dimension economics --key interview-7`,
		do: ledger.Ledger.RecordTurn, done: "", kind: ledger.KindTurn,
	})
	begin := newTurnCmd(a, turnCmd{
		use:   "begin",
		short: "Begin a turn, or refuse it at the cap (exit status 2)",
		long: `Begins a turn of the run, before it is taken, and ends the open turn of the same dimension, if there is one. It counts
from now on. When this exits with 0 the turn may be taken: its searches pass until turn end, or until the next begin.
At the cap no turn is begun, the open one of the dimension ends all the same, one line on standard error says what is
spent, and the exit status is 2.

There is one loop for a dimension: two that begin turns of the same one end each other's. With --key the same call again
gives the first answer while that turn is open; once it is over, the key is an error and the next turn needs another.`,
		example: `  capgate turn begin --run storm-42
  capgate turn begin --run storm-42 --dimension economics --key economics-1`,
		do: ledger.Ledger.BeginTurn, done: " begun", kind: ledger.KindTurnBegun,
	})
	end := newTurnCmd(a, turnCmd{
		use:   "end",
		short: "End the open turn",
		long: `Ends the open turn of the run, or of the dimension; with --key only the turn that was begun with it. Where there is
none nothing happens, and the exit status is 0 all the same, so this may stand in any clean-up. After the last turn of
the run the hook denies searches and subagents.`,
		example: `  capgate turn end --run storm-42
  capgate turn end --run storm-42 --dimension economics --key economics-1`,
		do: func(l ledger.Ledger, ctx context.Context, run, dimension, key string, _ ...ledger.Anchor) (ledger.Receipt, error) {
			return l.EndTurn(ctx, run, dimension, key)
		},
		done: " ended", kind: ledger.KindTurnEnded,
	})
	cmd.AddCommand(begin, end)
	cli.ShowUseLine(cmd)
	return cmd
}

// turnCmd is what sets the three commands apart.
type turnCmd struct {
	use, short, long, example string
	kind                      ledger.Kind
	done                      string // what a turn is said to be
	do                        func(l ledger.Ledger, ctx context.Context, run, dimension, key string, anchors ...ledger.Anchor) (ledger.Receipt, error)
}

func newTurnCmd(a *cli.App, c turnCmd) *cobra.Command {
	var o turnOptions
	cmd := &cobra.Command{
		Use: c.use, Short: c.short, Long: c.long, Example: c.example,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return turn(a, cmd, c, o) }),
	}
	if c.kind == ledger.KindTurn {
		cmd.GroupID = cli.GroupLoop
	}
	run.FlagOrVariable(a, cmd, &o.run)
	cmd.Flags().Var(&o.dimension, "dimension", "dimension that the turn belongs to; none by default")
	cmd.Flags().Var(&o.key, "key", "idempotency key: the same call again counts once")
	cli.Must(cmd.RegisterFlagCompletionFunc("dimension", run.CompleteDimensions(a.Places)))
	return cmd
}

// countedTurn is what `turn --json`, `turn begin --json` and `turn end --json` print.
type countedTurn struct {
	Run       string      `json:"run"`
	Kind      ledger.Kind `json:"kind"`
	Turn      int64       `json:"turn"` // turns of the run that are counted, this one among them
	Limit     int64       `json:"limit"`
	Remaining int64       `json:"remaining"` // after this turn
	Open      int64       `json:"open"`      // turns of the run that are begun and not ended
	Dimension string      `json:"dimension,omitempty"`
	Key       string      `json:"key,omitempty"`
	At        time.Time   `json:"at"`
	Replayed  bool        `json:"replayed"` // nothing was counted or ended: this is the first answer
	Seq       uint64      `json:"seq"`
	Hash      string      `json:"hash"`
	// HookSilent names the armed sessions of this run whose hook was not heard in any turn since they were armed.
	HookSilent []string `json:"hook_silent,omitempty"`
	// Uncounted names the armed sessions that made capped calls before any turn was counted.
	Uncounted []string `json:"uncounted,omitempty"`
	// NotArmed is the client's session that this was called in, where it is not armed for the run.
	NotArmed string `json:"not_armed,omitempty"`
}

func turn(a *cli.App, cmd *cobra.Command, c turnCmd, o turnOptions) error {
	a.About(string(o.run), "")
	if c.kind == ledger.KindTurnBegun {
		if err := a.NotHalted(); err != nil {
			return err
		}
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	armed := armedFor(a.Places, string(o.run))
	r, err := c.do(l, ctx, string(o.run), string(o.dimension), string(o.key), anchors(armed)...)
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
	t := countedTurn{
		Run: r.Run, Kind: c.kind, Turn: r.Used, Limit: r.Limit, Remaining: r.Limit - r.Used, Open: r.Turns.Open, Dimension: r.Dimension,
		Key: r.Key, At: r.At, Replayed: r.Replayed, Seq: r.Seq, Hash: r.Hash,
	}
	if c.kind != ledger.KindTurnEnded {
		t.NotArmed = notArmedFor(a, armed)
	}
	if !r.Replayed {
		t.hear(a.Places, armed, r)
	}
	if a.AsJSON {
		return a.JSON(t)
	}
	t.print(a, c.done)
	return nil
}

func (t countedTurn) print(a *cli.App, done string) {
	if t.Kind == ledger.KindTurnEnded && t.Replayed {
		a.Printf("no turn is open that this could end (%d of %d, run %s)\n", t.Turn, t.Limit, t.Run)
		return
	}
	a.Printf("turn %d of %d%s (run %s", t.Turn, t.Limit, done, t.Run)
	if t.Dimension != "" {
		a.Printf(", dimension %s", t.Dimension)
	}
	if t.Replayed {
		a.Printf(", recorded before with this key")
	}
	a.Printf(")\n")
	for _, session := range t.HookSilent {
		a.Printf("hook: silent for session %s since it was armed: only this check holds, run capgate doctor\n", session)
	}
	for _, session := range t.Uncounted {
		a.Printf("uncounted: session %s has searched before its first turn was counted: begin each turn before it is taken\n", session)
	}
	if t.NotArmed != "" {
		a.Printf("not armed: the hook does not hold session %s to this run: capgate scope open --run %s --session %s\n", t.NotArmed, shell.Word(t.Run), t.NotArmed)
	}
}

// hear notes the armed sessions in which one of the two halves of the bound does not work.
func (t *countedTurn) hear(p *cli.Places, armed []scope.Marker, r ledger.Receipt) {
	state, err := p.StateDir()
	if err != nil {
		return
	}
	before := r.Turns // as it was before this turn
	before.Newest = before.Before
	if r.Kind == ledger.KindTurnBegun && r.Ends == 0 {
		before.Open--
	}
	for _, m := range armed {
		beat := scope.Heard(state, m.Session)
		switch {
		case m.Hear(beat, r.Turns) == scope.Silent:
			t.HookSilent = append(t.HookSilent, m.Session)
		case r.Kind != ledger.KindTurnEnded && m.Hear(beat, before) == scope.Uncounted:
			t.Uncounted = append(t.Uncounted, m.Session)
		}
	}
}

// notArmedFor returns the session of the client whose shell this runs in, where it is not among those that are armed. A
// person's own shell has none.
func notArmedFor(a *cli.App, armed []scope.Marker) string {
	for _, name := range cli.SessionVariables {
		session, _ := a.Lookup(name)
		if session == "" || !scope.ValidSession(session) {
			continue
		}
		for _, m := range armed {
			if m.Session == session {
				return ""
			}
		}
		return session
	}
	return ""
}

// Anchors returns what the markers of the run's armed sessions say that the ledger held.
func Anchors(p *cli.Places, run string) []ledger.Anchor { return anchors(armedFor(p, run)) }

func anchors(armed []scope.Marker) []ledger.Anchor {
	var all []ledger.Anchor
	for _, m := range armed {
		if m.Anchor != nil {
			all = append(all, ledger.Anchor(*m.Anchor))
		}
	}
	return all
}

// armedFor returns the markers of a run, expired ones as well: they remember what the ledger held. One that cannot be read
// is for the hook to judge, and without a state directory there is none.
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
		if m.Err == nil && m.Run == run {
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
		return fmt.Sprintf("dimensions are spent, none is left for %s (%d of %d, run %s). This is final for this run: do not retry. "+
			"Go on with one of its dimensions, or write up what you have", r.Dimension, r.Used, r.Limit, r.Run)
	}
	return fmt.Sprintf("turn budget spent (%d of %d, run %s). This is final for this run: do not retry. "+
		"Write up what you have", r.Used, r.Limit, r.Run)
}
