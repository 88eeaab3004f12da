package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// completeArg completes the one run id of a command.
func completeArg(p *cli.Places) cobra.CompletionFunc {
	runs := completeIDs(p)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cli.NoFiles
		}
		return runs(cmd, args, prefix)
	}
}

// completeIDs offers the ids of runs. A ledger that cannot be read offers none: a shell has no place for an error.
func completeIDs(p *cli.Places) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		l, err := p.OpenLedger()
		if err != nil {
			return nil, cli.NoFiles
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.Patience)
		defer cancel()
		runs, err := l.Runs(ctx)
		if err != nil {
			return nil, cli.NoFiles
		}
		var found []string
		for _, u := range slices.Backward(runs) {
			s := show(u)
			found = cli.Candidate(found, s.Run, fmt.Sprintf("%s, %d of %d", s.status(), s.Used, s.Limit))
		}
		return found, cli.NoFiles | cobra.ShellCompDirectiveKeepOrder
	}
}

// CompleteDimensions offers the dimensions of the run that is named by --run.
func CompleteDimensions(p *cli.Places) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		l, err := p.OpenLedger()
		if err != nil {
			return nil, cli.NoFiles
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cli.Patience)
		defer cancel()
		u, err := l.Usage(ctx, cmd.Flag("run").Value.String())
		if err != nil {
			return nil, cli.NoFiles
		}
		var found []string
		for _, name := range slices.Sorted(maps.Keys(u.Dimensions)) {
			found = cli.Candidate(found, name, fmt.Sprintf("%d of %d", u.Dimensions[name], u.MaxConvTurns))
		}
		return found, cli.NoFiles
	}
}
