package capgate

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/capgate/capgate/gates"
)

// MaxReason bounds a reason, its id included, in bytes. The clients hand reasons to a model, which pays for them.
const MaxReason = 2000

// Next says which stage has to be read before the call can be judged, and whether one has to. It is the one place that
// knows: whoever gathers facts asks it again after each stage, and calls [Decide] when it wants no more.
//
// Cheap stages come first, and none is read that the verdict does not need. What reading spends comes last, and only
// where nothing else stands against the call.
func (f Facts) Next() (stage Stage, more bool) {
	row, settled := Table.Decide(f)
	switch {
	case f.gatesNeedMore(), !settled:
		return f.Known + 1, true
	case f.Known < StageAdmission && f.admissionCounts(row):
		return StageAdmission, true
	}
	return f.Known, false
}

// gatesNeedMore reports whether a gate that is on has not got its facts: they need the call, and then what is declared for
// it, whatever the cap needs.
func (f Facts) gatesNeedMore() bool {
	if !f.Config.GuardActive() { // which it is with any gate
		return false
	}
	unjudgeable := f.Known == StagePayload && f.PayloadErr != nil
	return f.Known < StageSpec && !unjudgeable
}

// admissionCounts reports whether an admission is all that the call wants for: only then may one be used up.
func (f Facts) admissionCounts(row Row) bool {
	if _, ok := f.Config.StateDir(); !ok || !f.Config.GatesActive() || f.AdmissionMode() == gates.AdmissionOff {
		return false
	}
	switch f.decision(row).Verdict.Code {
	case gates.CodeAdmissionAsk, gates.CodeAdmissionDenied, gates.CodeAdmissionNoUI:
		return true
	}
	return false
}

// Decide returns the first row that holds. settled is false where a stage that a row needs has not been read.
func (rows Rows) Decide(f Facts) (row Row, settled bool) {
	for _, row := range rows {
		need := row.Needs
		if row.needs != nil && f.Known >= row.Needs {
			need = row.needs(&f)
		}
		if need > f.Known && !f.settledWithout(need) {
			return undecided, false
		}
		if row.holds(&f) {
			return row, true
		}
	}
	return undecided, true
}

// undecided is the answer of a table without one: only a fault of ours gets here, and a budget control that cannot tell
// must not grant.
var undecided = Row{Code: CodeLedgerUnreadable, Outcome: gates.Deny, reason: func(*Facts) string {
	return cannotCount("no rule of the decision table holds", "This is a fault of capgate")
}}

// settledWithout reports that the stage need not be read: without a state directory there is no marker to read, and
// that alone decides.
func (f *Facts) settledWithout(stage Stage) bool {
	_, ok := f.Config.StateDir()
	return stage == StageMarker && !ok
}

// Overdue fills in that the stage after the known one could not be read before the deadline, which the table judges
// as "cannot count".
func (f Facts) Overdue() Facts {
	awaited := min(f.Known+1, StageAdmission)
	err := overdue{awaited, f.Deadline()}
	f.Known, f.Late = StageAdmission, true
	switch awaited {
	case StagePayload:
		f.PayloadErr = err
		fallthrough
	case StageSpec:
		f.SpecErr, f.AdmittedErr = err, err
		fallthrough
	case StageMarker:
		f.MarkerErr = err
		fallthrough
	case StageLedger:
		f.LedgerErr = err
	}
	return f
}

// overdue says what could not be read within which time; it is [ErrOverdue].
type overdue struct {
	awaited Stage
	within  time.Duration
}

func (o overdue) Error() string {
	what := map[Stage]string{
		StagePayload: "the call", StageSpec: "what is declared for the call", StageMarker: "the session's marker",
	}[o.awaited]
	if what == "" {
		what = "the ledger"
	}
	return fmt.Sprintf("%s could not be read within %v", what, o.within)
}

// Is implements what errors.Is asks for.
func (overdue) Is(target error) bool { return target == ErrOverdue }

// Verdict returns the row's answer to the call, without an id.
func (r Row) Verdict(f Facts) gates.Verdict {
	v := gates.Verdict{Outcome: r.Outcome, Code: r.Code}
	if r.reason != nil {
		v.Reason = "capgate: " + r.reason(&f)
	}
	return v
}

// Combine joins the verdicts of several gates on one call into one: the strongest outcome wins, among equals the one
// that comes first, and a rewrite rides along with an ask.
func Combine(verdicts ...gates.Verdict) gates.Verdict {
	var all gates.Verdict
	var rewritten []byte
	for _, v := range verdicts {
		if v.Outcome > all.Outcome || all.Code == "" {
			all = v
		}
		if v.Input != nil && rewritten == nil {
			rewritten = v.Input
		}
	}
	all.Input = nil
	if all.Outcome == gates.Rewrite || all.Outcome == gates.Ask {
		all.Input = rewritten
	}
	return all
}

// WithID returns the reason as the client shows it: on one line, the id that `capgate explain` opens at its end, and
// never over [MaxReason] bytes. Control characters in it come from files that anybody may write: they are shown, not
// obeyed.
func WithID(reason, id string) string {
	tail := " [capgate " + id + "]"
	reason = cut(reason, MaxReason) // what is cut off anyway is not looked through
	return cut(gates.Visible(reason), MaxReason-len(tail)) + tail
}

// cut shortens text to at most limit bytes, at a rune's boundary, and marks that it did.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	limit -= len(mark)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + mark
}
