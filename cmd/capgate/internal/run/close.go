package run

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

func newCloseCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "close RUN",
		Short: "End a run: it takes no more turns",
		Long: `Ends the run for good: it takes no more turns and no grant, and cannot be opened again. Closing again changes nothing.
Sessions stay armed: disarm them with scope close.`,
		Example:           `  capgate run close storm-42`,
		Args:              cli.RunArg,
		ValidArgsFunction: completeArg(a.Places),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return closeRun(a, cmd, args[0])
		}),
	}
}

func closeRun(a *cli.App, cmd *cobra.Command, run string) error {
	a.About(run, "")
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	r, err := l.CloseRun(ctx, run)
	if err != nil {
		return err
	}
	if !r.Replayed {
		a.Changed()
	}
	if a.AsJSON {
		return a.JSON(change(r))
	}
	already := ""
	if r.Replayed {
		already = " already"
	}
	a.Printf("run %s is closed%s: %d of %d turns used\n", r.Run, already, r.Used, r.Limit)
	return nil
}
