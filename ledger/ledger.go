package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sentinels of the package. Every error a [Ledger] returns wraps exactly one of them, so that callers branch with
// errors.Is; the text around it says what was being done, to which file, and what to do next.
var (
	// ErrInvalid: an argument is outside its documented range. Nothing was read or written.
	ErrInvalid = errors.New("invalid argument")
	// ErrMissing: there is no ledger at this place. Only [Ledger.OpenRun] creates one.
	ErrMissing = errors.New("ledger missing")
	// ErrBusy: the lock was not free before the context's deadline. Nothing was written.
	ErrBusy = errors.New("ledger busy")
	// ErrCorrupt: the file is not a ledger, or is damaged: truncated, zeroed, edited, foreign.
	ErrCorrupt = errors.New("ledger damaged")
	// ErrNewerFormat: a newer version of this program wrote the ledger.
	ErrNewerFormat = errors.New("ledger format is newer than this program")
	// ErrUnreadable: the operating system does not let the file be opened or read: permissions, too many open files, a
	// failing disk.
	ErrUnreadable = errors.New("ledger cannot be read")
	// ErrAnchorLost: the ledger no longer holds the entry an anchor names: it was deleted, replaced or rolled back.
	ErrAnchorLost = errors.New("ledger does not hold the anchored entry")
	// ErrNotRecorded: writing or flushing failed; the entry must be taken as not recorded.
	ErrNotRecorded = errors.New("not recorded")
	// ErrRunUnknown: the run was never opened in this ledger.
	ErrRunUnknown = errors.New("run unknown")
	// ErrRunExists: the run was opened before, with other limits.
	ErrRunExists = errors.New("run is open with other limits")
	// ErrRunClosed: the run was closed and takes no more turns or grants.
	ErrRunClosed = errors.New("run closed")
	// ErrBudgetSpent: one more turn would go over the run's limit, its dimension's, or its number of dimensions.
	// The concrete error is a [*SpentError].
	ErrBudgetSpent = errors.New("turn budget spent")
)

// SpentError is the refusal of a turn. It wraps [ErrBudgetSpent].
type SpentError struct {
	Run       string
	Dimension string // the dimension whose bound was hit; "" when the run's own limit was
	// Bound names what is spent: "turns" (the run's limit), "dimension-turns" (max_conv_turns of this dimension)
	// or "dimensions" (max_dimensions).
	Bound string
	Used  int64 // counted against that bound
	Limit int64 // that bound
}

func (e *SpentError) Error() string {
	switch e.Bound {
	case "dimension-turns":
		return fmt.Sprintf("%v: dimension %q of run %q has used %d of %d turns", ErrBudgetSpent, e.Dimension, e.Run, e.Used, e.Limit)
	case "dimensions":
		return fmt.Sprintf("%v: run %q has used %d of %d dimensions, %q would be one more", ErrBudgetSpent, e.Run, e.Used, e.Limit, e.Dimension)
	}
	return fmt.Sprintf("%v: run %q has used %d of %d turns", ErrBudgetSpent, e.Run, e.Used, e.Limit)
}

// Unwrap returns [ErrBudgetSpent].
func (e *SpentError) Unwrap() error { return ErrBudgetSpent }

// Kind says what an [Entry] records.
type Kind string

// The kinds of entries of format 1.
const (
	KindRunOpened Kind = "run-opened"
	KindTurn      Kind = "turn"
	KindGrant     Kind = "grant"
	KindRunClosed Kind = "run-closed"
)

// Entry is one record of the ledger. Seq is global, dense and starts at 1.
type Entry struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"` // UTC
	Kind Kind      `json:"kind"`
	Run  string    `json:"run"`

	MaxConvTurns  int64  `json:"max_conv_turns,omitempty"` // run-opened
	MaxDimensions int64  `json:"max_dimensions,omitempty"` // run-opened
	Dimension     string `json:"dimension,omitempty"`      // turn
	Key           string `json:"key,omitempty"`            // turn: the caller's idempotency key
	Turns         int64  `json:"turns,omitempty"`          // grant: turns added to the limit
	Reason        string `json:"reason,omitempty"`         // grant

	// Used and Limit are the run's counters after this entry. They let a reader cross-check the counters that are
	// kept beside the entries against the hashed entry they came from.
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// Receipt acknowledges an entry. When an operation returns one with a nil error, the entry is durable: it survives
// kill -9 and, where the disk honours flushes, power loss.
type Receipt struct {
	Entry
	Hash string `json:"hash"` // SHA-256 of (previous hash ‖ stored bytes), lower-case hex
	// Replayed is true when nothing was appended because the same entry is already there: the same key on the same
	// run, a run opened again with the same limits, or closed again. The receipt is then the first one.
	Replayed bool `json:"replayed"`
}

// Anchor names an entry of one particular ledger, to be kept outside it: whoever holds an anchor can tell whether
// the ledger was deleted, replaced or rolled back to before that entry.
type Anchor struct {
	Ledger string `json:"ledger"` // the ledger's random id, lower-case hex, 64 digits
	Seq    uint64 `json:"seq"`    // 0 names the empty ledger
	Hash   string `json:"hash"`   // hash of entry Seq, lower-case hex
}

// Budget is what a verdict needs of a run. Its cost to read does not grow with the number of entries.
type Budget struct {
	Run    string `json:"run"`
	Used   int64  `json:"used"`  // turns recorded
	Limit  int64  `json:"limit"` // max_conv_turns × max_dimensions + grants
	Open   int64  `json:"open"`  // turns that were begun and have not ended; they are used, and not spent
	Closed bool   `json:"closed"`
	// LastAt is the time of the run's newest entry, UTC.
	LastAt time.Time `json:"last_at"`
}

// Spent reports whether the run is at its end: it is closed, or as many turns have ended as it may spend. A turn that is
// open may go on to its own end.
func (b Budget) Spent() bool { return b.Closed || b.Used-b.Open >= b.Limit }

// Usage is all that is kept of one run.
type Usage struct {
	Budget
	Remaining     int64            `json:"remaining"`
	MaxConvTurns  int64            `json:"max_conv_turns"`
	MaxDimensions int64            `json:"max_dimensions"`
	Granted       int64            `json:"granted"`
	Dimensions    map[string]int64 `json:"dimensions"` // turns per dimension; turns without one are not in it
	OpenedAt      time.Time        `json:"opened_at"`  // UTC
	LastAt        time.Time        `json:"last_at"`    // UTC, time of the run's newest entry
	LastSeq       uint64           `json:"last_seq"`
}

// Report is what [Ledger.Verify] found.
type Report struct {
	Head    Anchor `json:"head"`
	Entries uint64 `json:"entries"`
	Runs    int    `json:"runs"`
	// Problems is empty for a sound ledger. Each is one sentence naming the entry or run.
	Problems []string `json:"problems"`
}

// OK reports whether nothing was found.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Ledger is an append-only record of runs and their turns, shared by many short-lived processes. All methods are
// safe for concurrent use by goroutines and processes. Each ends at ctx's deadline at the latest.
//
// Any store must pass the suite in ledger/ledgertest.
type Ledger interface {
	// OpenRun opens a run, creating the ledger when there is none. Both limits are ≥ 1 and their product at most
	// [MaxLimit]. The same limits again: the first receipt, Replayed. Other limits: ErrRunExists. Closed: ErrRunClosed.
	OpenRun(ctx context.Context, run string, maxConvTurns, maxDimensions int64) (Receipt, error)
	// RecordTurn checks and appends one turn in one transaction. dimension and key may be "". It refuses with
	// ErrBudgetSpent at the run's limit and, where a dimension is named, at max_conv_turns turns of it and at
	// max_dimensions dimensions; with ErrRunClosed and ErrRunUnknown. A refusal changes nothing. The same non-empty
	// key on the same run returns the first receipt, also at the limit and after closing. In the same transaction, and
	// before anything else, it checks that the ledger holds every given anchor (ErrAnchorLost): a ledger that was
	// replaced or rolled back gives no turns back.
	RecordTurn(ctx context.Context, run, dimension, key string, anchors ...Anchor) (Receipt, error)
	// Grant raises the run's limit by turns ≥ 1; the reason must not be empty.
	Grant(ctx context.Context, run string, turns int64, reason string) (Receipt, error)
	// CloseRun ends a run: it takes no more turns. Closing again is a replay.
	CloseRun(ctx context.Context, run string) (Receipt, error)

	// Budget reads a run's counters, read-only. With an anchor it first checks that the ledger still holds the
	// anchored entry (ErrAnchorLost). The counters are cross-checked against the hashed entry they rest on.
	Budget(ctx context.Context, run string, anchor *Anchor) (Budget, error)
	// Usage reads all counters of a run, read-only.
	Usage(ctx context.Context, run string) (Usage, error)
	// Runs reads every run, oldest first, read-only.
	Runs(ctx context.Context) ([]Usage, error)
	// Head reads the newest entry's anchor, read-only.
	Head(ctx context.Context) (Anchor, error)
	// Entries calls fn for each entry from seq on, in order, until fn returns an error, which it returns. stored is
	// the exact bytes that were hashed, valid during the call only. Chain hashes are checked on the way (ErrCorrupt).
	Entries(ctx context.Context, from uint64, fn func(r Receipt, stored []byte) error) error
	// Verify walks everything: sequence, hashes, counters recomputed, the store's own structure, and every given
	// anchor. What it finds is in the report; the error is for a ledger that could not be walked.
	Verify(ctx context.Context, anchors ...Anchor) (Report, error)
}

// Bounds of arguments.
const (
	// MaxLimit bounds a run's limit, grants included: far above any real run, far below overflow.
	MaxLimit = 1_000_000_000_000
	// MaxIDBytes bounds run ids, dimensions and keys, in bytes of UTF-8 without control characters and U+FFFD.
	MaxIDBytes = 256
	// MaxReasonBytes bounds a grant's reason, in bytes of UTF-8 without control characters and U+FFFD.
	MaxReasonBytes = 1024
)
