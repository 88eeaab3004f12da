package admit

import (
	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

func newListCmd(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the admissions that still let something through",
		Long: `Lists the admissions that are open, oldest first, with how much of each is used. With --all also those that are spent,
expired or revoked, which are kept for a week.`,
		Example: `  capgate admit list
  capgate admit list --all --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			return list(a, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also what is spent, expired or revoked")
	return cmd
}

func list(a *cli.App, all bool) error {
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	admissions, err := admission.List(state)
	if err != nil {
		return err
	}
	shown := []shown{}
	rows := [][]string{{"ID", "STATE", "TYPE", "SESSION", "USED", "UNTIL", "REASON"}}
	for _, ad := range admissions {
		s := show(ad, a.Now())
		if s.State != "open" && !all {
			continue
		}
		shown = append(shown, s)
		rows = append(rows, []string{
			s.ID, s.State, s.Type, s.Session, usedOf(ad), cli.Stamp(s.Until), s.Reason,
		})
	}
	switch {
	case a.AsJSON:
		return a.JSON(shown)
	case len(shown) > 0:
		a.Table(rows...)
	case all:
		a.Printf("no admission in %s\n", state)
	default:
		a.Printf("no open admission in %s\n", state)
	}
	return nil
}
