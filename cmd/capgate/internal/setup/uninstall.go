package setup

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// NewUninstall returns the command uninstall.
func NewUninstall(a *cli.App) *cobra.Command {
	var t target
	var purge bool
	cmd := &cobra.Command{
		Use:     "uninstall",
		GroupID: cli.GroupClient,
		Short:   "Take the hook out of a client's settings",
		Long: `Removes what install wrote into the client's settings. The file is given back as it was, byte for byte, unless something
else in it has changed since, or the hook was in it before install: then only our parts are removed. Without an
installation it does nothing.

The programs that install copied and the state directory, with the ledger in it, stay, and are named. --purge removes
them, too, and whatever else install left, and says of each that it is gone. What another installation needs stays.`,
		Example: `  capgate uninstall
  capgate uninstall --scope project --dry-run
  capgate uninstall --purge --dry-run
  capgate uninstall --client omp`,
		Args: cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error { return uninstall(a, t, purge) }),
	}
	t.flags(cmd)
	cmd.Flags().BoolVar(&purge, "purge", false, "remove the programs that were copied and the state directory with the ledger, too")
	return cmd
}

func uninstall(a *cli.App, t target, purge bool) error {
	f, err := gatherFile(a, t)
	if err != nil {
		return err
	}
	if f.Client == client.Claude {
		if f.Backup, err = read(f.Path + backupSuffix); err != nil {
			return f.untouched(err)
		}
	}
	p, err := PlanUninstall(f)
	if err != nil {
		return err
	}
	if (p.Action == actionRemoved || purge) && !t.dryRun {
		if err := a.OperatorOnly("nothing is uninstalled"); err != nil {
			return err
		}
	}
	left, err := gatherRemains(a, f)
	if err != nil {
		return err
	}
	switch {
	case purge:
		p.Purge = &left
	case p.Action == actionRemoved:
		p.Stays = left.folders
	}
	return carryOut(a, p, t.dryRun)
}
