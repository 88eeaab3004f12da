package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/capgate/capgate/ledger/internal/page"
)

// mostProblems bounds a report: one damaged page can break thousands of entries.
const mostProblems = 100

// Verify implements [Ledger]. It holds a shared lock for as long as it takes: give a large ledger a context with a
// deadline to match, some seconds per million entries.
func (l *File) Verify(ctx context.Context, anchors ...Anchor) (Report, error) {
	parsed, err := parseAnchors(anchors)
	if err != nil {
		return Report{}, l.wrap("verify anchors", err)
	}
	r, err := transact(ctx, l, walking, func(ctx context.Context, t *tx) (Report, error) {
		v := &verifier{tx: t, ctx: ctx, runs: map[string]*replayed{}}
		v.report.Head = t.anchor()
		err := v.all(parsed)
		if v.more > 0 {
			v.report.Problems = append(v.report.Problems, fmt.Sprintf("and %d more problems", v.more))
		}
		return v.report, err
	})
	return r, l.wrap("verify", err)
}

// verifier recomputes everything that a ledger says from its entries alone.
type verifier struct {
	*tx
	ctx    context.Context
	report Report
	more   int // problems beyond mostProblems
	runs   map[string]*replayed
	keys   int // turns that came with a key
}

// replayed is a run as its entries make it.
type replayed struct {
	state      runState
	dimensions map[string]int64
	seen       bool // in the runs bucket
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.report.Problems) == mostProblems {
		v.more++
		return
	}
	v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
}

func (v *verifier) all(anchors []parsedAnchor) error {
	// Nothing else may touch pages that are not sound: bbolt's own check runs in a goroutine that a fault would kill.
	if err := v.guard.everything(); err != nil {
		v.problem("%v", err)
		return nil
	}
	for err := range v.bolt.Check() {
		v.problem("%s", checked(err))
	}
	if err := v.entries(); err != nil {
		return err
	}
	v.states()
	v.dimensionCounts()
	v.keyCount()
	for _, a := range anchors {
		if err := v.anchored(a); err != nil {
			v.problem("anchor of entry %d: %v", a.seq, err)
		}
	}
	return v.ctx.Err()
}

// checked words what bbolt's own check found, or what it stumbled over.
func checked(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if cause, panicked := strings.CutPrefix(text, "panic: "); panicked {
		return fmt.Sprintf("the pages of the file cannot be walked: %s", cause)
	}
	return fmt.Sprintf("the pages of the file do not add up: %s", text)
}

// entries walks the chain. A problem with one entry does not make problems of those that follow: each is held
// against the hash that the one before it has.
func (v *verifier) entries() error {
	at := link{hash: v.id}
	c := v.bolt.Bucket([]byte(bucketEntries)).Cursor()
	for key, value := c.First(); key != nil; key, value = c.Next() {
		if at.seq%256 == 0 && v.ctx.Err() != nil {
			return busy("reading all of it was not done before the deadline")
		}
		if len(key) != 8 {
			v.problem("there is an entry with a malformed key %x", key)
			continue
		}
		seq := binary.BigEndian.Uint64(key)
		if seq != at.seq+1 {
			v.problem("entry %d follows entry %d", seq, at.seq)
		}
		v.report.Entries++
		at.seq = seq
		hash, stored, err := splitEntry(value)
		if err != nil {
			v.problem("entry %d %v", seq, err)
			continue
		}
		if chain(at.hash, stored) != hash {
			v.problem("entry %d does not have the hash of its bytes and its predecessor", seq)
		}
		at.hash = hash
		e, err := decodeEntry(stored)
		if err != nil {
			v.problem("entry %d %v", seq, err)
			continue
		}
		if e.Seq != seq {
			v.problem("entry %d says that it is entry %d", seq, e.Seq)
			e.Seq = seq
		}
		v.replay(e)
	}
	if at != v.head {
		v.problem("the head is entry %d with hash %s, the last entry is %d with hash %s", v.head.seq, v.head.hash, at.seq, at.hash)
	}
	return nil
}

// replay applies one entry by the rules that it was written under.
func (v *verifier) replay(e Entry) {
	r := v.runs[e.Run]
	if e.Kind == KindRunOpened {
		if r != nil {
			v.problem("entry %d opens run %q again", e.Seq, page.Printable([]byte(e.Run)))
			return
		}
		if err := validLimits(e.MaxConvTurns, e.MaxDimensions); err != nil {
			v.problem("entry %d: %v", e.Seq, err)
			return
		}
		r = &replayed{dimensions: map[string]int64{}}
		v.runs[e.Run] = r
	}
	if r == nil {
		v.problem("entry %d is of run %q, which was not opened", e.Seq, page.Printable([]byte(e.Run)))
		return
	}
	if r.state.closed {
		v.problem("entry %d is of run %q, which was closed before", e.Seq, page.Printable([]byte(e.Run)))
	}
	before := r.dimensions[e.Dimension]
	if e.Kind == KindTurn && e.Dimension != "" {
		r.dimensions[e.Dimension]++
	}
	r.state = r.state.apply(e, e.Dimension != "" && before == 0)
	switch s := r.state; {
	case s.used != e.Used || s.limit != e.Limit:
		v.problem("entry %d says %d of %d turns, its run has %d of %d", e.Seq, e.Used, e.Limit, s.used, s.limit)
	case s.used > s.limit || s.limit > MaxLimit:
		v.problem("entry %d takes its run to %d of %d turns", e.Seq, s.used, s.limit)
	case s.dimensions > s.maxDimensions:
		v.problem("entry %d takes its run to %d of %d dimensions", e.Seq, s.dimensions, s.maxDimensions)
	case before >= s.maxConvTurns && e.Kind == KindTurn && e.Dimension != "":
		v.problem("entry %d takes its dimension over %d turns", e.Seq, s.maxConvTurns)
	}
	if e.Key == "" {
		return
	}
	v.keys++
	value, err := v.get(bucketKeys, runKey(e.Run, e.Key))
	if err != nil || !bytes.Equal(value, encodeUint(e.Seq)) {
		v.problem("the key of entry %d does not lead back to it", e.Seq)
	}
}

// states holds the kept state of every run against the recomputed one.
func (v *verifier) states() {
	v.each(bucketRuns, func(key, value []byte) {
		v.report.Runs++
		r := v.runs[string(key)]
		if r == nil {
			v.problem("run %q has a state, but no entry", page.Printable(key))
			return
		}
		r.seen = true
		if s, err := decodeRunState(value); err != nil {
			v.problem("run %q: %v", page.Printable(key), err)
		} else if s != r.state {
			v.problem("run %q is kept as %d of %d turns at entry %d, its entries make %d of %d at entry %d, or differ in its other numbers",
				page.Printable(key), s.used, s.limit, s.lastSeq, r.state.used, r.state.limit, r.state.lastSeq)
		}
	})
	for name, r := range v.runs {
		if !r.seen {
			v.problem("run %q has entries, but no state", page.Printable([]byte(name)))
		}
	}
}

func (v *verifier) dimensionCounts() {
	want := 0
	for _, r := range v.runs {
		want += len(r.dimensions)
	}
	got := 0
	v.each(bucketDimensions, func(key, value []byte) {
		got++
		run, name, _ := splitRunKey(key)
		var turns int64
		if r := v.runs[run]; r != nil {
			turns = r.dimensions[name]
		}
		if n, err := decodeUint(value); err != nil || turns == 0 || int64(n) != turns {
			v.problem("dimension %q of run %q is kept as %d turns, its entries make %d", page.Printable([]byte(name)), page.Printable([]byte(run)), n, turns)
		}
	})
	if got != want {
		v.problem("%d dimensions are kept, the entries make %d", got, want)
	}
}

// keyCount finds keys without an entry: those of entries were looked up one by one.
func (v *verifier) keyCount() {
	got := 0
	v.each(bucketKeys, func(_, _ []byte) { got++ })
	if got != v.keys {
		v.problem("%d keys are kept, the entries came with %d", got, v.keys)
	}
}

func (v *verifier) each(bucket string, fn func(key, value []byte)) {
	err := v.scan(bucket, nil, func(key, value []byte) error {
		fn(key, value)
		return nil
	})
	if err != nil {
		v.problem("bucket %s: %v", bucket, err)
	}
}
