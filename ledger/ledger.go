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
	// ErrKeyReused: the key came with another operation or another dimension before. Nothing was written.
	ErrKeyReused = errors.New("key used before")
	// ErrTurnOver: the turn that the key began is over, so the key begins no other. Nothing was written.
	ErrTurnOver = errors.New("turn over")
	// ErrTurnOpen: a turn of the dimension is open, so none of it can be recorded in one entry. Nothing was written.
	ErrTurnOpen = errors.New("turn open")
	// ErrBudgetSpent: one more turn would go over the run's limit, its dimension's, or its number of dimensions.
	// The concrete error is a [*SpentError].
	ErrBudgetSpent = errors.New("turn budget spent")
)

// SpentError is the refusal of a turn. It wraps [ErrBudgetSpent]. A refused [Ledger.BeginTurn] has ended the open turn of
// its dimension when it returns one.
type SpentError struct {
	Run       string
	Dimension string // the dimension whose bound was hit; "" when the run's own limit was
	// Bound names what is spent: "turns" (the run's limit), "dimension-turns" (max_conv_turns of this dimension)
	// or "dimensions" (max_dimensions).
	Bound string
	Used  int64 // counted against that bound
	Limit int64 // that bound, grants included
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
	KindTurnBegun Kind = "turn-begun"
	KindTurnEnded Kind = "turn-ended"
	KindTurn      Kind = "turn" // begun and ended in one entry
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
	Dimension     string `json:"dimension,omitempty"`      // turn-begun, turn-ended, turn; grant: the one whose bound is raised
	Key           string `json:"key,omitempty"`            // turn-begun, turn: the caller's idempotency key
	Ends          uint64 `json:"ends,omitempty"`           // turn-begun, turn-ended: the turn-begun entry whose turn this one ends
	Turns         int64  `json:"turns,omitempty"`          // grant: turns added to the limit, and to the dimension's bound
	Dimensions    int64  `json:"dimensions,omitempty"`     // grant: dimensions added, with max_conv_turns turns for each
	Reason        string `json:"reason,omitempty"`         // grant

	// Used, Open and Limit are the run's counters after this entry. They let a reader cross-check the counters that are
	// kept beside the entries against the hashed entry they came from.
	Used  int64 `json:"used"`
	Open  int64 `json:"open"` // turns begun and not ended
	Limit int64 `json:"limit"`
}

// Receipt acknowledges an entry. When an operation returns one with a nil error, the entry is durable: it survives
// kill -9 and, where the disk honours flushes, power loss. That holds for a replayed one, too: the file was flushed
// before it was given.
type Receipt struct {
	Entry
	Hash string `json:"hash"` // SHA-256 of (previous hash ‖ stored bytes), lower-case hex
	// Replayed is true when nothing was appended because there was nothing to do: the same key on the same turn, a turn
	// ended that is over, a run opened again with the same limits, or closed again. The receipt is then the first one;
	// of an end that did nothing it is the one of the run's newest entry.
	Replayed bool `json:"replayed"`
	// Turns is the run after the operation, also where the receipt is an older one. [Ledger.Entries] leaves it zero.
	Turns Turns `json:"-"`
}

// Turns says when a run last had something to do with turns. A time is UTC, and zero where there was nothing yet.
type Turns struct {
	Open   int64     `json:"open"`            // turns begun and not ended
	Newest time.Time `json:"newest,omitzero"` // when the newest turn was begun or recorded
	Before time.Time `json:"before,omitzero"` // when the one before it was
	// Ended is when a turn was last ended by EndTurn, by the next begin of its dimension, or by a refused begin. A turn
	// that was recorded in one entry has no end of its own, and closing the run counts as none.
	Ended time.Time `json:"ended,omitzero"`
}

// Grant is what [Ledger.Grant] adds to a run: turns, or dimensions with turns for each.
type Grant struct {
	// Turns are added to the run's limit and, where a dimension is named, to the bound of that dimension.
	Turns int64
	// Dimension is one that is in use, or "". It comes with Turns only.
	Dimension string
	// Dimensions are added to the run's max_dimensions, and for each of them max_conv_turns turns to its limit.
	Dimensions int64
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
	Run    string    `json:"run"`
	Used   int64     `json:"used"`  // turns begun or recorded
	Open   int64     `json:"open"`  // of these, begun and not ended: used, not spent
	Limit  int64     `json:"limit"` // max_conv_turns × max_dimensions + grants
	Closed bool      `json:"closed"`
	LastAt time.Time `json:"last_at"` // UTC, time of the run's newest entry
}

// Spent reports whether the run has nothing left: it is closed, or its limit is used up and none of the turns is open.
func (b Budget) Spent() bool { return b.Closed || b.Used-b.Open >= b.Limit }

// Usage is all that is kept of one run. Limit = MaxConvTurns × MaxDimensions + Granted.
type Usage struct {
	Budget
	Turns         Turns            `json:"turns"`
	Remaining     int64            `json:"remaining"`
	MaxConvTurns  int64            `json:"max_conv_turns"`
	MaxDimensions int64            `json:"max_dimensions"` // granted ones included
	Granted       int64            `json:"granted"`        // turns granted, without those of granted dimensions
	Dimensions    map[string]int64 `json:"dimensions"`     // turns per dimension; turns without one are not in it
	// DimensionGrants are turns granted to single dimensions: the bound of d is MaxConvTurns + DimensionGrants[d].
	DimensionGrants map[string]int64 `json:"dimension_grants"`
	OpenedAt        time.Time        `json:"opened_at"` // UTC
	LastSeq         uint64           `json:"last_seq"`
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
	// [MaxLimit]. The same limits again, whatever was granted since: the first receipt, Replayed. Other limits:
	// ErrRunExists. Closed: ErrRunClosed.
	OpenRun(ctx context.Context, run string, maxConvTurns, maxDimensions int64) (Receipt, error)

	// BeginTurn checks and appends the begin of a turn in one transaction. The turn counts against every bound from its
	// begin, and is open until it is ended: a dimension, and the turns without one, have at most one open turn. In this
	// order:
	//
	// The ledger must hold every given anchor (ErrAnchorLost): one that was replaced or rolled back gives no turns back.
	// The run must be known (ErrRunUnknown). A key that is known belongs to one begin of one dimension: with anything
	// else it is ErrKeyReused; while the turn that it began is open, its first receipt is replayed, and nothing ends;
	// afterwards it is ErrTurnOver. The run must not be closed (ErrRunClosed). Then the open turn of the dimension ends,
	// because the loop asks for the next one, and the bounds are checked: the run's limit, the number of dimensions and
	// the turns of this one. A refusal is a [*SpentError]. It comes after the end of the open turn was committed, and
	// changes nothing else.
	BeginTurn(ctx context.Context, run, dimension, key string, anchors ...Anchor) (Receipt, error)
	// EndTurn ends the open turn of a dimension; with a key, only the turn that was begun with this key. Where there is
	// nothing to end, in a closed run, too, the receipt of the run's newest entry is replayed. Unknown: ErrRunUnknown.
	EndTurn(ctx context.Context, run, dimension, key string) (Receipt, error)
	// RecordTurn is a turn begun and ended in one entry, for loops that count after the turn. Its checks are those of
	// BeginTurn, and with the same arguments a known key replays its first receipt always: at the limit and after
	// closing, too. While a turn of the dimension is open it refuses with ErrTurnOpen, before the bounds: that turn is
	// counted already. A refusal changes nothing.
	RecordTurn(ctx context.Context, run, dimension, key string, anchors ...Anchor) (Receipt, error)

	// Grant raises bounds of a run that is not closed, also at its limit: exactly one of g.Turns and g.Dimensions is ≥ 1,
	// and the reason must not be empty. A dimension must be in use, and no limit grows over [MaxLimit] (ErrInvalid).
	Grant(ctx context.Context, run string, g Grant, reason string) (Receipt, error)
	// CloseRun ends a run, and its open turns with it: it takes no more turns and no grants. Closing again is a replay.
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
