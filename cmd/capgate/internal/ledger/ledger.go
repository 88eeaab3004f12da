// Package ledger has the commands that check and read the ledger: verify, export, tail and head. They only read.
package ledger

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// New returns the command ledger.
func New(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "ledger",
		GroupID: cli.GroupOperator,
		Short:   "Verify, export and read the ledger",
		Long: `The ledger is an append-only file of everything that was counted: runs opened, turns, grants, runs closed. Each entry
carries the SHA-256 of the entry before it and of itself, so an edit, a removal or a reordering shows. These commands
only read.`,
		Example: `  capgate ledger verify
  capgate ledger tail -n 20
  capgate ledger export > ledger.jsonl`,
	}, newVerifyCmd(a), newExportCmd(a), newTailCmd(a), newHeadCmd(a))
}
