// Package capgate decides whether a tool call of a coding agent may go on. The decision is a pure function of
// [Facts]; package hook gathers them and carries the verdict out.
//
// [Table] is the cap's decision table, as data that the decision, the reference (docs/reference/decisions.md) and the
// tests share. Its split into fail-open and fail-closed rows is deliberate: what is no evidence of a loop's turn
// passes, and what is inside a scope but cannot be counted is denied.
package capgate

import (
	"errors"
	"time"

	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// Stage says how much of the outside world has been read. Facts of later stages are unknown, not absent.
type Stage uint8

// The stages, in the order in which they are read: each costs more than the one before it.
const (
	StageConfig    Stage = iota // the environment, and what an operator says at once
	StagePayload                // the call
	StageSpec                   // what is declared for it: the spec, and which file it writes
	StageMarker                 // the session's marker
	StageLedger                 // the run's budget
	StageAdmission              // whether an operator admitted the spawn; reading this spends the admission
)

// String names what has been read.
func (s Stage) String() string {
	return [...]string{"environment", "payload", "spec", "marker", "ledger", "admission"}[s]
}

// ErrOverdue stands for a read that did not end before the deadline.
var ErrOverdue = errors.New("not read in time")

// Facts is all that a verdict depends on.
type Facts struct {
	Config Config
	Now    time.Time
	Known  Stage // the latest stage whose facts are filled in
	// Halt is the operator's word that stops every call; nil = there is none. An operator's off is in Config: [Config.Under].
	Halt *control.Word
	Late bool // the deadline has passed: what is not known stays so, and nothing is judged that takes time

	// StagePayload
	Call       gates.Call
	ClientPID  int    // the client's process, 0 where it is not known
	Parent     string // the session that has started this one, a subagent's; "" where it has none of its own
	PayloadErr error  // why there is no call: stdin was empty, unparsable, or overdue

	// StageSpec: read only where the call needs it
	Spec    gates.Spec
	SpecErr error // why the spec cannot be used
	// Admitted are the types whose spawns an operator's admissions have let through in this session; read only where the
	// call is judged by them.
	Admitted []string
	// Admissible are the types that an operator's admissions would let start in this session now; read only where the advice
	// to start one depends on it.
	Admissible  []string
	AdmittedErr error             // why that is not known
	Writes      []gates.FileWrite // the files that a write tool is about to write; none for other tools
	Protected   gates.Protected   // and the ones that it must not

	// StageMarker
	Marker    scope.Marker
	MarkerErr error // as [scope.Read] returns it, or ErrOverdue
	// Inherited says that the marker is that of the session which has started this one, a subagent's.
	Inherited bool
	// Cleared says that the marker is that of the session which the client has just left for this one, as /clear does.
	Cleared bool

	// StageLedger
	Budget    ledger.Budget
	LedgerErr error // as [ledger.Ledger] returns it, or ErrOverdue

	// StageAdmission
	AdmittedBy string // id of the admission that lets the spawn through; "" = none does
}

// TTL returns how long a marker holds.
func (f Facts) TTL() time.Duration { return f.Config.ScopeTTL.Duration(DefaultScopeTTL) }

// Deadline returns how long the whole verdict may take, from the start of the process.
func (f Facts) Deadline() time.Duration { return f.Config.Deadline.Duration(DefaultDeadline) }
