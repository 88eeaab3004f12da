package run

import (
	"errors"
	"fmt"

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

// FlagOrVariable adds --run to a command that may run below capgate loop or run exec, which name the run in the environment.
func FlagOrVariable(a *cli.App, cmd *cobra.Command, run *cli.Text) {
	cmd.Flags().Var(run, "run", "run id; default "+Variable)
	cli.Must(cmd.RegisterFlagCompletionFunc("run", completeIDs(a.Places)))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if id, _ := a.Lookup(Variable); *run == "" {
			*run = cli.Text(id)
		}
		if *run == "" {
			return cli.Usagef("missing --run")
		}
		return nil
	}
}

// Variable names the run in the environment of what capgate loop and run exec start.
const Variable = "CAPGATE_RUN"

// Limits are what a run is opened with.
type Limits struct {
	MaxConvTurns, MaxDimensions int64
}

// Flags adds the limits to a command that cannot do without.
func (o *Limits) Flags(cmd *cobra.Command) {
	o.OptionalFlags(cmd)
	cli.RequireFlags(cmd, "max-conv-turns")
}

// OptionalFlags adds the limits to a command that can do without them where the run is open: see [OpenOrFind].
func (o *Limits) OptionalFlags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&o.MaxConvTurns, "max-conv-turns", 0, "turns of one dimension, at least 1")
	cmd.Flags().Int64Var(&o.MaxDimensions, "max-dimensions", 1, "dimensions, at least 1; the limit is the product of both")
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

// OpenOrFind opens a run, or without limits finds one that is open already.
func OpenOrFind(a *cli.App, cmd *cobra.Command, l ledger.Ledger, id string, o Limits) (ledger.Usage, error) {
	if cmd.Flags().Changed("max-conv-turns") || cmd.Flags().Changed("max-dimensions") {
		u, _, err := Open(a, cmd, l, id, o)
		return u, err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	u, err := l.Usage(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrRunUnknown), errors.Is(err, ledger.ErrMissing):
		return u, cli.Usagef("run %s is not open yet: give --max-conv-turns, and --max-dimensions where it has more than one", id)
	case err == nil && u.Closed:
		return u, fmt.Errorf("%w: %s was ended by run close and takes no more turns: choose another id", ledger.ErrRunClosed, id)
	}
	return u, err
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
	a.About(id, "")
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
