package loop

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/sessions"
	"github.com/capgate/capgate/scope"
)

func newSweepCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Remove expired markers",
		Long: `Removes the markers that are older than CAPGATE_SCOPE_TTL_MS (6 hours by default), readable or not, and whose run has
no newer entry in the ledger, those from further in the future than that, temporary files that a crash left behind, and
old notes of the hook. A session that is armed again at the same moment keeps its new marker.`,
		Example: `  capgate scope sweep`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return sweep(a, cmd)
		}),
	}
}

func sweep(a *cli.App, cmd *cobra.Command) error {
	state, ttl, err := a.Markers()
	if err != nil {
		return err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	now := a.Now()
	removed, err := scope.Sweep(state, ttl, now, sessions.Newest(ctx, l, now))
	if len(removed) > 0 {
		a.Changed()
	}
	markers := []listedMarker{}
	for _, r := range removed {
		m := listMarker(r, now, true)
		markers = append(markers, m)
		if !a.AsJSON {
			run := "unreadable"
			if m.Error == "" {
				run = "run " + m.Run
			}
			a.Printf("removed the marker of session %s (%s, %s)\n", m.Session, run, m.dated())
		}
	}
	if err != nil {
		return err
	}
	if a.AsJSON {
		return a.JSON(markers)
	}
	if len(markers) == 0 {
		a.Printf("no expired marker in %s\n", filepath.Join(state, scope.DirName))
	}
	return nil
}
