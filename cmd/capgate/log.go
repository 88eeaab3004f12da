package main

import (
	"os"
	"os/signal"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/decisionlog"
)

type logOptions struct {
	lines  int
	follow bool
}

func newLogCmd(a *app) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:     "log",
		GroupID: groupOperator,
		Short:   "Print the hook's newest decisions",
		Long: `Prints the newest decisions of the hook that were not a plain pass, oldest first: denied, asked, rewritten, and markers
that expired. The id in brackets is the one in the reason that the client was given. With --json each decision is one
JSON object a line, reason included.`,
		Example: `  capgate log -n 50
  capgate log -f
  capgate log --json | jq 'select(.outcome == "deny")'`,
		Args: noArgs,
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			return a.log(cmd, o)
		}),
	}
	countFlag(cmd, &o.lines, "decisions to print")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "then print each new one, until interrupted")
	return cmd
}

func (a *app) log(cmd *cobra.Command, o logOptions) error {
	if o.lines < 1 {
		return usagef("-n is %d, it must be at least 1", o.lines)
	}
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	if o.follow {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
		defer stop()
		return decisionlog.Follow(ctx, state, o.lines, func(r decisionlog.Record) error {
			if err := a.printRecord(r); err != nil {
				return err
			}
			return a.out.Flush()
		})
	}
	records, err := decisionlog.Last(state, o.lines)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := a.printRecord(r); err != nil {
			return err
		}
	}
	return nil
}

// printRecord prints one decision on one line. The columns have fixed widths, because the next line may be an hour away.
func (a *app) printRecord(r decisionlog.Record) error {
	if a.json {
		return a.printJSON(r)
	}
	a.printf("%s  %-7s  %-17s  %-9s", stamp(r.At), r.Outcome, r.Code, r.Tool)
	a.printf("  session %s", orDash(r.Session))
	if r.Run != "" {
		a.printf("  run %s", r.Run)
	}
	if r.Used != nil && r.Limit != nil {
		a.printf("  %s of %s", strconv.FormatInt(*r.Used, 10), strconv.FormatInt(*r.Limit, 10))
	}
	if r.AgentID != "" {
		a.printf("  agent %s", r.AgentID)
	}
	if r.AgentType != "" {
		a.printf("  type %s", r.AgentType)
	}
	if r.Admission != "" {
		a.printf("  admission %s", r.Admission)
	}
	a.printf("  [%s]\n", r.ID)
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
