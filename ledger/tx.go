package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/capgate/capgate/ledger/internal/page"
)

// tx is one transaction on a ledger whose header was found sound. Every get is guarded first.
type tx struct {
	bolt  *bbolt.Tx
	guard guard
	now   func() time.Time
	id    digest
	head  link
	dirty bool // something was appended
	// replays: the answer rests on an entry of an earlier transaction, which may not have been flushed.
	replays bool
	// refusal is the answer of a transaction that commits what it appended, and refuses.
	refusal error
}

// newTx reads the meta bucket: the format before anything else, seals included, which a newer one may make otherwise.
func newTx(bolt *bbolt.Tx, g guard, now func() time.Time) (*tx, error) {
	t := &tx{bolt: bolt, guard: g, now: now}
	if err := g.check(bucketMeta, page.Range{LayoutOnly: true}); err != nil {
		return t, err
	}
	switch v, ok := t.format(); {
	case !ok || v < 1:
		return t, corrupt("its format is not stated: not a ledger")
	case v > format:
		return t, newer(v)
	}
	if err := g.complete(); err != nil {
		return t, err
	}
	id, err := t.get(bucketMeta, []byte(metaID))
	if err != nil {
		return t, err
	}
	if len(id) != len(t.id) {
		return t, corrupt("its id is missing")
	}
	copy(t.id[:], id)
	head, err := t.get(bucketMeta, []byte(metaHead))
	if err != nil {
		return t, err
	}
	t.head, err = decodeLink(head)
	return t, err
}

func (t *tx) format() (uint32, bool) {
	v := t.bolt.Bucket([]byte(bucketMeta)).Get([]byte(metaFormat))
	if len(v) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(v), true
}

// get reads one value, without its seal; nil means that the key is not there. The value is valid until the
// transaction ends or appends.
func (t *tx) get(bucket string, key []byte) ([]byte, error) {
	if err := t.guard.check(bucket, page.Exactly(key)); err != nil {
		return nil, err
	}
	value := t.bolt.Bucket([]byte(bucket)).Get(key)
	if value == nil {
		r := page.Exactly(key)
		r.Past = true
		return nil, t.guard.check(bucket, r)
	}
	if !isSealed(bucket, key) {
		return value, nil
	}
	return unseal(bucket, key, value)
}

// put writes one value under its seal. The key's path was guarded by a get before.
func (t *tx) put(bucket string, key, value []byte) error {
	b := t.bolt.Bucket([]byte(bucket))
	if bucket == bucketEntries {
		b.FillPercent = 1 // keys only ever grow
	} else {
		value = seal(bucket, key, value)
	}
	return b.Put(key, value)
}

// scan calls fn for every value of a bucket whose key starts with prefix, in order.
func (t *tx) scan(bucket string, prefix []byte, fn func(key, value []byte) error) error {
	r := page.Range{Lo: prefix, Past: true}
	if len(prefix) > 0 {
		r.Hi = append(bytes.Clone(prefix), 0xFF) // ids are UTF-8, which has no byte 0xFF
	}
	if err := t.guard.check(bucket, r); err != nil {
		return err
	}
	c := t.bolt.Bucket([]byte(bucket)).Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		value, err := unseal(bucket, k, v)
		if err != nil {
			return err
		}
		if err := fn(k, value); err != nil {
			return err
		}
	}
	return nil
}

// entry reads the hash and the stored bytes of an entry, which must be there. Its path must have been guarded.
func (t *tx) entry(seq uint64) (digest, []byte, error) {
	value := t.bolt.Bucket([]byte(bucketEntries)).Get(encodeUint(seq))
	if value == nil {
		return digest{}, nil, corrupt("entry %d is missing", seq)
	}
	hash, stored, err := splitEntry(value)
	if err != nil {
		return digest{}, nil, corrupt("entry %d %v", seq, err)
	}
	return hash, stored, nil
}

// hashAt is the hash of an entry, or the id for sequence 0.
func (t *tx) hashAt(seq uint64) (digest, error) {
	if seq == 0 {
		return t.id, nil
	}
	if err := t.guard.check(bucketEntries, page.Exactly(encodeUint(seq))); err != nil {
		return digest{}, err
	}
	hash, _, err := t.entry(seq)
	return hash, err
}

// chained reads an entry whose hash is recomputed from the one before. Both lie side by side, so one check does.
func (t *tx) chained(seq uint64) (digest, []byte, error) {
	if seq == 0 {
		return digest{}, nil, corrupt("something rests on entry 0, which does not exist")
	}
	if err := t.guard.check(bucketEntries, page.Range{Lo: encodeUint(seq - 1), Hi: encodeUint(seq)}); err != nil {
		return digest{}, nil, err
	}
	previous := t.id
	if seq > 1 {
		var err error
		if previous, _, err = t.entry(seq - 1); err != nil {
			return digest{}, nil, err
		}
	}
	hash, stored, err := t.entry(seq)
	if err != nil {
		return digest{}, nil, err
	}
	if chain(previous, stored) != hash {
		return digest{}, nil, corrupt("entry %d does not have the hash of its bytes", seq)
	}
	return hash, stored, nil
}

// replay acknowledges an entry once more. Its run is in state s by now.
func (t *tx) replay(s runState, seq uint64) (Receipt, error) {
	r, err := t.receipt(seq)
	if err != nil {
		return Receipt{}, err
	}
	t.replays = true
	r.Turns = s.turns()
	return r, nil
}

// receipt reads an entry back.
func (t *tx) receipt(seq uint64) (Receipt, error) {
	hash, stored, err := t.chained(seq)
	if err != nil {
		return Receipt{}, err
	}
	e, err := decodeEntry(stored)
	if err != nil {
		return Receipt{}, corrupt("entry %d %v", seq, err)
	}
	if e.Seq != seq {
		return Receipt{}, corrupt("entry %d says that it is entry %d", seq, e.Seq)
	}
	return Receipt{Entry: e, Hash: hash.String(), Replayed: true}, nil
}

// run reads the state of a run and holds it against the entry it rests on. found is false for an unknown run.
func (t *tx) run(run string) (s runState, found bool, err error) {
	value, err := t.get(bucketRuns, []byte(run))
	if err != nil || value == nil {
		return s, false, err
	}
	if s, err = decodeRunState(value); err != nil {
		return s, false, err
	}
	_, stored, err := t.chained(s.lastSeq)
	if err != nil {
		return s, false, err
	}
	if !matches(stored, s.lastSeq, run, s.used, s.open, s.limit) {
		return s, false, corrupt("the counters of run %q do not match entry %d", run, s.lastSeq)
	}
	return s, true, nil
}

// existing is run for a run that must be there.
func (t *tx) existing(run string) (runState, error) {
	s, found, err := t.run(run)
	if err == nil && !found {
		err = fmt.Errorf("%w: %q; open it first", ErrRunUnknown, run)
	}
	return s, err
}

// anchored checks that the ledger holds the entry an anchor names.
func (t *tx) anchored(a parsedAnchor) error {
	if a.id != t.id {
		return anchorLost("the ledger's id is %s, the anchor's %s: it is another ledger", t.id, a.id)
	}
	if a.seq > t.head.seq {
		return anchorLost("the ledger ends with entry %d, the anchor names entry %d: entries were lost", t.head.seq, a.seq)
	}
	hash, err := t.hashAt(a.seq)
	if err != nil {
		return err
	}
	if hash != a.hash {
		return anchorLost("entry %d is another one: the ledger was rolled back and written on", a.seq)
	}
	return nil
}

// appendable checks the end of the chain: the newest entry is the one that the head says, and none follows it.
func (t *tx) appendable() error {
	if t.head.seq > 0 {
		hash, _, err := t.chained(t.head.seq)
		if err != nil {
			return err
		}
		if hash != t.head.hash {
			return corrupt("the head does not match entry %d", t.head.seq)
		}
	} else if t.head.hash != t.id {
		return corrupt("the head of the empty ledger is not its id")
	}
	after, err := t.get(bucketEntries, encodeUint(t.head.seq+1))
	if err == nil && after != nil {
		err = corrupt("there is an entry %d after the head", t.head.seq+1)
	}
	return err
}

// append adds one entry, and the state of its run after it. newDimension goes to [runState.apply].
func (t *tx) append(s runState, e Entry, newDimension bool) (Receipt, error) {
	if err := t.appendable(); err != nil {
		return Receipt{}, err
	}
	at, err := stamp(t.now())
	if err != nil {
		return Receipt{}, err
	}
	e.Seq, e.At = t.head.seq+1, at
	s = s.apply(e, newDimension)
	e.Used, e.Open, e.Limit = s.used, s.open, s.limit
	stored, err := encodeEntry(e)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	t.head = link{seq: e.Seq, hash: chain(t.head.hash, stored)}
	for _, p := range []struct {
		bucket     string
		key, value []byte
	}{
		{bucketEntries, encodeUint(e.Seq), append(bytes.Clone(t.head.hash[:]), stored...)},
		{bucketRuns, []byte(e.Run), s.encode()},
		{bucketMeta, []byte(metaHead), encodeLink(t.head)},
	} {
		if err := t.put(p.bucket, p.key, p.value); err != nil {
			return Receipt{}, notRecorded(err)
		}
	}
	t.dirty = true
	return Receipt{Entry: e, Hash: t.head.hash.String(), Turns: s.turns()}, nil
}

func anchorLost(found string, args ...any) error {
	return fmt.Errorf("%w: %s; restore it from a copy, or close the scope", ErrAnchorLost, fmt.Sprintf(found, args...))
}
