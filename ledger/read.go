package ledger

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/capgate/capgate/ledger/internal/page"
)

// Budget implements [Ledger]: a constant number of lookups, however many entries there are.
func (l *File) Budget(ctx context.Context, run string, anchor *Anchor) (Budget, error) {
	b, err := l.budget(ctx, run, anchor)
	return b, l.wrap("read budget", err)
}

func (l *File) budget(ctx context.Context, run string, anchor *Anchor) (Budget, error) {
	if err := validRun(run); err != nil {
		return Budget{}, err
	}
	var parsed parsedAnchor
	if anchor != nil {
		var err error
		if parsed, err = parseAnchor(*anchor); err != nil {
			return Budget{}, err
		}
	}
	return transact(ctx, l, reading, func(ctx context.Context, t *tx) (Budget, error) {
		if anchor != nil {
			if err := t.anchored(parsed); err != nil {
				return Budget{}, err
			}
		}
		s, err := t.existing(run)
		if err != nil {
			return Budget{}, err
		}
		return s.budget(run), nil
	})
}

// Usage implements [Ledger].
func (l *File) Usage(ctx context.Context, run string) (Usage, error) {
	if err := validRun(run); err != nil {
		return Usage{}, l.wrap("read usage", err)
	}
	u, err := transact(ctx, l, walking, func(ctx context.Context, t *tx) (Usage, error) {
		s, err := t.existing(run)
		if err != nil {
			return Usage{}, err
		}
		return t.usage(run, s)
	})
	return u, l.wrap("read usage", err)
}

// usage adds the dimensions to the state of a run.
func (t *tx) usage(run string, s runState) (Usage, error) {
	u := s.usage(run)
	prefix := runPrefix(run)
	var open int64
	err := t.scan(bucketDimensions, prefix, func(key, value []byte) error {
		d, err := decodeDimensionState(value)
		if err != nil {
			return err
		}
		if d.open != 0 {
			open++
		}
		name := string(key[len(prefix):])
		if name == "" {
			return nil // turns without a dimension
		}
		u.Dimensions[name] = d.turns
		if d.granted > 0 {
			u.DimensionGrants[name] = d.granted
		}
		return nil
	})
	switch {
	case err != nil:
	case int64(len(u.Dimensions)) != s.dimensions:
		err = corrupt("run %q has %d dimensions, not %d", run, len(u.Dimensions), s.dimensions)
	case !s.closed && open != s.open:
		err = corrupt("run %q has %d open turns, not %d", run, open, s.open)
	}
	return u, err
}

// Runs implements [Ledger].
func (l *File) Runs(ctx context.Context) ([]Usage, error) {
	all, err := transact(ctx, l, walking, func(ctx context.Context, t *tx) ([]Usage, error) {
		var names []string
		err := t.scan(bucketRuns, nil, func(key, _ []byte) error {
			names = append(names, string(key))
			return nil
		})
		if err != nil {
			return nil, err
		}
		type openedRun struct {
			seq uint64
			Usage
		}
		var found []openedRun
		for _, run := range names {
			if err := ctx.Err(); err != nil {
				return nil, busy(err.Error())
			}
			s, err := t.existing(run)
			if err != nil {
				return nil, err
			}
			u, err := t.usage(run, s)
			if err != nil {
				return nil, err
			}
			found = append(found, openedRun{s.openedSeq, u})
		}
		slices.SortFunc(found, func(a, b openedRun) int { return cmp.Compare(a.seq, b.seq) })
		all := make([]Usage, len(found))
		for i, r := range found {
			all[i] = r.Usage
		}
		return all, nil
	})
	return all, l.wrap("list runs", err)
}

// Head implements [Ledger].
func (l *File) Head(ctx context.Context) (Anchor, error) {
	a, err := transact(ctx, l, reading, func(ctx context.Context, t *tx) (Anchor, error) {
		return t.anchor(), t.appendable()
	})
	if err != nil {
		return Anchor{}, l.wrap("read head", err)
	}
	return a, nil
}

// anchor is the anchor of the newest entry.
func (t *tx) anchor() Anchor {
	return Anchor{Ledger: t.id.String(), Seq: t.head.seq, Hash: t.head.hash.String()}
}

// Most of what one transaction of [File.Entries] reads. Between them the lock is free, so that a slow reader of an
// export stops nobody, and fn may use the ledger.
const (
	batchEntries = 2048
	batchBytes   = 1 << 20
)

// batch is a stretch of entries, and where the chain stands after it.
type batch struct {
	values [][]byte
	hashes []digest // of the entries, and before them of the one before
	head   uint64
}

// Entries implements [Ledger]. It hands out what was there when it began, in several transactions.
func (l *File) Entries(ctx context.Context, from uint64, fn func(r Receipt, stored []byte) error) error {
	next := max(from, 1)
	var last uint64 // the newest entry when it began
	var before *digest
	for {
		b, err := l.batch(ctx, next, last)
		if err != nil {
			return l.wrap("read entries", err)
		}
		if last == 0 {
			last = b.head
		}
		if len(b.values) == 0 {
			return nil
		}
		previous := b.hashes[0]
		if before != nil && *before != previous {
			return l.wrap("read entries", corrupt("entry %d was replaced meanwhile", next-1))
		}
		for i, stored := range b.values {
			hash := b.hashes[i+1]
			if chain(previous, stored) != hash {
				return l.wrap("read entries", corrupt("entry %d does not have the hash of its bytes", next))
			}
			e, err := decodeEntry(stored)
			if err != nil {
				return l.wrap("read entries", corrupt("entry %d %v", next, err))
			}
			if e.Seq != next {
				return l.wrap("read entries", corrupt("entry %d says that it is entry %d", next, e.Seq))
			}
			if err := fn(Receipt{Entry: e, Hash: hash.String()}, stored); err != nil {
				return err
			}
			previous = hash
			next++
		}
		before = &previous
	}
}

// batch reads entries from a sequence on, at most to last (0: to the head).
func (l *File) batch(ctx context.Context, from, last uint64) (batch, error) {
	return transact(ctx, l, walking, func(ctx context.Context, t *tx) (batch, error) {
		b := batch{head: t.head.seq}
		if last == 0 {
			last = t.head.seq
		}
		if last > t.head.seq {
			return b, corrupt("entries after %d were lost meanwhile", t.head.seq)
		}
		if from > last {
			return b, nil
		}
		before, err := t.hashAt(from - 1)
		if err != nil {
			return b, err
		}
		b.hashes = append(b.hashes, before)
		last = min(last, from+batchEntries-1)
		if err := t.guard.check(bucketEntries, page.Range{Lo: encodeUint(from), Hi: encodeUint(last)}); err != nil {
			return b, err
		}
		c := t.bolt.Bucket([]byte(bucketEntries)).Cursor()
		key, value := c.Seek(encodeUint(from))
		for seq, size := from, 0; ; key, value = c.Next() {
			if !bytes.Equal(key, encodeUint(seq)) {
				return b, corrupt("entry %d is missing", seq)
			}
			hash, stored, err := splitEntry(value)
			if err != nil {
				return b, corrupt("entry %d %v", seq, err)
			}
			b.values = append(b.values, bytes.Clone(stored))
			b.hashes = append(b.hashes, hash)
			// Next must not be asked beyond the checked range.
			if size += len(stored); seq == last || size >= batchBytes {
				return b, nil
			}
			seq++
		}
	})
}
