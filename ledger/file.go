package ledger

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
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

	sync      func(*bbolt.DB) error // flushes the file; a test counts
	saw       func(head uint64)     // tells a test which entry a transaction found as the newest; nil for others
	unguarded bool                  // leaves the pages to bbolt as they are: for tests
}

var _ Ledger = (*File)(nil)

// NewFile names a ledger file. It does not touch the disk: the file is created by the first [File.OpenRun].
func NewFile(path string, opt Options) *File {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &File{path: path, now: opt.Now, gate: make(chan struct{}, 1), sync: (*bbolt.DB).Sync}
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
		case s.maxConvTurns != maxConvTurns || s.maxDimensions-s.grantedDimensions != maxDimensions:
			return Receipt{}, fmt.Errorf("%w: %q has %d × %d turns, not %d × %d; use those, grant turns, or choose another id",
				ErrRunExists, run, s.maxConvTurns, s.maxDimensions-s.grantedDimensions, maxConvTurns, maxDimensions)
		}
		return t.replay(s, s.openedSeq)
	}
	if err := l.ensure(ctx); err != nil {
		return Receipt{}, err
	}
	return transact(ctx, l, writing, open)
}

// Grant implements [Ledger].
func (l *File) Grant(ctx context.Context, run string, g Grant, reason string) (Receipt, error) {
	r, err := l.grant(ctx, run, g, reason)
	return r, l.wrap("grant", err)
}

func (l *File) grant(ctx context.Context, run string, g Grant, reason string) (Receipt, error) {
	if err := validGrant(run, g, reason); err != nil {
		return Receipt{}, err
	}
	return transact(ctx, l, writing, func(ctx context.Context, t *tx) (Receipt, error) {
		s, err := t.existing(run)
		if err != nil {
			return Receipt{}, err
		}
		if s.closed {
			return Receipt{}, fmt.Errorf("%w: %q takes no more grants; open another run", ErrRunClosed, run)
		}
		var d dimensionState
		if g.Dimension != "" {
			var used bool
			if d, used, err = t.dimension(run, g.Dimension); err != nil {
				return Receipt{}, err
			}
			if !used {
				return Receipt{}, fmt.Errorf("%w: run %q has no dimension %q yet; grant to one that is in use, or grant a dimension more", ErrInvalid, run, g.Dimension)
			}
		}
		switch room := MaxLimit - s.limit; {
		case g.Turns > room:
			return Receipt{}, fmt.Errorf("%w: %d more turns would raise the limit of run %q over %d; grant fewer", ErrInvalid, g.Turns, run, int64(MaxLimit))
		case g.Dimensions > room/s.maxConvTurns:
			return Receipt{}, fmt.Errorf("%w: %d more dimensions of %d turns would raise the limit of run %q over %d; grant fewer",
				ErrInvalid, g.Dimensions, s.maxConvTurns, run, int64(MaxLimit))
		}
		r, err := t.append(s, Entry{Kind: KindGrant, Run: run, Turns: g.Turns, Dimension: g.Dimension, Dimensions: g.Dimensions, Reason: reason}, false)
		if err == nil && g.Dimension != "" {
			err = t.putDimension(run, g.Dimension, d.apply(r.Entry))
		}
		if err != nil {
			return Receipt{}, err
		}
		return r, nil
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
			return t.replay(s, s.lastSeq)
		}
		return t.append(s, Entry{Kind: KindRunClosed, Run: run}, false)
	})
}
