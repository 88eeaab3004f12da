package run

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

func newShowCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show RUN",
		Short: "Show what a run has spent and what remains",
		Long: `Shows the run's counters: turns used and left, and the turns of each dimension. "spent" means that the next turn would
be refused, "last turn" that it would and that one is still open. Reads only, so it is safe at any time.`,
		Example: `  capgate run show storm-42
  capgate run show storm-42 --json`,
		Args:              cli.RunArg,
		ValidArgsFunction: completeArg(a.Places),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return showOne(a, cmd, args[0])
		}),
	}
}

func showOne(a *cli.App, cmd *cobra.Command, run string) error {
	a.About(run, "")
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	u, err := l.Usage(ctx, run)
	if err != nil {
		return err
	}
	s := show(u)
	if a.AsJSON {
		return a.JSON(s)
	}
	a.ShowPower()
	rows := [][]string{
		{"run", s.Run},
		{"status", s.status()},
		{"used", fmt.Sprintf("%d of %d", s.Used, s.Limit) + openTurns(s.Open)},
		{"remaining", strconv.FormatInt(s.Remaining, 10)},
		{"limits", fmt.Sprintf("%s x %s, %d granted", cli.Plural(s.MaxConvTurns, "turn"), cli.Plural(s.MaxDimensions, "dimension"), s.Granted)},
		{"opened", cli.Stamp(s.OpenedAt)},
		{"last entry", fmt.Sprintf("%s (%d)", cli.Stamp(s.LastAt), s.LastSeq)},
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dimensions)) {
		rows = append(rows, []string{"dimension " + name, fmt.Sprintf("%d of %d", s.Dimensions[name], s.MaxConvTurns+s.DimensionGrants[name])})
	}
	a.Table(rows...)
	return nil
}

// openTurns is what is said beside the turns that are used.
func openTurns(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d open", n)
}

func newListCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all runs, oldest first",
		Long: `Lists every run in the ledger, oldest first. "open" runs take turns, "last turn" ones are in theirs, "spent" ones are
at their limit, "closed" ones are ended.`,
		Example: `  capgate run list
  capgate run list --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd)
		}),
	}
}

func list(a *cli.App, cmd *cobra.Command) error {
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	all, err := l.Runs(ctx)
	if err != nil {
		return err
	}
	runs := []shown{}
	rows := [][]string{{"RUN", "STATUS", "USED", "LIMIT", "REMAINING", "DIMENSIONS", "OPENED"}}
	for _, u := range all {
		s := show(u)
		runs = append(runs, s)
		rows = append(rows, []string{
			s.Run, s.status(), strconv.FormatInt(s.Used, 10), strconv.FormatInt(s.Limit, 10),
			strconv.FormatInt(s.Remaining, 10), fmt.Sprintf("%d of %d", len(s.Dimensions), s.MaxDimensions), cli.Stamp(s.OpenedAt),
		})
	}
	if a.AsJSON {
		return a.JSON(runs)
	}
	a.Table(rows...)
	return nil
}
