package main

import (
	"os"
	"os/signal"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

type logOptions struct {
	lines  int
	follow bool
}

func newLogCmd(a *cli.App) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:     "log",
		GroupID: cli.GroupOperator,
		Short:   "Print the hook's newest decisions",
		Long: `Prints the newest decisions of the hook that were not a plain pass, oldest first: denied, asked, rewritten, and markers
that expired. The id in brackets is the one in the reason that the client was given. With --json each decision is one
JSON object a line, reason included.`,
		Example: `  capgate log -n 50
  capgate log -f
  capgate log --json | jq 'select(.outcome == "deny")'`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return log(a, cmd, o)
		}),
	}
	cli.LinesFlag(cmd, &o.lines, "decisions to print")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "then print each new one, until interrupted")
	return cmd
}

func log(a *cli.App, cmd *cobra.Command, o logOptions) error {
	if err := cli.AtLeastOne("-n", o.lines); err != nil {
		return err
	}
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	if o.follow {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
		defer stop()
		return decisionlog.Follow(ctx, state, o.lines, func(r decisionlog.Record) error {
			if err := printRecord(a, r); err != nil {
				return err
			}
			return a.Flush()
		})
	}
	records, err := decisionlog.Last(state, o.lines)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := printRecord(a, r); err != nil {
			return err
		}
	}
	return nil
}

// printRecord prints one decision on one line. The columns have fixed widths, because the next line may be an hour away.
func printRecord(a *cli.App, r decisionlog.Record) error {
	if a.AsJSON {
		return a.JSON(r)
	}
	a.Printf("%s  %-7s  %-17s  %-9s", cli.Stamp(r.At), r.Outcome, r.Code, r.Tool)
	a.Printf("  session %s", cli.OrDash(r.Session))
	if r.Run != "" {
		a.Printf("  run %s", r.Run)
	}
	if r.Used != nil && r.Limit != nil {
		a.Printf("  %s of %s", strconv.FormatInt(*r.Used, 10), strconv.FormatInt(*r.Limit, 10))
	}
	if r.AgentID != "" {
		a.Printf("  agent %s", r.AgentID)
	}
	if r.AgentType != "" {
		a.Printf("  type %s", r.AgentType)
	}
	if r.Admission != "" {
		a.Printf("  admission %s", r.Admission)
	}
	a.Printf("  [%s]\n", r.ID)
	return nil
}
