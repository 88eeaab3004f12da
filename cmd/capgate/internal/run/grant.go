package run

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

type grantOptions struct {
	run       string
	grant     ledger.Grant
	dimension cli.Text
	reason    cli.Text
}

func newGrantCmd(a *cli.App) *cobra.Command {
	var o grantOptions
	cmd := &cobra.Command{
		Use:   "grant RUN",
		Short: "Raise a run's limit",
		Long: `Raises the run's limit: by some turns, by some turns of one dimension, or by dimensions of max-conv-turns turns each.
The reason is recorded with the grant, and capgate ledger export shows it. A loop that ended at the cap goes on with the
same command line.

Turns that are granted without --dimension are for turns without one, or for dimensions that are not full.`,
		Example: `  capgate run grant storm-42 --turns 4 --reason "one more source, agreed in review"
  capgate run grant storm-42 --turns 2 --dimension economics --reason "two questions are open"
  capgate run grant storm-42 --dimensions 1 --reason "the regulator's view is missing"`,
		Args:              cli.RunArg,
		ValidArgsFunction: completeArg(a.Places),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			return grant(a, cmd, o)
		}),
	}
	cmd.Flags().Int64Var(&o.grant.Turns, "turns", 0, "turns to add, at least 1")
	cmd.Flags().Var(&o.dimension, "dimension", "the dimension that --turns are for")
	cmd.Flags().Int64Var(&o.grant.Dimensions, "dimensions", 0, "dimensions to add, at least 1")
	cmd.Flags().Var(&o.reason, "reason", "why; recorded in the ledger")
	return cmd
}

func grant(a *cli.App, cmd *cobra.Command, o grantOptions) error {
	turns, dimensions := cmd.Flags().Changed("turns"), cmd.Flags().Changed("dimensions")
	switch {
	case turns == dimensions:
		return cli.Usagef("grant needs --turns or --dimensions, one of them")
	case dimensions && o.dimension != "":
		return cli.Usagef("--dimension is the one that --turns are for: leave it out with --dimensions")
	case turns:
		if err := cli.AtLeastOne("--turns", o.grant.Turns); err != nil {
			return err
		}
	default:
		if err := cli.AtLeastOne("--dimensions", o.grant.Dimensions); err != nil {
			return err
		}
	}
	if o.reason == "" {
		return cli.Usagef("missing --reason")
	}
	if err := a.OperatorOnly("nothing is granted"); err != nil {
		return err
	}
	o.grant.Dimension = string(o.dimension)
	a.About(o.run, "")
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	r, err := l.Grant(ctx, o.run, o.grant, string(o.reason))
	if err != nil {
		return err
	}
	a.Changed()
	if a.AsJSON {
		return a.JSON(change(r))
	}
	what := cli.Plural(o.grant.Turns, "turn")
	switch {
	case dimensions:
		what = cli.Plural(o.grant.Dimensions, "dimension")
	case o.dimension != "":
		what += " of dimension " + string(o.dimension)
	}
	a.Printf("run %s is granted %s: %d of %d used\n", r.Run, what, r.Used, r.Limit)
	if dimensions || o.dimension != "" {
		return nil
	}
	// Best effort: the grant is recorded.
	if u, err := l.Usage(ctx, o.run); err == nil && len(u.Dimensions) > 0 {
		a.Printf("only the run's limit is raised: granted turns are for turns without --dimension, or for dimensions that are not full\n")
	}
	return nil
}
