package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// bboltFile makes a file as bbolt itself does, with the five buckets and what put puts into them.
func bboltFile(t testing.TB, put func(tx *bbolt.Tx)) (content []byte, used int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fresh.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize, NoSync: true})
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{bucketMeta, bucketEntries, bucketRuns, bucketDimensions, bucketKeys} {
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

func openBytes(content []byte) (*pages, error) {
	return openPages(bytes.NewReader(content), int64(len(content)), true)
}

// The guard repeats bbolt's layout. This holds the two together.
func TestTheGuardReadsWhatBboltWrites(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 10, 100, 1000, 20_000} {
		for _, most := range []int{8, 300, 6000} {
			if n*most > 10_000_000 {
				continue
			}
			content, used := bboltFile(t, func(tx *bbolt.Tx) {
				for range n {
					key := encodeUint(rng.Uint64())
					require.NoError(t, tx.Bucket([]byte(bucketEntries)).Put(key, make([]byte, rng.IntN(most))))
				}
			})
			p, err := openBytes(content)
			require.NoError(t, err)
			require.EqualValues(t, used/pageSize, p.meta.high)
			require.NoError(t, p.complete())
			require.NoError(t, p.everything(), "%d values of up to %d bytes", n, most)
		}
	}
}

func TestTheGuardFollowsTheSameMetaPageAsBbolt(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		path := filepath.Join(t.TempDir(), "fresh.db")
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize, NoSync: true})
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(encodeUint(uint64(i))); return err }))
		}
		var txid int
		require.NoError(t, db.View(func(tx *bbolt.Tx) error { txid = tx.ID(); return nil }))
		require.NoError(t, db.Close())
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		meta, err := readMeta(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		require.EqualValues(t, txid, meta.txid)
	}
}

func TestANewerBboltIsANewerFormat(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, nil)
	p, err := openBytes(content)
	require.NoError(t, err)
	meta := content[int(p.meta.txid%2)*pageSize+headerSize:]
	native.PutUint32(meta[4:], boltVersion+1)
	native.PutUint64(meta[56:], fnv64(meta[:56]))
	_, err = openBytes(content)
	require.ErrorIs(t, err, ErrNewerFormat)
}

func fnv64(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// Whatever bbolt would follow without end must end in the guard: a recursion without end is fatal to a Go program.
func TestCyclesEnd(t *testing.T) {
	t.Parallel()
	content, _ := bboltFile(t, func(tx *bbolt.Tx) {
		for i := range uint64(50_000) {
			require.NoError(t, tx.Bucket([]byte(bucketEntries)).Put(encodeUint(i), nil))
		}
	})
	whole, err := openBytes(content)
	require.NoError(t, err)
	branches := 0
	for id := uint64(2); id < whole.meta.high; id++ {
		at := content[id*pageSize:]
		if native.Uint16(at[8:]) != flagBranch {
			continue
		}
		branches++
		for _, target := range []uint64{id, whole.meta.root, whole.buckets[bucketEntries].page} {
			damaged := bytes.Clone(content)
			for i := range int(native.Uint16(at[10:])) {
				native.PutUint64(damaged[int(id)*pageSize+headerSize+elementSize*i+8:], target)
			}
			p, err := openBytes(damaged)
			require.NoError(t, err)
			require.ErrorIs(t, p.check(bucketEntries, keyRange{}), ErrCorrupt)
			require.ErrorIs(t, p.everything(), ErrCorrupt)
		}
	}
	require.Greater(t, branches, 2, "the tree is too flat to test anything")

	// The one cycle that no order of keys betrays: a branch whose only child is itself.
	root := content[whole.buckets[bucketEntries].page*pageSize:]
	pg, _, _ := parsePage(root[:pageSize])
	first := bytes.Clone(pg.key(0))
	native.PutUint16(root[10:], 1)
	native.PutUint32(root[headerSize:], elementSize)
	native.PutUint64(root[headerSize+8:], whole.buckets[bucketEntries].page)
	copy(root[headerSize+elementSize:], first)
	p, err := openBytes(content)
	require.NoError(t, err)
	require.ErrorContains(t, p.check(bucketEntries, exactly(first)), "nested too deep")
}

// twoLeaves is a file whose dimensions bucket is a branch with several leaves, and where in it the second leaf's
// separator lies.
func twoLeaves(t *testing.T) (content []byte, branch, leaf uint64) {
	t.Helper()
	content, _ = bboltFile(t, func(tx *bbolt.Tx) {
		for i := range 200 {
			key := fmt.Appendf(nil, "run\x00dimension %04d", 2*i)
			require.NoError(t, tx.Bucket([]byte(bucketDimensions)).Put(key, seal(bucketDimensions, key, encodeUint(1))))
		}
	})
	p, err := openBytes(content)
	require.NoError(t, err)
	branch = p.buckets[bucketDimensions].page
	pg, _, problem := parsePage(content[branch*pageSize : (branch+1)*pageSize])
	require.Empty(t, problem)
	require.False(t, pg.leaf)
	return content, branch, pg.child(1)
}

// A key that is not found would be a dimension with nothing spent: it must really not be there.
func TestAKeyHiddenByADamagedSeparatorIsNotAbsent(t *testing.T) {
	t.Parallel()
	content, branch, _ := twoLeaves(t)
	pg, _, _ := parsePage(content[branch*pageSize : (branch+1)*pageSize])
	separator := pg.key(1)
	hidden := exactly(bytes.Clone(separator))
	separator[len(separator)-1]++ // in place: the key is now looked for in the leaf before
	p, err := openBytes(content)
	require.NoError(t, err)
	require.NoError(t, p.check(bucketDimensions, hidden), "the path alone looks sound")
	hidden.past = true
	require.ErrorIs(t, p.check(bucketDimensions, hidden), ErrCorrupt)
}

func TestALeafThatCountsOneKeyLessIsDamaged(t *testing.T) {
	t.Parallel()
	content, _, leaf := twoLeaves(t)
	page := content[leaf*pageSize:]
	native.PutUint16(page[10:], native.Uint16(page[10:])-1)
	p, err := openBytes(content)
	require.NoError(t, err)
	require.ErrorIs(t, p.check(bucketDimensions, keyRange{}), ErrCorrupt)
}

// bbolt frees as many pages as a header says, and then writes over them.
func TestAPageThatClaimsItsNeighbourIsDamaged(t *testing.T) {
	t.Parallel()
	content, _, leaf := twoLeaves(t)
	native.PutUint32(content[leaf*pageSize+12:], 1)
	p, err := openBytes(content)
	require.NoError(t, err)
	require.ErrorIs(t, p.check(bucketDimensions, keyRange{}), ErrCorrupt)
}

// bbolt would write over a page that is listed as free.
func TestAPageThatIsUsedAndFreeIsDamaged(t *testing.T) {
	t.Parallel()
	content, _, leaf := twoLeaves(t)
	p, err := openBytes(content)
	require.NoError(t, err)
	list := content[p.meta.freelist*pageSize:]
	native.PutUint16(list[10:], 1)
	native.PutUint64(list[headerSize:], leaf)
	p, err = openBytes(content)
	require.NoError(t, err)
	require.ErrorIs(t, p.check(bucketDimensions, keyRange{}), ErrCorrupt)
}

// Every single bit of every page that is in use must be covered by some check, or not matter.
func TestEveryFlippedBitOfAStructureIsFound(t *testing.T) {
	t.Parallel()
	content, used := bboltFile(t, func(tx *bbolt.Tx) {
		for i := range 400 {
			key := fmt.Appendf(nil, "run\x00dimension %04d", i)
			require.NoError(t, tx.Bucket([]byte(bucketDimensions)).Put(key, seal(bucketDimensions, key, encodeUint(uint64(i)))))
		}
	})
	whole, err := openBytes(content)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	missed := 0
	for range scaled(20_000) {
		at := rng.Int64N(used-2*pageSize) + 2*pageSize
		damaged := bytes.Clone(content)
		damaged[at] ^= 1 << rng.IntN(8)
		p, err := openBytes(damaged)
		if err == nil {
			err = errors.Join(p.complete(), p.everything())
		}
		if err == nil {
			id := uint64(at / pageSize)
			require.True(t, isFree(whole, id) || slack(content, id, at%pageSize), "a flipped bit at byte %d of page %d was missed", at%pageSize, id)
			missed++
		}
	}
	t.Logf("%d of %d flips hit bytes that nobody reads", missed, scaled(20_000))
}

func isFree(p *pages, id uint64) bool {
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
	data := content[id*pageSize : (id+1)*pageSize]
	if native.Uint16(data[8:]) == flagFreelist {
		return off >= headerSize+8*int64(native.Uint16(data[10:])) || off >= 4 && off < 8
	}
	pg, used, problem := parsePage(data)
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
		if pg.leaf && pg.flags(i) == flagBucket && off >= int64(v)+bucketSize && off < int64(v)+bucketSize+headerSize {
			return off < int64(v)+bucketSize+8 || off >= int64(v)+bucketSize+12 // id and overflow of an inline page
		}
	}
	return false
}

func FuzzPages(f *testing.F) {
	content, _ := bboltFile(f, func(tx *bbolt.Tx) {
		for i := range uint64(300) {
			require.NoError(f, tx.Bucket([]byte(bucketEntries)).Put(encodeUint(i), make([]byte, 40)))
		}
	})
	f.Add(uint16(0), []byte{1})
	f.Add(uint16(2*pageSize), []byte{0xFF, 0xFF})
	f.Add(uint16(3*pageSize+8), []byte{1, 0, 2, 0})
	f.Fuzz(func(t *testing.T, at uint16, patch []byte) {
		damaged := bytes.Clone(content)
		copy(damaged[int(at)%len(damaged):], patch)
		p, err := openBytes(damaged)
		if err == nil {
			err = p.everything()
		}
		if err != nil && !known(err) {
			t.Fatal(err)
		}
		if p != nil {
			for _, key := range [][]byte{nil, encodeUint(0), encodeUint(250), {0xFF}} {
				if err := p.check(bucketEntries, keyRange{lo: key, hi: key, past: true}); err != nil && !known(err) {
					t.Fatal(err)
				}
			}
		}
	})
}
