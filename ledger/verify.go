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
	dimensions map[string]dimensionState // as they are kept: turns without a dimension are there once one was begun
	seen       bool                      // in the runs bucket
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
	v.dimensionStates()
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
		r = &replayed{dimensions: map[string]dimensionState{}}
		v.runs[e.Run] = r
	}
	if r == nil {
		v.problem("entry %d is of run %q, which was not opened", e.Seq, page.Printable([]byte(e.Run)))
		return
	}
	if e != e.ofItsKind() {
		v.problem("entry %d holds what no %s entry has", e.Seq, e.Kind)
	}
	if r.state.closed {
		v.problem("entry %d is of run %q, which was closed before", e.Seq, page.Printable([]byte(e.Run)))
	}
	before, used := r.dimensions[e.Dimension]
	v.replayTurn(e, before)
	if e.Kind == KindGrant && !v.replayGrant(e, used) {
		return
	}
	if e.keepsDimension() {
		r.dimensions[e.Dimension] = before.apply(e)
	}
	isTurn := e.Kind == KindTurn || e.Kind == KindTurnBegun
	r.state = r.state.apply(e, isTurn && e.Dimension != "" && !used)
	switch s := r.state; {
	case s.used != e.Used || s.open != e.Open || s.limit != e.Limit:
		v.problem("entry %d says %d of %d turns, %d open, its run has %d of %d, %d open", e.Seq, e.Used, e.Limit, e.Open, s.used, s.limit, s.open)
	case s.used > s.limit || s.limit > MaxLimit:
		v.problem("entry %d takes its run to %d of %d turns", e.Seq, s.used, s.limit)
	case s.dimensions > s.maxDimensions:
		v.problem("entry %d takes its run to %d of %d dimensions", e.Seq, s.dimensions, s.maxDimensions)
	case isTurn && e.Dimension != "" && before.turns >= s.maxConvTurns+before.granted:
		v.problem("entry %d takes its dimension over %d turns", e.Seq, s.maxConvTurns+before.granted)
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

// replayTurn holds what an entry says of the open turn of its dimension against what is open.
func (v *verifier) replayTurn(e Entry, before dimensionState) {
	switch {
	case e.Kind == KindTurn && before.open != 0:
		v.problem("entry %d records a turn beside the open one of entry %d", e.Seq, before.open)
	case e.Kind == KindTurnEnded && before.open == 0:
		v.problem("entry %d ends a turn, and none is open", e.Seq)
	case (e.Kind == KindTurnEnded || e.Kind == KindTurnBegun) && e.Ends != before.open:
		v.problem("entry %d ends the turn of entry %d, the open one is of entry %d (0 is none)", e.Seq, e.Ends, before.open)
	}
}

// replayGrant reports whether a grant is one that can be applied.
func (v *verifier) replayGrant(e Entry, used bool) bool {
	if err := (Grant{Turns: e.Turns, Dimension: e.Dimension, Dimensions: e.Dimensions}).valid(); err != nil {
		v.problem("entry %d: %v", e.Seq, err)
		return false
	}
	if e.Dimension != "" && !used {
		v.problem("entry %d grants turns to dimension %q, which was not in use", e.Seq, page.Printable([]byte(e.Dimension)))
		return false
	}
	return true
}

// keepsDimension reports whether something is kept of the entry's dimension: turns without one only have their open
// turn kept.
func (e Entry) keepsDimension() bool {
	switch e.Kind {
	case KindTurnBegun, KindTurnEnded:
		return true
	case KindTurn, KindGrant:
		return e.Dimension != ""
	}
	return false
}

// ofItsKind is the entry without what entries of its kind do not have.
func (e Entry) ofItsKind() Entry {
	k := Entry{Seq: e.Seq, At: e.At, Kind: e.Kind, Run: e.Run, Used: e.Used, Open: e.Open, Limit: e.Limit}
	switch e.Kind {
	case KindRunOpened:
		k.MaxConvTurns, k.MaxDimensions = e.MaxConvTurns, e.MaxDimensions
	case KindTurnBegun:
		k.Dimension, k.Key, k.Ends = e.Dimension, e.Key, e.Ends
	case KindTurnEnded:
		k.Dimension, k.Ends = e.Dimension, e.Ends
	case KindTurn:
		k.Dimension, k.Key = e.Dimension, e.Key
	case KindGrant:
		k.Turns, k.Dimension, k.Dimensions, k.Reason = e.Turns, e.Dimension, e.Dimensions, e.Reason
	}
	return k
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
			v.problem("run %q is kept as %d of %d turns, %d open, at entry %d, its entries make %d of %d, %d open, at entry %d, or differ in its other numbers",
				page.Printable(key), s.used, s.limit, s.open, s.lastSeq, r.state.used, r.state.limit, r.state.open, r.state.lastSeq)
		}
	})
	for name, r := range v.runs {
		if !r.seen {
			v.problem("run %q has entries, but no state", page.Printable([]byte(name)))
		}
	}
}

func (v *verifier) dimensionStates() {
	want := 0
	for _, r := range v.runs {
		want += len(r.dimensions)
	}
	got := 0
	v.each(bucketDimensions, func(key, value []byte) {
		got++
		run, name, _ := splitRunKey(key)
		var made dimensionState
		there := false
		if r := v.runs[run]; r != nil {
			made, there = r.dimensions[name]
		}
		if kept, err := decodeDimensionState(value); err != nil || !there || kept != made {
			v.problem("dimension %q of run %q is kept as %d turns, %d granted, entry %d open, its entries make %d, %d and %d",
				page.Printable([]byte(name)), page.Printable([]byte(run)), kept.turns, kept.granted, kept.open, made.turns, made.granted, made.open)
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
