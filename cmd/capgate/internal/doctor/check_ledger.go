package doctor

import (
	"errors"
	"fmt"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

// checkLedger says what a walk over the hook's ledger has found.
func checkLedger(x Examination) []Finding {
	f := findings{check: "ledger"}
	if x.LedgerErr != nil {
		f.add(Fail, x.LedgerErr.Error(), "calls in scope are denied, because they cannot be counted", "set CAPGATE_LEDGER to an absolute path, or take it out")
		return f.all
	}
	if _, ok := x.Config.StateDir(); !ok && x.Config.Ledger == "" {
		return nil // said already
	}
	path, report, err := x.Ledger, x.Report, x.ReportErr
	switch {
	case errors.Is(err, ledger.ErrMissing):
		f.add(Warn, path+" is not there", "no run has ever been opened", "capgate scope open makes it")
	case err != nil:
		f.add(Fail, err.Error(), "calls in scope are denied, because they cannot be counted", "capgate ledger verify")
	case !report.OK():
		f.add(Fail, fmt.Sprintf("%s: %s, the first: %s", path, cli.Plural(len(report.Problems), "problem"), report.Problems[0]), "it was damaged or changed", "capgate ledger verify")
	default:
		f.ok(fmt.Sprintf("%s: %s, %s", path, cli.Plural(report.Entries, "entry"), cli.Plural(report.Runs, "run")))
	}
	return f.all
}
