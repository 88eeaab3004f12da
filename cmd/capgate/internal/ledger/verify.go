package ledger

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/sessions"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

func newVerifyCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the whole ledger, and every marker against it",
		Long: `Walks the whole ledger: sequence, hashes, every counter recomputed, the file's own structure. Then checks of every
marker in the state directory that the ledger still holds the entry that the marker remembers, and the marker's run, as
the hook does. Problems are listed one a line, and the exit status is 1.

A chain of hashes cannot show that the newest entries were cut off, or the whole file replaced: markers can, and so can
a head that was kept elsewhere (ledger head).

--timeout bounds the wait for the ledger, not the walk.`,
		Example: `  capgate ledger verify
  capgate ledger verify --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return verify(a, cmd)
		}),
	}
}

// verified is what `ledger verify --json` prints.
type verified struct {
	OK       bool          `json:"ok"`
	File     string        `json:"file"`
	Head     ledger.Anchor `json:"head"`
	Entries  uint64        `json:"entries"`
	Runs     int           `json:"runs"`
	Markers  int           `json:"markers"` // checked against the ledger
	Problems []string      `json:"problems"`
}

func verify(a *cli.App, cmd *cobra.Command) error {
	file, err := a.LedgerPath()
	if err != nil {
		return err
	}
	state, ttl, err := a.Markers()
	if err != nil {
		return err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	// Markers first: the ledger only grows, so it still holds later what it held when they were read.
	markers, err := scope.List(state)
	if err != nil {
		return err
	}
	if err := await(a, cmd, l); err != nil {
		return err
	}
	walk, stop := cli.Unbounded(cmd)
	defer stop()
	report, err := l.Verify(walk)
	if err != nil {
		return err
	}
	v := verified{
		File: file, Head: report.Head, Entries: report.Entries, Runs: report.Runs, Markers: len(markers),
		Problems: append([]string{}, report.Problems...),
	}
	now := a.Now()
	ctx, cancel := a.Context(cmd)
	defer cancel()
	newest := sessions.Newest(ctx, l, now)
	for _, m := range markers {
		if err := checkMarker(a, cmd, l, m); err != nil {
			problem := fmt.Sprintf("marker of session %s: %v", m.Session, err)
			if m.Expired(now, ttl, newest(m.Run)) {
				problem += "; it has expired, so `capgate scope sweep` removes it"
			}
			v.Problems = append(v.Problems, problem)
		}
	}
	v.OK = len(v.Problems) == 0

	if a.AsJSON {
		if err := a.JSON(v); err != nil {
			return err
		}
	} else if v.OK {
		a.Printf("%s is sound: %s, %s, %s checked\n", file,
			cli.Plural(v.Entries, "entry"), cli.Plural(v.Runs, "run"), cli.Plural(v.Markers, "marker"))
	}
	if v.OK {
		return nil
	}
	if !a.AsJSON {
		for _, problem := range v.Problems {
			a.Printf("%s\n", problem)
		}
	}
	return fmt.Errorf("%s: %s found: keep a copy of the file before you do anything about it", file, cli.Plural(len(v.Problems), "problem"))
}

// await waits for the ledger for as long as --timeout allows. What else is wrong with it is for the walk to say.
func await(a *cli.App, cmd *cobra.Command, l ledger.Ledger) error {
	ctx, cancel := a.Context(cmd)
	defer cancel()
	_, err := l.Head(ctx)
	if errors.Is(err, ledger.ErrBusy) {
		return err
	}
	return nil
}

// checkMarker holds a marker against the ledger, as the hook does.
func checkMarker(a *cli.App, cmd *cobra.Command, l ledger.Ledger, m scope.Listed) error {
	if m.Err != nil {
		return m.Err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	var anchor *ledger.Anchor
	if m.Anchor != nil {
		held := ledger.Anchor(*m.Anchor)
		anchor = &held
	}
	_, err := l.Budget(ctx, m.Run, anchor)
	return err
}
