package setup

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// NewUninstall returns the command uninstall.
func NewUninstall(a *cli.App) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:     "uninstall",
		GroupID: cli.GroupClient,
		Short:   "Take the hook out of a client's settings",
		Long: `Removes what install wrote. The settings file is given back as it was, byte for byte, unless something else in it has
changed since, or the hook was in it before install: then only our parts are removed. Without an installation it does
nothing. The state directory, with the ledger in it, stays.`,
		Example: `  capgate uninstall
  capgate uninstall --scope project --dry-run
  capgate uninstall --client omp`,
		Args: cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error { return uninstall(a, t) }),
	}
	t.flags(cmd)
	return cmd
}

func uninstall(a *cli.App, t target) error {
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
	if p.Action == actionRemoved && !t.dryRun {
		if err := a.OperatorOnly("nothing is uninstalled"); err != nil {
			return err
		}
	}
	return carryOut(a, p, t.dryRun)
}
