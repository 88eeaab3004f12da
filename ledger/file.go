package ledger

import (
	"context"
	"fmt"
	"time"
)

// Options are the choices of [NewFile]. The zero value is right for everything but tests.
type Options struct {
	Now func() time.Time // the clock of entries; nil is time.Now
}

// File is a [Ledger] in one local file. It holds no lock and no descriptor between calls. A context without a deadline
// gets [DefaultTimeout] for each transaction.
//
// Each method works in a goroutine of its own, which is left behind at the deadline when the kernel or the disk does
// not answer. It then ends by itself, closes what it opened, and commits nothing.
type File struct {
	path string
	now  func() time.Time
	gate chan struct{}

	unguarded bool // leaves the pages to bbolt as they are: for tests
}

var _ Ledger = (*File)(nil)

// NewFile names a ledger file. It does not touch the disk: the file is created by the first [File.OpenRun].
func NewFile(path string, opt Options) *File {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &File{path: path, now: opt.Now, gate: make(chan struct{}, 1)}
}

// wrap says what was being done, and to which file.
func (l *File) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s in ledger %s: %w", doing, l.path, err)
}

// OpenRun implements [Ledger]. It creates the file, and its directory with mode 0700, when there is none.
func (l *File) OpenRun(ctx context.Context, run string, maxConvTurns, maxDimensions int64) (Receipt, error) {
	r, err := l.openRun(ctx, run, maxConvTurns, maxDimensions)
	return r, l.wrap("open run", err)
}

func (l *File) openRun(ctx context.Context, run string, maxConvTurns, maxDimensions int64) (Receipt, error) {
	if err := validRun(run); err != nil {
		return Receipt{}, err
	}
	if err := validLimits(maxConvTurns, maxDimensions); err != nil {
		return Receipt{}, err
	}
	open := func(ctx context.Context, t *tx) (Receipt, error) {
		s, found, err := t.run(run)
		switch {
		case err != nil:
			return Receipt{}, err
		case !found:
			e := Entry{Kind: KindRunOpened, Run: run, MaxConvTurns: maxConvTurns, MaxDimensions: maxDimensions}
			return t.append(s, e, false)
		case s.closed:
			return Receipt{}, fmt.Errorf("%w: %q; choose another id", ErrRunClosed, run)
		case s.maxConvTurns != maxConvTurns || s.maxDimensions != maxDimensions:
			return Receipt{}, fmt.Errorf("%w: %q has %d × %d turns, not %d × %d; use those, grant turns, or choose another id",
				ErrRunExists, run, s.maxConvTurns, s.maxDimensions, maxConvTurns, maxDimensions)
		}
		return t.receipt(s.openedSeq)
	}
	if err := l.ensure(ctx); err != nil {
		return Receipt{}, err
	}
	return transact(ctx, l, writing, open)
}

// RecordTurn implements [Ledger].
func (l *File) RecordTurn(ctx context.Context, run, dimension, key string, anchors ...Anchor) (Receipt, error) {
	r, err := l.recordTurn(ctx, run, dimension, key, anchors)
	return r, l.wrap("record turn", err)
}

func (l *File) recordTurn(ctx context.Context, run, dimension, key string, anchors []Anchor) (Receipt, error) {
	if err := validTurn(run, dimension, key); err != nil {
		return Receipt{}, err
	}
	parsed, err := parseAnchors(anchors)
	if err != nil {
		return Receipt{}, err
	}
	return transact(ctx, l, writing, func(ctx context.Context, t *tx) (Receipt, error) {
		for _, a := range parsed {
			if err := t.anchored(a); err != nil {
				return Receipt{}, err
			}
		}
		s, err := t.existing(run)
		if err != nil {
			return Receipt{}, err
		}
		if key != "" {
			if r, found, err := t.replay(run, key); found || err != nil {
				return r, err
			}
		}
		if s.closed {
			return Receipt{}, fmt.Errorf("%w: %q takes no more turns", ErrRunClosed, run)
		}
		if s.used >= s.limit {
			return Receipt{}, &SpentError{Run: run, Bound: "turns", Used: s.used, Limit: s.limit}
		}
		return t.turn(s, run, dimension, key)
	})
}

// replay finds the turn that a key was used for.
func (t *tx) replay(run, key string) (r Receipt, found bool, err error) {
	value, err := t.get(bucketKeys, runKey(run, key))
	if err != nil || value == nil {
		return r, false, err
	}
	seq, err := decodeUint(value)
	if err != nil {
		return r, false, err
	}
	if r, err = t.receipt(seq); err != nil {
		return r, false, err
	}
	if r.Kind != KindTurn || r.Run != run || r.Key != key {
		return Receipt{}, false, corrupt("key %q of run %q points at entry %d, which did not come with it", key, run, seq)
	}
	return r, true, nil
}

// turn appends a turn that the run's own limit allows, if the bounds of its dimension do.
func (t *tx) turn(s runState, run, dimension, key string) (Receipt, error) {
	var inDimension uint64
	isNew := false
	if dimension != "" {
		value, err := t.get(bucketDimensions, runKey(run, dimension))
		if err != nil {
			return Receipt{}, err
		}
		if value == nil {
			isNew = true
		} else if inDimension, err = decodeUint(value); err != nil {
			return Receipt{}, err
		}
		switch {
		case isNew && s.dimensions >= s.maxDimensions:
			return Receipt{}, &SpentError{Run: run, Dimension: dimension, Bound: "dimensions", Used: s.dimensions, Limit: s.maxDimensions}
		case inDimension >= uint64(s.maxConvTurns):
			return Receipt{}, &SpentError{Run: run, Dimension: dimension, Bound: "dimension-turns", Used: int64(inDimension), Limit: s.maxConvTurns}
		}
	}
	r, err := t.append(s, Entry{Kind: KindTurn, Run: run, Dimension: dimension, Key: key}, isNew)
	if err != nil {
		return Receipt{}, err
	}
	if dimension != "" {
		err = t.put(bucketDimensions, runKey(run, dimension), encodeUint(inDimension+1))
	}
	if key != "" && err == nil {
		err = t.put(bucketKeys, runKey(run, key), encodeUint(r.Seq))
	}
	if err != nil {
		return Receipt{}, notRecorded(err)
	}
	return r, nil
}

// Grant implements [Ledger]. It raises the run's limit only: the bounds of single dimensions, and their number, stay
// what they were when the run was opened, so granted turns go to dimensions with room or to turns without one.
func (l *File) Grant(ctx context.Context, run string, turns int64, reason string) (Receipt, error) {
	r, err := l.grant(ctx, run, turns, reason)
	return r, l.wrap("grant turns", err)
}

func (l *File) grant(ctx context.Context, run string, turns int64, reason string) (Receipt, error) {
	if err := validGrant(run, turns, reason); err != nil {
		return Receipt{}, err
	}
	return transact(ctx, l, writing, func(ctx context.Context, t *tx) (Receipt, error) {
		s, err := t.existing(run)
		switch {
		case err != nil:
			return Receipt{}, err
		case s.closed:
			return Receipt{}, fmt.Errorf("%w: %q takes no more grants", ErrRunClosed, run)
		case turns > MaxLimit-s.limit:
			return Receipt{}, fmt.Errorf("%w: %d more turns would raise the limit of run %q over %d", ErrInvalid, turns, run, int64(MaxLimit))
		}
		return t.append(s, Entry{Kind: KindGrant, Run: run, Turns: turns, Reason: reason}, false)
	})
}

// CloseRun implements [Ledger].
func (l *File) CloseRun(ctx context.Context, run string) (Receipt, error) {
	r, err := l.closeRun(ctx, run)
	return r, l.wrap("close run", err)
}

func (l *File) closeRun(ctx context.Context, run string) (Receipt, error) {
	if err := validRun(run); err != nil {
		return Receipt{}, err
	}
	return transact(ctx, l, writing, func(ctx context.Context, t *tx) (Receipt, error) {
		s, err := t.existing(run)
		if err != nil {
			return Receipt{}, err
		}
		if s.closed {
			return t.receipt(s.lastSeq)
		}
		return t.append(s, Entry{Kind: KindRunClosed, Run: run}, false)
	})
}
