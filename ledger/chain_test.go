package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/capgate/capgate/ledger/internal/page"
)

// edit changes a ledger file behind the back of this package, soundly as far as bbolt can tell.
func edit(t *testing.T, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: page.Size})
	require.NoError(t, err)
	require.NoError(t, db.Update(change))
	require.NoError(t, db.Close())
}

func editEntries(change func(b *bbolt.Bucket) error) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte(bucketEntries))) }
}

func problems(t *testing.T, l *File, anchors ...Anchor) []string {
	t.Helper()
	report, err := l.Verify(context.Background(), anchors...)
	require.NoError(t, err)
	for _, p := range report.Problems {
		require.NotContains(t, p, "\n")
	}
	return report.Problems
}

func TestEditRemovalAndReorderingOfAnyEntryIsFound(t *testing.T) {
	t.Parallel()
	l := NewFile(t.TempDir()+"/ledger.db", Options{})
	mustOpen(t, l, "r", 20, 2)
	for i := range 5 {
		mustTurn(t, l, "r", fmt.Sprint("d", i%2), fmt.Sprint("k", i))
	}
	_, err := l.Grant(context.Background(), "r", Grant{Turns: 2}, "more")
	require.NoError(t, err)
	mustBegin(t, l, "r", "d0", "begun")
	mustBegin(t, l, "r", "d0", "")
	_, err = l.EndTurn(context.Background(), "r", "d0", "")
	require.NoError(t, err)
	_, err = l.Grant(context.Background(), "r", Grant{Dimensions: 2}, "more")
	require.NoError(t, err)
	mustBegin(t, l, "r", "", "")
	_, err = l.CloseRun(context.Background(), "r")
	require.NoError(t, err)
	const last = 13
	require.Empty(t, problems(t, l))
	whole, err := os.ReadFile(l.path)
	require.NoError(t, err)

	found := func(what string, change func(b *bbolt.Bucket) error) {
		t.Helper()
		require.NoError(t, os.WriteFile(l.path, whole, 0o600))
		edit(t, l.path, editEntries(change))
		require.NotEmpty(t, problems(t, l), what)
	}
	for seq := uint64(1); seq <= last; seq++ {
		found(fmt.Sprintf("entry %d removed", seq), func(b *bbolt.Bucket) error { return b.Delete(encodeUint(seq)) })
		found(fmt.Sprintf("entry %d removed, the others moved up", seq), func(b *bbolt.Bucket) error {
			for n := seq; n < last; n++ {
				if err := b.Put(encodeUint(n), bytes.Clone(b.Get(encodeUint(n+1)))); err != nil {
					return err
				}
			}
			return b.Delete(encodeUint(last))
		})
		found(fmt.Sprintf("entry %d rehashed", seq), func(b *bbolt.Bucket) error {
			v := bytes.Clone(b.Get(encodeUint(seq)))
			v = bytes.Replace(v, []byte(`"run":"r"`), []byte(`"run":"q"`), 1)
			previous := digest(make([]byte, 32))
			if seq > 1 {
				previous, _, _ = splitEntry(b.Get(encodeUint(seq - 1)))
			}
			hash := chain(previous, v[32:])
			copy(v, hash[:])
			return b.Put(encodeUint(seq), v)
		})
		for other := seq + 1; other <= last; other++ {
			found(fmt.Sprintf("entries %d and %d exchanged", seq, other), func(b *bbolt.Bucket) error {
				v, w := bytes.Clone(b.Get(encodeUint(seq))), bytes.Clone(b.Get(encodeUint(other)))
				if err := b.Put(encodeUint(seq), w); err != nil {
					return err
				}
				return b.Put(encodeUint(other), v)
			})
		}
	}
	found("an entry added", func(b *bbolt.Bucket) error {
		return b.Put(encodeUint(last+1), bytes.Clone(b.Get(encodeUint(last))))
	})
	found("a malformed key", func(b *bbolt.Bucket) error { return b.Put([]byte("x"), []byte("y")) })

	// Every byte of one entry, hash included.
	require.NoError(t, os.WriteFile(l.path, whole, 0o600))
	var size int
	edit(t, l.path, editEntries(func(b *bbolt.Bucket) error { size = len(b.Get(encodeUint(3))); return nil }))
	for i := range size {
		found(fmt.Sprintf("byte %d of entry 3 changed", i), func(b *bbolt.Bucket) error {
			v := bytes.Clone(b.Get(encodeUint(3)))
			v[i] ^= 1
			return b.Put(encodeUint(3), v)
		})
	}
}

func TestOneEditIsOneProblem(t *testing.T) {
	t.Parallel()
	l := NewFile(t.TempDir()+"/ledger.db", Options{})
	mustOpen(t, l, "r", 20, 2)
	for range 9 {
		mustTurn(t, l, "r", "", "")
	}
	edit(t, l.path, editEntries(func(b *bbolt.Bucket) error {
		v := bytes.Clone(b.Get(encodeUint(4)))
		return b.Put(encodeUint(4), bytes.Replace(v, []byte(`"at":"2`), []byte(`"at":"1`), 1))
	}))
	require.Equal(t, []string{"entry 4 does not have the hash of its bytes and its predecessor"}, problems(t, l))
	require.ErrorContains(t, l.Entries(context.Background(), 1, func(Receipt, []byte) error { return nil }), "entry 4")
	require.EqualValues(t, 9, mustBudget(t, l, "r").Used, "a decision does not rest on entry 4")
}

func TestADecisionDoesNotRestOnAnEditedEntry(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(tx *bbolt.Tx) error{
		"the newest entry": editEntries(func(b *bbolt.Bucket) error {
			v := bytes.Clone(b.Get(encodeUint(4)))
			return b.Put(encodeUint(4), bytes.Replace(v, []byte(`"at":"2`), []byte(`"at":"1`), 1))
		}),
		"the one before it": editEntries(func(b *bbolt.Bucket) error {
			v := bytes.Clone(b.Get(encodeUint(3)))
			v[0]++
			return b.Put(encodeUint(3), v)
		}),
		"an entry after the head": editEntries(func(b *bbolt.Bucket) error {
			return b.Put(encodeUint(5), bytes.Clone(b.Get(encodeUint(4))))
		}),
		"the newest entry lost": editEntries(func(b *bbolt.Bucket) error { return b.Delete(encodeUint(4)) }),
	} {
		l := NewFile(t.TempDir()+"/ledger.db", Options{})
		mustOpen(t, l, "r", 20, 2)
		for range 3 {
			mustTurn(t, l, "r", "", "")
		}
		edit(t, l.path, change)
		before, err := os.ReadFile(l.path)
		require.NoError(t, err)
		if name != "an entry after the head" {
			_, err = l.Budget(context.Background(), "r", nil)
			require.ErrorIs(t, err, ErrCorrupt, name)
		}
		_, err = l.RecordTurn(context.Background(), "r", "", "")
		require.ErrorIs(t, err, ErrCorrupt, name)
		_, err = l.OpenRun(context.Background(), "new", 1, 1)
		require.ErrorIs(t, err, ErrCorrupt, name)
		after, err := os.ReadFile(l.path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after), name)
	}
}

func TestWhatBboltFindsIsSaidInOurWords(t *testing.T) {
	t.Parallel()
	l := NewFile(t.TempDir()+"/ledger.db", Options{})
	mustOpen(t, l, "r", 20, 2)
	mustTurn(t, l, "r", "", "")
	content, err := os.ReadFile(l.path)
	require.NoError(t, err)
	list := content[openBytes(t, content).Meta().Freelist*page.Size:]
	n := binary.NativeEndian.Uint16(list[10:])
	require.NotZero(t, n)
	last := binary.NativeEndian.Uint64(list[page.HeaderSize+8*(int(n)-1):])
	binary.NativeEndian.PutUint16(list[10:], n-1) // the last page is neither used nor free
	require.NoError(t, os.WriteFile(l.path, content, 0o600))
	require.Equal(t, []string{fmt.Sprintf("the pages of the file do not add up: page %d: unreachable unfreed", last)}, problems(t, l))

	require.Equal(t, "the pages of the file cannot be walked: one", checked(errors.New("panic: one\ntwo")))
}

func TestAKeyThatLeadsNowhereIsDamage(t *testing.T) {
	t.Parallel()
	for _, seq := range []uint64{0, 1, 3, 4, 1<<64 - 1} {
		l := NewFile(t.TempDir()+"/ledger.db", Options{})
		mustOpen(t, l, "r", 20, 2)
		mustTurn(t, l, "r", "", "k")
		mustTurn(t, l, "r", "", "")
		key := runKey("r", "k")
		edit(t, l.path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(bucketKeys)).Put(key, seal(bucketKeys, key, encodeUint(seq)))
		})
		_, err := l.RecordTurn(context.Background(), "r", "", "k")
		require.ErrorIs(t, err, ErrCorrupt, seq)
		require.NotEmpty(t, problems(t, l))
	}
}

func TestCountersThatWereEditedAreFound(t *testing.T) {
	t.Parallel()
	state := func(change func(*runState)) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketRuns))
			value, err := unseal(bucketRuns, []byte("r"), b.Get([]byte("r")))
			if err != nil {
				return err
			}
			s, err := decodeRunState(value)
			if err != nil {
				return err
			}
			change(&s)
			return b.Put([]byte("r"), seal(bucketRuns, []byte("r"), s.encode()))
		}
	}
	put := func(bucket string, key, value []byte) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, seal(bucket, key, value)) }
	}
	drop := func(bucket string, key []byte) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Delete(key) }
	}
	for name, c := range map[string]struct {
		change func(tx *bbolt.Tx) error
		budget bool // found by Budget, too
	}{
		"fewer used":                    {state(func(s *runState) { s.used-- }), true},
		"a higher limit":                {state(func(s *runState) { s.granted, s.limit = 5, s.limit+5 }), true},
		"an older entry":                {state(func(s *runState) { s.lastSeq--; s.used-- }), false},
		"another run's entry":           {state(func(s *runState) { s.lastSeq = 1; s.openedSeq = 1 }), true},
		"closed":                        {state(func(s *runState) { s.closed = true }), false},
		"fewer dimensions":              {state(func(s *runState) { s.dimensions-- }), false},
		"another time":                  {state(func(s *runState) { s.lastAt++ }), false},
		"fewer open":                    {state(func(s *runState) { s.open-- }), true},
		"more open":                     {state(func(s *runState) { s.open++ }), true},
		"a dimension granted":           {state(func(s *runState) { s.maxDimensions++; s.grantedDimensions++; s.limit += s.maxConvTurns }), true},
		"the opening's dimensions":      {state(func(s *runState) { s.grantedDimensions++ }), false},
		"another newest turn":           {state(func(s *runState) { s.newestAt++ }), false},
		"another turn before":           {state(func(s *runState) { s.beforeAt++ }), false},
		"another end":                   {state(func(s *runState) { s.endedAt++ }), false},
		"a state without entries":       {put(bucketRuns, []byte("s"), sampleState().encode()), false},
		"no state":                      {drop(bucketRuns, []byte("r")), true},
		"a lower dimension":             {put(bucketDimensions, runKey("r", "d"), dimensionState{turns: 1, open: 5}.encode()), false},
		"a grant to a dimension":        {put(bucketDimensions, runKey("r", "d"), dimensionState{turns: 3, granted: 1, open: 5}.encode()), false},
		"another turn open":             {put(bucketDimensions, runKey("r", "d"), dimensionState{turns: 3, open: 4}.encode()), false},
		"no turn open":                  {put(bucketDimensions, runKey("r", "d"), dimensionState{turns: 3}.encode()), false},
		"a turn open without dimension": {put(bucketDimensions, runKey("r", ""), dimensionState{open: 5}.encode()), false},
		"a malformed dimension":         {put(bucketDimensions, runKey("r", "d"), encodeUint(3)), false},
		"a negative dimension":          {put(bucketDimensions, runKey("r", "d"), dimensionState{turns: -3, open: 5}.encode()), false},
		"a dimension more":              {put(bucketDimensions, runKey("r", "e"), dimensionState{turns: 1}.encode()), false},
		"a dimension less":              {drop(bucketDimensions, runKey("r", "d")), false},
		"a key that leads elsewhere":    {put(bucketKeys, runKey("r", "k"), encodeUint(2)), false},
		"a key more":                    {put(bucketKeys, runKey("r", "l"), encodeUint(2)), false},
		"a key less":                    {drop(bucketKeys, runKey("r", "k")), false},
		"another head":                  {put(bucketMeta, []byte(metaHead), encodeLink(link{seq: 3})), false},
		"another id":                    {put(bucketMeta, []byte(metaID), make([]byte, 32)), false},
		"a bucket that does not belong": {func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("more")); return err }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewFile(t.TempDir()+"/ledger.db", Options{})
			mustOpen(t, l, "other", 1, 1)
			mustOpen(t, l, "r", 20, 2)
			mustTurn(t, l, "r", "d", "k")
			mustTurn(t, l, "r", "d", "")
			mustBegin(t, l, "r", "d", "b")
			edit(t, l.path, c.change)
			report, err := l.Verify(context.Background())
			require.False(t, err == nil && report.OK())
			if c.budget {
				_, err := l.Budget(context.Background(), "r", nil)
				require.Error(t, err)
			}
		})
	}
}

func TestANewerFormatIsToldApartAndNotTouched(t *testing.T) {
	t.Parallel()
	l := NewFile(t.TempDir()+"/ledger.db", Options{})
	mustOpen(t, l, "r", 20, 2)
	edit(t, l.path, func(tx *bbolt.Tx) error {
		if err := tx.DeleteBucket([]byte(bucketKeys)); err != nil { // its buckets may be others
			return err
		}
		b := tx.Bucket([]byte(bucketMeta))
		if err := b.Put([]byte("later"), []byte("sealed in another way")); err != nil {
			return err
		}
		return b.Put([]byte(metaFormat), []byte{0, 0, 0, format + 1})
	})
	before, err := os.ReadFile(l.path)
	require.NoError(t, err)
	for name, err := range everyMethod(l) {
		require.ErrorIs(t, err, ErrNewerFormat, name)
	}
	after, err := os.ReadFile(l.path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
}

func TestARolledBackLedgerLosesItsAnchor(t *testing.T) {
	t.Parallel()
	l := NewFile(t.TempDir()+"/ledger.db", Options{})
	mustOpen(t, l, "r", 4, 1)
	copied, err := os.ReadFile(l.path)
	require.NoError(t, err)
	mustTurn(t, l, "r", "", "")
	anchor, err := l.Head(context.Background())
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(l.path, copied, 0o600))
	_, err = l.Budget(context.Background(), "r", &anchor)
	require.ErrorIs(t, err, ErrAnchorLost)
	require.Len(t, problems(t, l, anchor), 1)
	mustTurn(t, l, "r", "", "") // written on: the same sequence, another time
	_, err = l.Budget(context.Background(), "r", &anchor)
	require.ErrorIs(t, err, ErrAnchorLost)

	require.NoError(t, os.Remove(l.path))
	mustOpen(t, l, "r", 4, 1)
	_, err = l.Budget(context.Background(), "r", &anchor)
	require.ErrorIs(t, err, ErrAnchorLost)
}
