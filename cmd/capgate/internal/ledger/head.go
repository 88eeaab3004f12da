package ledger

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

func newHeadCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Print the newest entry's number and hash, to be kept elsewhere",
		Long: `Prints the ledger's id, and the number and hash of its newest entry. Kept outside this machine, they prove later that
the ledger still holds what it held: find the entry in ledger export and compare its hash.`,
		Example: `  capgate ledger head --json`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return head(a, cmd)
		}),
	}
}

func head(a *cli.App, cmd *cobra.Command) error {
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	head, err := l.Head(ctx)
	if err != nil {
		return err
	}
	if a.AsJSON {
		return a.JSON(head)
	}
	a.Table([]string{"ledger", head.Ledger}, []string{"seq", strconv.FormatUint(head.Seq, 10)}, []string{"hash", head.Hash})
	return nil
}
