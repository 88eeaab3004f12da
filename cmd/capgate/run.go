package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/ledger"
)

func newRunCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "run",
		GroupID: groupOperator,
		Short:   "Open, show, extend and close runs",
		Long: `A run is one execution of a research loop. Its limit is max-conv-turns x max-dimensions turns, plus what was granted
later. All of it is in the ledger, which only ever grows.`,
		Example: `  capgate run list
  capgate run show storm-42
  capgate run grant storm-42 --turns 4 --reason "one more dimension, agreed in review"`,
	}, newRunOpenCmd(a), newRunShowCmd(a), newRunListCmd(a), newRunCloseCmd(a), newRunGrantCmd(a))
}

// runFlag adds --run to a command that cannot do without.
func runFlag(a *app, cmd *cobra.Command, run *flagText) {
	cmd.Flags().Var(run, "run", "run id")
	requireFlags(cmd, "run")
	must(cmd.RegisterFlagCompletionFunc("run", a.completeRuns))
}

type runOpenOptions struct {
	run                         flagText
	maxConvTurns, maxDimensions int64
}

func limitFlags(cmd *cobra.Command, o *runOpenOptions) {
	cmd.Flags().Int64Var(&o.maxConvTurns, "max-conv-turns", 0, "turns of one dimension, at least 1")
	cmd.Flags().Int64Var(&o.maxDimensions, "max-dimensions", 0, "dimensions, at least 1; the limit is the product of both")
	requireFlags(cmd, "max-conv-turns", "max-dimensions")
}

// openRun opens a run in the ledger, with the state directory and the ledger where there are none yet. It returns the
// run as it is now and whether it was open before.
func (a *app) openRun(cmd *cobra.Command, l ledger.Ledger, o runOpenOptions) (u ledger.Usage, again bool, err error) {
	for _, limit := range []struct {
		flag string
		n    int64
	}{{"max-conv-turns", o.maxConvTurns}, {"max-dimensions", o.maxDimensions}} {
		if limit.n < 1 {
			return u, false, usagef("--%s is %d, it must be at least 1", limit.flag, limit.n)
		}
	}
	state, err := a.stateDir()
	if err != nil {
		return u, false, err
	}
	if err := makeStateDir(state); err != nil {
		return u, false, err
	}
	ctx, cancel := a.context(cmd)
	defer cancel()
	r, err := l.OpenRun(ctx, string(o.run), o.maxConvTurns, o.maxDimensions)
	if err != nil {
		return u, false, err
	}
	a.changes = true
	u, err = l.Usage(ctx, r.Run)
	return u, r.Replayed, err
}

func newRunOpenCmd(a *app) *cobra.Command {
	var o runOpenOptions
	cmd := &cobra.Command{
		Use:   "open RUN",
		Short: "Open a run without arming a session",
		Long: `Opens the run in the ledger, creating state directory and ledger where there are none. Opening a run again with the
same limits changes nothing; other limits are an error, and so is a run that was closed. No session is armed: that is
scope open, which opens the run, too.`,
		Example: `  capgate run open storm-42 --max-conv-turns 4 --max-dimensions 2`,
		Args:    runArg,
		RunE: a.do(func(cmd *cobra.Command, args []string) error {
			o.run = flagText(args[0])
			return a.runOpen(cmd, o)
		}),
	}
	limitFlags(cmd, &o)
	return cmd
}

func (a *app) runOpen(cmd *cobra.Command, o runOpenOptions) error {
	l, err := a.openLedger()
	if err != nil {
		return err
	}
	u, again, err := a.openRun(cmd, l, o)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			runShown
			Replayed bool `json:"replayed"` // it was open before
		}{showRun(u), again})
	}
	if again {
		a.printf("run %s is open already: %d of %d turns used\n", u.Run, u.Used, u.Limit)
	} else {
		a.printf("run %s is open: limit %s (%d x %s)\n", u.Run, plural(u.Limit, "turn"), u.MaxConvTurns, plural(u.MaxDimensions, "dimension"))
	}
	return nil
}

// runShown is what `run show --json` prints, and one element of `run list --json`. The first seven fields are
// documented and stay.
type runShown struct {
	Run           string           `json:"run"`
	Used          int64            `json:"used"`
	Limit         int64            `json:"limit"`
	Remaining     int64            `json:"remaining"`
	Dimensions    map[string]int64 `json:"dimensions"` // turns of each; turns without a dimension are in none
	OpenedAt      time.Time        `json:"opened_at"`
	Closed        bool             `json:"closed"`
	MaxConvTurns  int64            `json:"max_conv_turns"`
	MaxDimensions int64            `json:"max_dimensions"`
	Granted       int64            `json:"granted"`
	LastAt        time.Time        `json:"last_at"`
	LastSeq       uint64           `json:"last_seq"`
}

func showRun(u ledger.Usage) runShown {
	s := runShown{
		Run: u.Run, Used: u.Used, Limit: u.Limit, Remaining: u.Remaining, Dimensions: u.Dimensions, OpenedAt: u.OpenedAt,
		Closed: u.Closed, MaxConvTurns: u.MaxConvTurns, MaxDimensions: u.MaxDimensions, Granted: u.Granted,
		LastAt: u.LastAt, LastSeq: u.LastSeq,
	}
	if s.Dimensions == nil {
		s.Dimensions = map[string]int64{} // "{}", never "null"
	}
	return s
}

// status says in one word whether the run takes turns.
func (s runShown) status() string {
	switch {
	case s.Closed:
		return "closed"
	case s.Remaining <= 0:
		return "spent"
	}
	return "open"
}

func newRunShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show RUN",
		Short: "Show what a run has spent and what remains",
		Long: `Shows the run's counters: turns used and left, and the turns of each dimension. "spent" means that the next turn would
be refused. Reads only, so it is safe at any time.`,
		Example: `  capgate run show storm-42
  capgate run show storm-42 --json`,
		Args:              runArg,
		ValidArgsFunction: a.completeRunArg,
		RunE: a.do(func(cmd *cobra.Command, args []string) error {
			return a.runShow(cmd, args[0])
		}),
	}
}

func (a *app) runShow(cmd *cobra.Command, run string) error {
	l, err := a.openLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.context(cmd)
	defer cancel()
	u, err := l.Usage(ctx, run)
	if err != nil {
		return err
	}
	s := showRun(u)
	if a.json {
		return a.printJSON(s)
	}
	rows := [][]string{
		{"run", s.Run},
		{"status", s.status()},
		{"used", fmt.Sprintf("%d of %d", s.Used, s.Limit)},
		{"remaining", strconv.FormatInt(s.Remaining, 10)},
		{"limits", fmt.Sprintf("%s x %s, %d granted", plural(s.MaxConvTurns, "turn"), plural(s.MaxDimensions, "dimension"), s.Granted)},
		{"opened", stamp(s.OpenedAt)},
		{"last entry", fmt.Sprintf("%s (%d)", stamp(s.LastAt), s.LastSeq)},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dimensions)) {
		rows = append(rows, []string{"dimension " + name, fmt.Sprintf("%d of %d", s.Dimensions[name], s.MaxConvTurns)})
	}
	a.table(rows...)
	return nil
}

func newRunListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all runs, oldest first",
		Long: `Lists every run in the ledger, oldest first. "open" runs take turns, "spent" ones are at their limit, "closed" ones
are ended.`,
		Example: `  capgate run list
  capgate run list --json`,
		Args: noArgs,
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			return a.runList(cmd)
		}),
	}
}

func (a *app) runList(cmd *cobra.Command) error {
	l, err := a.openLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.context(cmd)
	defer cancel()
	all, err := l.Runs(ctx)
	if err != nil {
		return err
	}
	runs := []runShown{}
	rows := [][]string{{"RUN", "STATUS", "USED", "LIMIT", "REMAINING", "DIMENSIONS", "OPENED"}}
	for _, u := range all {
		s := showRun(u)
		runs = append(runs, s)
		rows = append(rows, []string{
			s.Run, s.status(), strconv.FormatInt(s.Used, 10), strconv.FormatInt(s.Limit, 10),
			strconv.FormatInt(s.Remaining, 10), fmt.Sprintf("%d of %d", len(s.Dimensions), s.MaxDimensions), stamp(s.OpenedAt),
		})
	}
	if a.json {
		return a.printJSON(runs)
	}
	a.table(rows...)
	return nil
}

// runChanged is what `run close --json` and `run grant --json` print.
type runChanged struct {
	Run       string    `json:"run"`
	Used      int64     `json:"used"`
	Limit     int64     `json:"limit"`
	Remaining int64     `json:"remaining"`
	Closed    bool      `json:"closed"`
	Granted   int64     `json:"granted,omitempty"` // by this command
	Reason    string    `json:"reason,omitempty"`
	At        time.Time `json:"at"`
	Replayed  bool      `json:"replayed"` // it was closed before
	Seq       uint64    `json:"seq"`
	Hash      string    `json:"hash"`
}

func changeRun(r ledger.Receipt) runChanged {
	return runChanged{
		Run: r.Run, Used: r.Used, Limit: r.Limit, Remaining: r.Limit - r.Used, Closed: r.Kind == ledger.KindRunClosed,
		Granted: r.Entry.Turns, Reason: r.Reason, At: r.At, Replayed: r.Replayed, Seq: r.Seq, Hash: r.Hash,
	}
}

func newRunCloseCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "close RUN",
		Short: "End a run: it takes no more turns",
		Long: `Ends the run for good: it takes no more turns and no grant, and cannot be opened again. Closing again changes nothing.
Sessions stay armed: disarm them with scope close.`,
		Example:           `  capgate run close storm-42`,
		Args:              runArg,
		ValidArgsFunction: a.completeRunArg,
		RunE: a.do(func(cmd *cobra.Command, args []string) error {
			return a.runClose(cmd, args[0])
		}),
	}
}

func (a *app) runClose(cmd *cobra.Command, run string) error {
	l, err := a.openLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.context(cmd)
	defer cancel()
	r, err := l.CloseRun(ctx, run)
	if err != nil {
		return err
	}
	a.changes = !r.Replayed
	if a.json {
		return a.printJSON(changeRun(r))
	}
	already := ""
	if r.Replayed {
		already = " already"
	}
	a.printf("run %s is closed%s: %d of %d turns used\n", r.Run, already, r.Used, r.Limit)
	return nil
}

type runGrantOptions struct {
	run    string
	turns  int64
	reason flagText
}

func newRunGrantCmd(a *app) *cobra.Command {
	var o runGrantOptions
	cmd := &cobra.Command{
		Use:   "grant RUN",
		Short: "Raise a run's limit",
		Long: `Raises the run's limit by some turns. Who granted what, and why, is a question for later: the reason is recorded with
the grant. The bounds of dimensions stay what they were, so a run whose dimensions are all spent takes granted turns
without a dimension only.`,
		Example:           `  capgate run grant storm-42 --turns 4 --reason "one more dimension, agreed in review"`,
		Args:              runArg,
		ValidArgsFunction: a.completeRunArg,
		RunE: a.do(func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			return a.runGrant(cmd, o)
		}),
	}
	cmd.Flags().Int64Var(&o.turns, "turns", 0, "turns to add, at least 1")
	cmd.Flags().Var(&o.reason, "reason", "why; recorded in the ledger")
	requireFlags(cmd, "turns", "reason")
	return cmd
}

func (a *app) runGrant(cmd *cobra.Command, o runGrantOptions) error {
	if o.turns < 1 {
		return usagef("--turns is %d, it must be at least 1", o.turns)
	}
	l, err := a.openLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.context(cmd)
	defer cancel()
	r, err := l.Grant(ctx, o.run, ledger.Grant{Turns: o.turns}, string(o.reason))
	if err != nil {
		return err
	}
	a.changes = true
	if a.json {
		return a.printJSON(changeRun(r))
	}
	a.printf("run %s is granted %s: %d of %d used\n", r.Run, plural(r.Entry.Turns, "turn"), r.Used, r.Limit)
	// Best effort: the grant is recorded.
	if u, err := l.Usage(ctx, o.run); err == nil && len(u.Dimensions) > 0 {
		a.printf("only the run's limit is raised: granted turns are for turns without --dimension, or for dimensions that are not full\n")
	}
	return nil
}
