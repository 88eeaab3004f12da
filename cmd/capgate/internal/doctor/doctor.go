// Package doctor has the command doctor, which says whether the installed hook works and how to mend what does not.
//
// What there is to look at is gathered once, into an [Examination] (gather.go). Each check is a function of that, in a
// file of its own, check_NAME.go, and changes nothing.
package doctor

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// checks are all checks, in the order in which their findings are printed.
var checks = []func(Examination) []Finding{
	checkSettings, checkHook, checkCopies, checkCanary, checkClient, checkSwitches, checkTimes, checkState, checkLedger,
	checkMarkers, checkSpec, checkOMP,
}

// New returns the command doctor.
func New(a *cli.App) *cobra.Command {
	var bin string
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: cli.GroupClient,
		Short:   "Check that the installed hook works, and say how to mend what does not",
		Long: `Looks at the client's settings (user, project and local, as they count in the current directory), runs the
installed command line itself with canary calls in a scratch state directory and requires that a denial comes back as
exit status 2, and checks the client's version, the switches and where they come from, the state directory, the ledger,
the markers and the spec. Each line says what was found, what it means, and the command that mends it. Nothing is
changed.

Exit status: 0 healthy, perhaps with warnings; 3 when something must be mended; 1 when the check itself failed.`,
		Example: `  capgate doctor
  capgate doctor --json | jq '.findings[] | select(.level != "ok")'`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return doctor(cmd.Context(), a, bin) }),
	}
	cmd.Flags().StringVar(&bin, "bin", "", "the client's program; default claude, as found on PATH")
	return cmd
}

// Diagnosis is what `doctor --json` prints.
type Diagnosis struct {
	Healthy  bool      `json:"healthy"`
	Findings []Finding `json:"findings"`
}

func doctor(ctx context.Context, a *cli.App, bin string) error {
	x, err := gather(ctx, a, bin)
	if err != nil {
		return err
	}
	var d Diagnosis
	for _, check := range checks {
		d.Findings = append(d.Findings, check(x)...)
	}
	failed := 0
	for _, f := range d.Findings {
		if f.Level == Fail {
			failed++
		}
	}
	d.Healthy = failed == 0
	if a.AsJSON {
		if err := a.JSON(d); err != nil {
			return err
		}
	} else {
		printFindings(a.Printer, d.Findings)
	}
	if failed > 0 {
		return cli.WithStatus(cli.StatusUnhealthy, fmt.Errorf("%s to mend", cli.Plural(failed, "thing")))
	}
	return nil
}

func printFindings(out *cli.Printer, findings []Finding) {
	for _, f := range findings {
		out.Printf("%-4s  %s: %s\n", f.Level, f.Check, f.Found)
		if f.Meaning != "" {
			out.Printf("      %s\n", f.Meaning)
		}
		if f.Mend != "" {
			out.Printf("      mend: %s\n", f.Mend)
		}
	}
}
