package page

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// The buckets of the tests: the values of entries are anything, those of dimensions carry a checksum.
const (
	entries    = "entries"
	dimensions = "dimensions"
)

var errSeal = errors.New("a wrong checksum")

var rules = Rules{
	Buckets: []string{"meta", entries, "runs", dimensions, "keys"},
	Value: func(bucket string, key, value []byte) error {
		if n := len(value) - 8; bucket == dimensions && (n < 0 || !bytes.Equal(value, seal(key, value[:n]))) {
			return errSeal
		}
		return nil
	},
}

func seal(key, value []byte) []byte {
	h := fnv.New64a()
	_, _ = h.Write(key)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(value)
	return binary.BigEndian.AppendUint64(bytes.Clone(value), h.Sum64())
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// ours reports whether an error is of a kind that the package promises.
func ours(err error) bool {
	_, damage := errors.AsType[*DamageError](err)
	_, newer := errors.AsType[*NewerError](err)
	_, read := errors.AsType[*ReadError](err)
	return damage || newer || read || errors.Is(err, errSeal)
}

func requireDamage(t *testing.T, err error) {
	t.Helper()
	_, ok := errors.AsType[*DamageError](err)
	require.True(t, ok, "%v", err)
}

// scaled is a size for tests that can do with a tenth of it under -short.
func scaled(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// bboltFile makes a file as bbolt itself does, with the five buckets and what put puts into them.
func bboltFile(t testing.TB, put func(tx *bbolt.Tx)) (content []byte, used int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fresh.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: Size, NoSync: true})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range rules.Buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	}))
	if put != nil {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error { put(tx); return nil }))
	}
	require.NoError(t, db.View(func(tx *bbolt.Tx) error { used = tx.Size(); return nil }))
	require.NoError(t, db.Close())
	content, err = os.ReadFile(path)
	require.NoError(t, err)
	return content, used
}

func openBytes(content []byte) (*Checker, error) {
	return Open(bytes.NewReader(content), int64(len(content)), rules, true)
}

// The package repeats bbolt's layout. This holds the two together.
func TestWhatBboltWritesIsSound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 10, 100, 1000, 20_000} {
		for _, most := range []int{8, 300, 6000} {
			if n*most > 10_000_000 {
				continue
			}
			content, used := bboltFile(t, func(tx *bbolt.Tx) {
				for range n {
					key := number(rng.Uint64())
					require.NoError(t, tx.Bucket([]byte(entries)).Put(key, make([]byte, rng.IntN(most))))
				}
			})
			p, err := openBytes(content)
			require.NoError(t, err)
			require.EqualValues(t, used/Size, p.meta.High)
			require.NoError(t, p.Complete())
			require.NoError(t, p.Everything(), "%d values of up to %d bytes", n, most)
		}
	}
}

func TestTheNewestMetaPageIsTheOneThatBboltTakes(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		path := filepath.Join(t.TempDir(), "fresh.db")
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: Size, NoSync: true})
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(number(uint64(i))); return err }))
		}
		var txid int
		require.NoError(t, db.View(func(tx *bbolt.Tx) error { txid = tx.ID(); return nil }))
		require.NoError(t, db.Close())
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		meta, err := readMeta(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		require.EqualValues(t, txid, meta.TxID)
	}
}

func TestANewerBboltIsANewerFormat(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, nil)
	p, err := openBytes(content)
	require.NoError(t, err)
	meta := content[int(p.meta.TxID%2)*Size+HeaderSize:]
	native.PutUint32(meta[4:], boltVersion+1)
	h := fnv.New64a()
	_, _ = h.Write(meta[:56])
	native.PutUint64(meta[56:], h.Sum64())
	_, err = openBytes(content)
	newer, ok := errors.AsType[*NewerError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, boltVersion+1, newer.Version)
}

// Whatever bbolt would follow without end must end here: a recursion without end is fatal to a Go program.
func TestCyclesEnd(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, func(tx *bbolt.Tx) {
		for i := range uint64(50_000) {
			require.NoError(t, tx.Bucket([]byte(entries)).Put(number(i), nil))
		}
	})
	whole, err := openBytes(content)
	require.NoError(t, err)
	branches := 0
	for id := uint64(2); id < whole.meta.High; id++ {
		at := content[id*Size:]
		if native.Uint16(at[8:]) != flagBranch {
			continue
		}
		branches++
		for _, target := range []uint64{id, whole.meta.Root, whole.buckets[entries].page} {
			damaged := bytes.Clone(content)
			for i := range int(native.Uint16(at[10:])) {
				native.PutUint64(damaged[int(id)*Size+HeaderSize+elementSize*i+8:], target)
			}
			p, err := openBytes(damaged)
			require.NoError(t, err)
			requireDamage(t, p.Check(entries, Range{}))
			requireDamage(t, p.Everything())
		}
	}
	require.Greater(t, branches, 2, "the tree is too flat to test anything")

	// The one cycle that no order of keys betrays: a branch whose only child is itself.
	root := content[whole.buckets[entries].page*Size:]
	pg, _, _ := ParseNode(root[:Size])
	first := bytes.Clone(pg.Key(0))
	native.PutUint16(root[10:], 1)
	native.PutUint32(root[HeaderSize:], elementSize)
	native.PutUint64(root[HeaderSize+8:], whole.buckets[entries].page)
	copy(root[HeaderSize+elementSize:], first)
	p, err := openBytes(content)
	require.NoError(t, err)
	require.ErrorContains(t, p.Check(entries, Exactly(first)), "nested too deep")
}

// twoLeaves is a file whose dimensions bucket is a branch with several leaves, and where in it the second leaf's
// separator lies.
func twoLeaves(t *testing.T) (content []byte, branch, leaf uint64) {
	t.Helper()
	content, _ = bboltFile(t, func(tx *bbolt.Tx) {
		for i := range 200 {
			key := fmt.Appendf(nil, "run\x00dimension %04d", 2*i)
			require.NoError(t, tx.Bucket([]byte(dimensions)).Put(key, seal(key, number(1))))
		}
	})
	p, err := openBytes(content)
	require.NoError(t, err)
	branch = p.buckets[dimensions].page
	pg, _, problem := ParseNode(content[branch*Size : (branch+1)*Size])
	require.Empty(t, problem)
	require.False(t, pg.leaf)
	return content, branch, pg.child(1)
}

// A key that is not found would be a dimension with nothing spent: it must really not be there.
func TestAKeyHiddenByADamagedSeparatorIsNotAbsent(t *testing.T) {
	t.Parallel()
	content, branch, _ := twoLeaves(t)
	pg, _, _ := ParseNode(content[branch*Size : (branch+1)*Size])
	separator := pg.Key(1)
	hidden := Exactly(bytes.Clone(separator))
	separator[len(separator)-1]++ // in place: the key is now looked for in the leaf before
	p, err := openBytes(content)
	require.NoError(t, err)
	require.NoError(t, p.Check(dimensions, hidden), "the path alone looks sound")
	hidden.Past = true
	requireDamage(t, p.Check(dimensions, hidden))
}

func TestALeafThatCountsOneKeyLessIsDamaged(t *testing.T) {
	t.Parallel()
	content, _, leaf := twoLeaves(t)
	page := content[leaf*Size:]
	native.PutUint16(page[10:], native.Uint16(page[10:])-1)
	p, err := openBytes(content)
	require.NoError(t, err)
	requireDamage(t, p.Check(dimensions, Range{}))
}

// bbolt frees as many pages as a header says, and then writes over them.
func TestAPageThatClaimsItsNeighbourIsDamaged(t *testing.T) {
	t.Parallel()
	content, _, leaf := twoLeaves(t)
	native.PutUint32(content[leaf*Size+12:], 1)
	p, err := openBytes(content)
	require.NoError(t, err)
	requireDamage(t, p.Check(dimensions, Range{}))
}

// bbolt would write over a page that is listed as free.
func TestAPageThatIsUsedAndFreeIsDamaged(t *testing.T) {
	t.Parallel()
	content, _, leaf := twoLeaves(t)
	p, err := openBytes(content)
	require.NoError(t, err)
	list := content[p.meta.Freelist*Size:]
	native.PutUint16(list[10:], 1)
	native.PutUint64(list[HeaderSize:], leaf)
	p, err = openBytes(content)
	require.NoError(t, err)
	requireDamage(t, p.Check(dimensions, Range{}))
}

// Every single bit of every page that is in use must be covered by some check, or not matter.
func TestEveryFlippedBitOfAStructureIsFound(t *testing.T) {
	t.Parallel()
	content, used := bboltFile(t, func(tx *bbolt.Tx) {
		for i := range 400 {
			key := fmt.Appendf(nil, "run\x00dimension %04d", i)
			require.NoError(t, tx.Bucket([]byte(dimensions)).Put(key, seal(key, number(uint64(i)))))
		}
	})
	whole, err := openBytes(content)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	missed := 0
	for range scaled(20_000) {
		at := rng.Int64N(used-2*Size) + 2*Size
		damaged := bytes.Clone(content)
		damaged[at] ^= 1 << rng.IntN(8)
		p, err := openBytes(damaged)
		if err == nil {
			err = errors.Join(p.Complete(), p.Everything())
		}
		if err == nil {
			id := uint64(at / Size)
			require.True(t, isFree(whole, id) || slack(content, id, at%Size), "a flipped bit at byte %d of page %d was missed", at%Size, id)
			missed++
		}
	}
	t.Logf("%d of %d flips hit bytes that nobody reads", missed, scaled(20_000))
}

func isFree(p *Checker, id uint64) bool {
	for _, free := range p.free {
		if free == id {
			return true
		}
	}
	return false
}

// slack reports whether a byte lies behind what its page holds, or in a field that bbolt never reads: the sequence of
// a bucket.
func slack(content []byte, id uint64, off int64) bool {
	data := content[id*Size : (id+1)*Size]
	if native.Uint16(data[8:]) == flagFreelist {
		return off >= HeaderSize+8*int64(native.Uint16(data[10:])) || off >= 4 && off < 8
	}
	pg, used, problem := ParseNode(data)
	if problem != "" {
		return false
	}
	if off >= int64(used) {
		return true
	}
	for i := range pg.count {
		_, v, end := pg.bounds(i)
		if pg.leaf && pg.flags(i) == flagBucket && off >= int64(v)+8 && off < min(int64(v)+bucketSize, int64(end)) {
			return true
		}
		if pg.leaf && pg.flags(i) == flagBucket && off >= int64(v)+bucketSize && off < int64(v)+bucketSize+HeaderSize {
			return off < int64(v)+bucketSize+8 || off >= int64(v)+bucketSize+12 // id and overflow of an inline page
		}
	}
	return false
}

func FuzzPages(f *testing.F) {
	content, _ := bboltFile(f, func(tx *bbolt.Tx) {
		for i := range uint64(300) {
			require.NoError(f, tx.Bucket([]byte(entries)).Put(number(i), make([]byte, 40)))
		}
	})
	f.Add(uint16(0), []byte{1})
	f.Add(uint16(2*Size), []byte{0xFF, 0xFF})
	f.Add(uint16(3*Size+8), []byte{1, 0, 2, 0})
	f.Fuzz(func(t *testing.T, at uint16, patch []byte) {
		damaged := bytes.Clone(content)
		copy(damaged[int(at)%len(damaged):], patch)
		p, err := openBytes(damaged)
		if err == nil {
			err = p.Everything()
		}
		if err != nil && !ours(err) {
			t.Fatal(err)
		}
		if p != nil {
			for _, key := range [][]byte{nil, number(0), number(250), {0xFF}} {
				if err := p.Check(entries, Range{Lo: key, Hi: key, Past: true}); err != nil && !ours(err) {
					t.Fatal(err)
				}
			}
		}
	})
}

// failing is a file that cannot be read from one offset on.
type failing struct {
	io.ReaderAt
	from int64
	err  error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.from {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, off)
}

func TestAFailureOfTheSystemIsNoDamage(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, nil)
	cause := errors.New("input/output error")
	for from, pages := range map[int64]string{0: "all pages", 2 * Size: "all but the meta pages"} {
		_, err := Open(failing{bytes.NewReader(content), from, cause}, int64(len(content)), rules, true)
		read, ok := errors.AsType[*ReadError](err)
		require.True(t, ok, "%s: %v", pages, err)
		require.Equal(t, cause, read.Err)
		_, err = Open(failing{bytes.NewReader(content), from, io.EOF}, int64(len(content)), rules, true)
		requireDamage(t, err)
	}
}

// One bad meta page is the older transaction's or the newest's: nobody knows.
func TestOnlyADamagedMetaPageIsTorn(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, nil)
	for name, c := range map[string]struct {
		damage func(b []byte)
		torn   bool
	}{
		"the first":          {func(b []byte) { b[HeaderSize+50] ^= 1 }, true},
		"the second":         {func(b []byte) { b[Size+HeaderSize+50] ^= 1 }, true},
		"both":               {func(b []byte) { clear(b[:2*Size]) }, false},
		"the page after it":  {func(b []byte) { clear(b[2*Size:]) }, false},
		"the header of one":  {func(b []byte) { b[8] = flagLeaf }, true},
		"one over the other": {func(b []byte) { copy(b[HeaderSize:Size], b[Size+HeaderSize:]) }, true},
	} {
		damaged := bytes.Clone(content)
		c.damage(damaged)
		_, err := openBytes(damaged)
		damage, ok := errors.AsType[*DamageError](err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, c.torn, damage.Torn, name)
	}
}

func TestOtherBucketsThanTheRulesSayAreDamage(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, nil)
	p, err := openBytes(content)
	require.NoError(t, err)
	require.NoError(t, p.Complete())
	for _, buckets := range [][]string{rules.Buckets[1:], append([]string{"more"}, rules.Buckets...), {"other"}} {
		p, err := Open(bytes.NewReader(content), int64(len(content)), Rules{Buckets: buckets}, false)
		require.NoError(t, err)
		requireDamage(t, p.Complete())
	}
	requireDamage(t, p.Check("other", Range{}))
}

func TestAValueIsJudgedUnlessTheLayoutAloneIsAsked(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, func(tx *bbolt.Tx) {
		require.NoError(t, tx.Bucket([]byte(dimensions)).Put([]byte("k"), []byte("without a checksum")))
	})
	p, err := openBytes(content)
	require.NoError(t, err)
	require.ErrorIs(t, p.Check(dimensions, Exactly([]byte("k"))), errSeal)
	require.ErrorIs(t, p.Everything(), errSeal)
	require.NoError(t, p.Check(dimensions, Range{LayoutOnly: true}))
}
