package run

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

// Flag adds --run to a command that cannot do without.
func Flag(a *cli.App, cmd *cobra.Command, run *cli.Text) {
	cmd.Flags().Var(run, "run", "run id")
	cli.RequireFlags(cmd, "run")
	cli.Must(cmd.RegisterFlagCompletionFunc("run", completeIDs(a.Places)))
}

// Limits are what a run is opened with.
type Limits struct {
	MaxConvTurns, MaxDimensions int64
}

// Flags adds the limits to a command that cannot do without.
func (o *Limits) Flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&o.MaxConvTurns, "max-conv-turns", 0, "turns of one dimension, at least 1")
	cmd.Flags().Int64Var(&o.MaxDimensions, "max-dimensions", 0, "dimensions, at least 1; the limit is the product of both")
	cli.RequireFlags(cmd, "max-conv-turns", "max-dimensions")
}

// Open opens a run in the ledger, with the state directory and the ledger where there are none yet. It returns the
// run as it is now and whether it was open before.
func Open(a *cli.App, cmd *cobra.Command, l ledger.Ledger, id string, o Limits) (u ledger.Usage, again bool, err error) {
	if err := cli.AtLeastOne("--max-conv-turns", o.MaxConvTurns); err != nil {
		return u, false, err
	}
	if err := cli.AtLeastOne("--max-dimensions", o.MaxDimensions); err != nil {
		return u, false, err
	}
	state, err := a.StateDir()
	if err != nil {
		return u, false, err
	}
	if err := cli.MakeStateDir(state); err != nil {
		return u, false, err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	r, err := l.OpenRun(ctx, id, o.MaxConvTurns, o.MaxDimensions)
	if err != nil {
		return u, false, err
	}
	a.Changed()
	u, err = l.Usage(ctx, r.Run)
	return u, r.Replayed, err
}

func newOpenCmd(a *cli.App) *cobra.Command {
	var o Limits
	cmd := &cobra.Command{
		Use:   "open RUN",
		Short: "Open a run without arming a session",
		Long: `Opens the run in the ledger, creating state directory and ledger where there are none. Opening a run again with the
same limits changes nothing; other limits are an error, and so is a run that was closed. No session is armed: that is
scope open, which opens the run, too.`,
		Example: `  capgate run open storm-42 --max-conv-turns 4 --max-dimensions 2`,
		Args:    cli.RunArg,
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return open(a, cmd, args[0], o)
		}),
	}
	o.Flags(cmd)
	return cmd
}

func open(a *cli.App, cmd *cobra.Command, id string, o Limits) error {
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	u, again, err := Open(a, cmd, l, id, o)
	if err != nil {
		return err
	}
	if a.AsJSON {
		return a.JSON(struct {
			shown
			Replayed bool `json:"replayed"` // it was open before
		}{show(u), again})
	}
	if again {
		a.Printf("run %s is open already: %d of %d turns used\n", u.Run, u.Used, u.Limit)
	} else {
		a.Printf("run %s is open: limit %s (%d x %s)\n", u.Run, cli.Plural(u.Limit, "turn"), u.MaxConvTurns, cli.Plural(u.MaxDimensions, "dimension"))
	}
	return nil
}
