package run

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

type grantOptions struct {
	run    string
	turns  int64
	reason cli.Text
}

func newGrantCmd(a *cli.App) *cobra.Command {
	var o grantOptions
	cmd := &cobra.Command{
		Use:   "grant RUN",
		Short: "Raise a run's limit",
		Long: `Raises the run's limit by some turns. Who granted what, and why, is a question for later: the reason is recorded with
the grant. The bounds of dimensions stay what they were, so a run whose dimensions are all spent takes granted turns
without a dimension only.`,
		Example:           `  capgate run grant storm-42 --turns 4 --reason "one more dimension, agreed in review"`,
		Args:              cli.RunArg,
		ValidArgsFunction: completeArg(a.Places),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			return grant(a, cmd, o)
		}),
	}
	cmd.Flags().Int64Var(&o.turns, "turns", 0, "turns to add, at least 1")
	cmd.Flags().Var(&o.reason, "reason", "why; recorded in the ledger")
	cli.RequireFlags(cmd, "turns", "reason")
	return cmd
}

func grant(a *cli.App, cmd *cobra.Command, o grantOptions) error {
	if err := cli.AtLeastOne("--turns", o.turns); err != nil {
		return err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	r, err := l.Grant(ctx, o.run, ledger.Grant{Turns: o.turns}, string(o.reason))
	if err != nil {
		return err
	}
	a.Changed()
	if a.AsJSON {
		return a.JSON(change(r))
	}
	a.Printf("run %s is granted %s: %d of %d used\n", r.Run, cli.Plural(r.Entry.Turns, "turn"), r.Used, r.Limit)
	// Best effort: the grant is recorded.
	if u, err := l.Usage(ctx, o.run); err == nil && len(u.Dimensions) > 0 {
		a.Printf("only the run's limit is raised: granted turns are for turns without --dimension, or for dimensions that are not full\n")
	}
	return nil
}
