package ledger

import (
	"context"
	"fmt"
)

// BeginTurn implements [Ledger].
func (l *File) BeginTurn(ctx context.Context, run, dimension, key string, anchors ...Anchor) (Receipt, error) {
	r, err := l.nextTurn(ctx, turn{KindTurnBegun, run, dimension, key}, anchors)
	return r, l.wrap("begin turn", err)
}

// RecordTurn implements [Ledger].
func (l *File) RecordTurn(ctx context.Context, run, dimension, key string, anchors ...Anchor) (Receipt, error) {
	r, err := l.nextTurn(ctx, turn{KindTurn, run, dimension, key}, anchors)
	return r, l.wrap("record turn", err)
}

// EndTurn implements [Ledger].
func (l *File) EndTurn(ctx context.Context, run, dimension, key string) (Receipt, error) {
	r, err := l.endTurn(ctx, turn{KindTurnEnded, run, dimension, key})
	return r, l.wrap("end turn", err)
}

// turn is what a caller asks for.
type turn struct {
	kind                Kind
	run, dimension, key string
}

func (l *File) nextTurn(ctx context.Context, w turn, anchors []Anchor) (Receipt, error) {
	if err := validTurn(w.run, w.dimension, w.key); err != nil {
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
		s, err := t.existing(w.run)
		if err != nil {
			return Receipt{}, err
		}
		return t.next(s, w)
	})
}

// next begins or records a turn of a run in state s, or replays the one that its key stands for.
func (t *tx) next(s runState, w turn) (Receipt, error) {
	known, err := t.keyed(w)
	if err != nil {
		return Receipt{}, err
	}
	if known != 0 && w.kind == KindTurn {
		return t.replay(s, known)
	}
	if s.closed {
		if known != 0 {
			return Receipt{}, turnOver(w)
		}
		return Receipt{}, fmt.Errorf("%w: %q takes no more turns; open another run", ErrRunClosed, w.run)
	}
	d, used, err := t.dimension(w.run, w.dimension)
	switch {
	case err != nil:
		return Receipt{}, err
	case d.open != 0 && s.open == 0:
		return Receipt{}, corrupt("run %q has no open turn, its dimension %q has one", w.run, w.dimension)
	case known != 0 && d.open == known:
		return t.replay(s, known)
	case known != 0:
		return Receipt{}, turnOver(w)
	case d.open != 0 && w.kind == KindTurn:
		return Receipt{}, fmt.Errorf("%w: %s is counted already; end it with `capgate turn end`", ErrTurnOpen, w.of())
	}
	if refusal := spent(s, d, !used, w); refusal != nil {
		if d.open == 0 {
			return Receipt{}, refusal
		}
		// The loop asked for more, so its last turn is over.
		t.refusal = refusal
		_, err := t.end(s, d, w)
		return Receipt{}, err
	}
	e := Entry{Kind: w.kind, Run: w.run, Dimension: w.dimension, Key: w.key, Ends: d.open}
	r, err := t.append(s, e, w.dimension != "" && !used)
	if err == nil && (w.dimension != "" || w.kind == KindTurnBegun) {
		err = t.putDimension(w.run, w.dimension, d.apply(r.Entry))
	}
	if err == nil && w.key != "" {
		err = t.put(bucketKeys, runKey(w.run, w.key), encodeUint(r.Seq))
	}
	if err != nil {
		return Receipt{}, notRecorded(err)
	}
	return r, nil
}

// spent holds one more turn against the bounds. isNew says that its dimension, if it has one, would be one more.
func spent(s runState, d dimensionState, isNew bool, w turn) error {
	bound := s.maxConvTurns + d.granted
	switch {
	case s.used >= s.limit:
		return &SpentError{Run: w.run, Bound: "turns", Used: s.used, Limit: s.limit}
	case w.dimension == "":
		return nil
	case isNew && s.dimensions >= s.maxDimensions:
		return &SpentError{Run: w.run, Dimension: w.dimension, Bound: "dimensions", Used: s.dimensions, Limit: s.maxDimensions}
	case d.turns >= bound:
		return &SpentError{Run: w.run, Dimension: w.dimension, Bound: "dimension-turns", Used: d.turns, Limit: bound}
	}
	return nil
}

func (l *File) endTurn(ctx context.Context, w turn) (Receipt, error) {
	if err := validTurn(w.run, w.dimension, w.key); err != nil {
		return Receipt{}, err
	}
	return transact(ctx, l, writing, func(ctx context.Context, t *tx) (Receipt, error) {
		s, err := t.existing(w.run)
		if err != nil {
			return Receipt{}, err
		}
		if s.open == 0 {
			return t.replay(s, s.lastSeq)
		}
		d, _, err := t.dimension(w.run, w.dimension)
		if err != nil {
			return Receipt{}, err
		}
		if d.open != 0 && w.key != "" {
			if seq, err := t.keySeq(w.run, w.key); err != nil {
				return Receipt{}, err
			} else if seq != d.open {
				return t.replay(s, s.lastSeq)
			}
		}
		if d.open == 0 {
			return t.replay(s, s.lastSeq)
		}
		return t.end(s, d, w)
	})
}

// end appends the end of the open turn of a dimension.
func (t *tx) end(s runState, d dimensionState, w turn) (Receipt, error) {
	r, err := t.append(s, Entry{Kind: KindTurnEnded, Run: w.run, Dimension: w.dimension, Ends: d.open}, false)
	if err == nil {
		err = t.putDimension(w.run, w.dimension, d.apply(r.Entry))
	}
	if err != nil {
		return Receipt{}, err
	}
	return r, nil
}

// keyed finds the entry that came with the key of a turn, which must have been the same turn. 0 is none.
func (t *tx) keyed(w turn) (uint64, error) {
	if w.key == "" {
		return 0, nil
	}
	seq, err := t.keySeq(w.run, w.key)
	if err != nil || seq == 0 {
		return 0, err
	}
	r, err := t.receipt(seq)
	switch {
	case err != nil:
		return 0, err
	case r.Run != w.run || r.Key != w.key || r.Kind != KindTurn && r.Kind != KindTurnBegun:
		return 0, corrupt("key %q of run %q points at entry %d, which did not come with it", w.key, w.run, seq)
	case r.Kind != w.kind || r.Dimension != w.dimension:
		was := turn{r.Kind, r.Run, r.Dimension, r.Key}
		return 0, fmt.Errorf("%w: key %q of run %q came with %s, not with %s; use another key", ErrKeyReused, w.key, w.run, was.what(), w.what())
	}
	return seq, nil
}

// keySeq is the sequence of the entry that came with a key, or 0.
func (t *tx) keySeq(run, key string) (uint64, error) {
	value, err := t.get(bucketKeys, runKey(run, key))
	if err != nil || value == nil {
		return 0, err
	}
	seq, err := decodeUint(value)
	if err == nil && seq == 0 {
		err = corrupt("key %q of run %q points at no entry", key, run)
	}
	return seq, err
}

// dimension reads what is kept of a dimension, or of the turns without one.
func (t *tx) dimension(run, dimension string) (d dimensionState, found bool, err error) {
	value, err := t.get(bucketDimensions, runKey(run, dimension))
	if err != nil || value == nil {
		return d, false, err
	}
	d, err = decodeDimensionState(value)
	return d, true, err
}

func (t *tx) putDimension(run, dimension string, d dimensionState) error {
	if err := t.put(bucketDimensions, runKey(run, dimension), d.encode()); err != nil {
		return notRecorded(err)
	}
	return nil
}

// of names the open turn of a dimension in an error.
func (w turn) of() string {
	if w.dimension == "" {
		return fmt.Sprintf("the open turn of run %q", w.run)
	}
	return fmt.Sprintf("the open turn of dimension %q of run %q", w.dimension, w.run)
}

// what names the operation in an error.
func (w turn) what() string {
	doing := "the begin of a turn"
	if w.kind == KindTurn {
		doing = "a recorded turn"
	}
	if w.dimension == "" {
		return doing + " without a dimension"
	}
	return fmt.Sprintf("%s of dimension %q", doing, w.dimension)
}

func turnOver(w turn) error {
	return fmt.Errorf("%w: the turn that key %q began in run %q was ended; begin the next one with another key", ErrTurnOver, w.key, w.run)
}
