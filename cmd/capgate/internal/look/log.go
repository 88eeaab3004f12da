package look

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

// NewLog returns the command log.
func NewLog(a *cli.App) *cobra.Command {
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
			if err := printRecord(a.Printer, r); err != nil {
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
		if err := printRecord(a.Printer, r); err != nil {
			return err
		}
	}
	return nil
}

// printRecord prints one decision on one line. The columns have fixed widths, because the next line may be an hour away.
func printRecord(out *cli.Printer, r decisionlog.Record) error {
	if out.AsJSON {
		return out.JSON(r)
	}
	out.Printf("%s  %-7s  %-17s  %-9s", cli.Stamp(r.At), r.Outcome, r.Code, r.Tool)
	out.Printf("  session %s", cli.OrDash(r.Session))
	if r.Run != "" {
		out.Printf("  run %s", r.Run)
	}
	if r.Used != nil && r.Limit != nil {
		out.Printf("  %s of %s", strconv.FormatInt(*r.Used, 10), strconv.FormatInt(*r.Limit, 10))
	}
	if r.AgentID != "" {
		out.Printf("  agent %s", r.AgentID)
	}
	if r.AgentType != "" {
		out.Printf("  type %s", r.AgentType)
	}
	if r.Admission != "" {
		out.Printf("  admission %s", r.Admission)
	}
	out.Printf("  [%s]\n", r.ID)
	return nil
}
