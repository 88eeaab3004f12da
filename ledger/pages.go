package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"slices"
)

// This file is the guard: it reads the pages that bbolt is about to use, with plain reads, and refuses whatever bbolt
// would not have written. bbolt itself maps the file and trusts it, so that a damaged page can be a panic, a fault, an
// endless recursion (which no recover stops) or a key that is not found although it is there.
//
// The layout is bbolt's version 2, in the byte order of the machine; a test holds it against a fresh bbolt file.
//
//	page      id u64, flags u16, count u16, overflow u32, then count elements of 16 bytes, then keys and values
//	branch    pos u32, ksize u32, child u64
//	leaf      flags u32, pos u32, ksize u32, vsize u32          pos counts from the element itself
//	bucket    root u64, sequence u64, and where root is 0 a leaf page, in a leaf value whose flags are 1
//	meta      magic u32, version u32, page size u32, flags u32, root bucket, freelist u64, high water u64, txid u64,
//	          FNV-64a of the 56 bytes before; transactions write pages 0 and 1 in turn
const (
	pageSize     = 4096
	headerSize   = 16
	elementSize  = 16
	bucketSize   = 16
	metaSize     = 64
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10
	flagBucket   = 0x01

	// maxDepth is far beyond the depth of any tree of ours (at least four keys fit a page), and ends every cycle.
	maxDepth = 16
)

var native = binary.NativeEndian

// boltMeta is the part of a meta page that the guard needs.
type boltMeta struct {
	pageSize uint32
	root     uint64
	freelist uint64
	high     uint64 // first page id that was never used
	txid     uint64
}

// parseMeta reads one meta page, as bbolt validates it. tooNew is a sound meta of a later bbolt.
func parseMeta(buf []byte) (m boltMeta, valid, tooNew bool) {
	b := buf[headerSize : headerSize+metaSize]
	h := fnv.New64a()
	h.Write(b[:56])
	if native.Uint32(b) != boltMagic || native.Uint64(b[56:]) != h.Sum64() {
		return m, false, false
	}
	if v := native.Uint32(b[4:]); v != boltVersion {
		return m, false, v > boltVersion
	}
	return boltMeta{
		pageSize: native.Uint32(b[8:]), root: native.Uint64(b[16:]), freelist: native.Uint64(b[32:]),
		high: native.Uint64(b[40:]), txid: native.Uint64(b[48:]),
	}, true, false
}

// readMeta picks the meta page that bbolt will pick, the one with the higher transaction id. bbolt would do with one
// valid page and go back a transaction where the newest is not. But what it writes of a meta page lies in one sector of
// the disk, which no power cut tears: a page that is not valid is damage, and to go back would give a turn back.
func readMeta(r io.ReaderAt, size int64) (boltMeta, error) {
	var best boltMeta
	if size < 4*pageSize {
		return best, corrupt("the file has %d bytes, too few for a ledger", size)
	}
	buf := make([]byte, pageSize+headerSize+metaSize)
	if err := readAt(r, buf, 0); err != nil {
		return best, err
	}
	var metas [2]boltMeta
	var bad []int
	for i := range metas {
		page := buf[i*pageSize:]
		m, valid, tooNew := parseMeta(page)
		if tooNew {
			return best, newer(native.Uint32(page[headerSize+4:]))
		}
		if metas[i] = m; !valid || !isMetaPage(page, i) || m.txid%2 != uint64(i) {
			bad = append(bad, i)
		}
	}
	best = metas[0]
	if metas[1].txid > best.txid {
		best = metas[1]
	}
	switch {
	case len(bad) == 2:
		return best, corrupt("neither meta page is valid: not a ledger, or overwritten")
	case len(bad) == 1:
		return best, torn("meta page %d is damaged", bad[0])
	case best.txid-min(metas[0].txid, metas[1].txid) != 1:
		return best, torn("its meta pages are of the transactions %d and %d, which do not follow each other", metas[0].txid, metas[1].txid)
	case best.pageSize != pageSize:
		return best, corrupt("its page size is %d, a ledger's is %d", best.pageSize, pageSize)
	case best.high > uint64(size)/pageSize:
		return best, corrupt("the file is cut short: %d bytes, %d pages in use", size, best.high)
	case best.root < 2 || best.root >= best.high || best.freelist < 2 || best.freelist >= best.high:
		return best, corrupt("a meta page points outside of the file")
	}
	return best, nil
}

// isMetaPage checks the header of a meta page, which is not under its checksum.
func isMetaPage(buf []byte, id int) bool {
	return native.Uint64(buf) == uint64(id) && native.Uint16(buf[8:]) == flagMeta && native.Uint16(buf[10:]) == 0 && native.Uint32(buf[12:]) == 0
}

// readAt reads all of buf. The file's end is damage, another failure the system's.
func readAt(r io.ReaderAt, buf []byte, off int64) error {
	_, err := r.ReadAt(buf, off)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return corrupt("the file ends before byte %d", off+int64(len(buf)))
	}
	return unreadable(err)
}

// page is a branch or leaf page whose layout was found sound.
type page struct {
	leaf  bool
	count int
	data  []byte
}

func (p page) element(i int) []byte {
	off := headerSize + elementSize*i
	return p.data[off : off+elementSize]
}

// bounds is where key and value of an element lie, from the start of the page.
func (p page) bounds(i int) (key, value, end uint64) {
	e := p.element(i)
	off := uint64(headerSize + elementSize*i)
	if p.leaf {
		key = off + uint64(native.Uint32(e[4:]))
		value = key + uint64(native.Uint32(e[8:]))
		return key, value, value + uint64(native.Uint32(e[12:]))
	}
	key = off + uint64(native.Uint32(e))
	value = key + uint64(native.Uint32(e[4:]))
	return key, value, value
}

func (p page) key(i int) []byte {
	k, v, _ := p.bounds(i)
	return p.data[k:v]
}

func (p page) value(i int) []byte {
	_, v, end := p.bounds(i)
	return p.data[v:end]
}

func (p page) child(i int) uint64 { return native.Uint64(p.element(i)[8:]) }

func (p page) flags(i int) uint32 { return native.Uint32(p.element(i)) }

// search is the index of the last key that is not above the given one, 0 where there is none: bbolt's own descent.
func (p page) search(key []byte) int {
	lo, hi := 0, p.count
	for lo < hi {
		if mid := (lo + hi) / 2; bytes.Compare(p.key(mid), key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return max(lo-1, 0)
}

// parsePage checks the layout of a page as bbolt packs it: elements, then keys and values in order without a gap.
// used is where the last value ends. problem is "" for a sound page.
func parsePage(data []byte) (p page, used uint64, problem string) {
	switch native.Uint16(data[8:]) {
	case flagBranch:
	case flagLeaf:
		p.leaf = true
	default:
		return p, 0, "is neither branch nor leaf"
	}
	p.count, p.data = int(native.Uint16(data[10:])), data
	used = uint64(headerSize + elementSize*p.count)
	if used > uint64(len(data)) {
		return p, 0, "holds more elements than fit"
	}
	if p.count == 0 && !p.leaf {
		return p, 0, "is a branch without children"
	}
	for i := range p.count {
		key, value, end := p.bounds(i)
		switch {
		case key != used || value == key || end > uint64(len(data)):
			return p, 0, "is not packed"
		case i > 0 && bytes.Compare(p.key(i-1), p.key(i)) >= 0:
			return p, 0, "has keys out of order"
		}
		used = end
	}
	return p, used, ""
}

// bucketRoot is where a bucket lives: on a page, or inline in the root bucket.
type bucketRoot struct {
	page   uint64
	inline []byte
}

// pages guards one open ledger file for the time that its lock is held.
type pages struct {
	r       io.ReaderAt
	meta    boltMeta
	buckets map[string]bucketRoot
	free    []uint64 // sorted; loaded for writing and verifying only
	seen    []uint64 // bit set of page ids, for a walk of everything only
	bufs    [][]byte // one per depth, reused
}

// openPages checks the header of a file and finds the buckets. writing also checks the freelist, which bbolt loads
// for writing only.
func openPages(r io.ReaderAt, size int64, writing bool) (*pages, error) {
	meta, err := readMeta(r, size)
	if err != nil {
		return nil, err
	}
	p := &pages{r: r, meta: meta, buckets: map[string]bucketRoot{}}
	if writing {
		if err := p.loadFreelist(); err != nil {
			return nil, err
		}
	}
	if err := p.loadBuckets(); err != nil {
		return nil, err
	}
	return p, nil
}

// loadFreelist checks the list of free pages. What it lists can only be held against the pages that are read later.
func (p *pages) loadFreelist() error {
	data, err := p.read(p.meta.freelist, 0)
	if err != nil {
		return err
	}
	bad := func() error { return corrupt("page %d, the freelist, is damaged", p.meta.freelist) }
	if native.Uint16(data[8:]) != flagFreelist {
		return bad()
	}
	count, ids := uint64(native.Uint16(data[10:])), data[headerSize:]
	if count == 0xFFFF { // the count is too large for its field and stands before the ids
		count, ids = native.Uint64(ids), ids[8:]
	}
	// bbolt allocates for one id more or less than it writes, never for a page more than one.
	need := (headerSize+8*count)/pageSize + 1
	if got := uint64(len(data) / pageSize); count > uint64(len(ids)/8) || got > need+1 {
		return bad()
	}
	p.free = make([]uint64, count)
	for i := range p.free {
		id := native.Uint64(ids[8*i:])
		if id < 2 || id >= p.meta.high || i > 0 && id <= p.free[i-1] {
			return bad()
		}
		p.free[i] = id
	}
	return p.inUse(p.meta.freelist, uint64(len(data)/pageSize))
}

// loadBuckets reads the root bucket, which names the others.
func (p *pages) loadBuckets() error {
	walk := treeWalk{leaf: func(pg page, i int) error {
		value := bytes.Clone(pg.value(i))
		if pg.flags(i) != flagBucket || len(value) < bucketSize {
			return corrupt("the root bucket holds something else than buckets: not a ledger")
		}
		root := bucketRoot{page: native.Uint64(value)}
		if root.page == 0 {
			root.inline = value[bucketSize:]
		} else if len(value) != bucketSize {
			return corrupt("bucket %q is malformed", printable(pg.key(i)))
		}
		p.buckets[string(pg.key(i))] = root
		return nil
	}}
	return p.subtree(walk, p.meta.root, nil, nil, 0)
}

// complete checks that the five buckets of format 1 are there, and no others.
func (p *pages) complete() error {
	for _, name := range []string{bucketMeta, bucketEntries, bucketRuns, bucketDimensions, bucketKeys} {
		if _, ok := p.buckets[name]; !ok {
			return corrupt("there is no bucket %s: not a ledger", name)
		}
	}
	if len(p.buckets) != 5 {
		return corrupt("there are %d buckets, a ledger has 5", len(p.buckets))
	}
	return nil
}

// keyRange selects the keys from lo to hi; nil is no end. past also selects the page after the one that holds hi: a
// cursor may step there, and a key that was not found may be hidden behind a damaged separator.
type keyRange struct {
	lo, hi   []byte
	past     bool
	unsealed bool // leave the seals alone
}

func exactly(key []byte) keyRange { return keyRange{lo: key, hi: key} }

// check reads the pages of a bucket that hold a range of keys, and the seals on them.
func (p *pages) check(bucket string, r keyRange) error {
	root, ok := p.buckets[bucket]
	if !ok {
		return corrupt("there is no bucket %s: not a ledger", bucket)
	}
	walk := treeWalk{keyRange: r, leaf: func(pg page, i int) error {
		if pg.flags(i) != 0 {
			return corrupt("bucket %s holds a bucket", bucket)
		}
		if r.unsealed || !isSealed(bucket, pg.key(i)) {
			return nil
		}
		_, err := unseal(bucket, pg.key(i), pg.value(i))
		return err
	}}
	if root.page != 0 {
		return p.subtree(walk, root.page, nil, nil, 0)
	}
	if len(root.inline) < headerSize {
		return corrupt("bucket %s is malformed", bucket)
	}
	pg, used, problem := parsePage(root.inline)
	if problem == "" && (!pg.leaf || used != uint64(len(root.inline))) {
		problem = "is malformed"
	}
	if problem != "" {
		return corrupt("bucket %s %s", bucket, problem)
	}
	return walk.visit(pg)
}

// everything checks every page of the file once: no page is used twice, none is free.
func (p *pages) everything() error {
	p.seen = make([]uint64, p.meta.high/64+1)
	defer func() { p.seen = nil }()
	if err := p.loadBuckets(); err != nil {
		return err
	}
	for name := range p.buckets {
		if err := p.check(name, keyRange{}); err != nil {
			return err
		}
	}
	return nil
}

// treeWalk is a range of keys and what to do with each element of its leaf pages.
type treeWalk struct {
	keyRange
	leaf func(p page, i int) error
}

// visit takes every element of a page, not only the range's: seals that break next to a key are damage on its page.
func (w treeWalk) visit(p page) error {
	for i := range p.count {
		if err := w.leaf(p, i); err != nil {
			return err
		}
	}
	return nil
}

// subtree checks a page and those below it. Its keys must start with first, where given, because bbolt's separators
// are the first keys of their pages, and end before upper.
func (p *pages) subtree(w treeWalk, id uint64, first, upper []byte, depth int) error {
	if depth > maxDepth {
		return corrupt("page %d is nested too deep", id)
	}
	data, err := p.read(id, depth)
	if err != nil {
		return err
	}
	n := uint64(len(data) / pageSize)
	if err := p.inUse(id, n); err != nil {
		return err
	}
	pg, used, problem := parsePage(data)
	switch {
	case problem != "":
	case max(1, (used+pageSize-1)/pageSize) != n:
		problem = "has the wrong length"
	case depth > 0 && (pg.count == 0 || !bytes.Equal(pg.key(0), first)):
		problem = "is not the one its parent means"
	case pg.count > 0 && upper != nil && bytes.Compare(pg.key(pg.count-1), upper) >= 0:
		problem = "holds keys of its neighbour"
	}
	if problem != "" {
		return corrupt("page %d %s", id, problem)
	}
	if pg.leaf {
		return w.visit(pg)
	}
	from, to := 0, pg.count-1
	if w.lo != nil {
		from = pg.search(w.lo)
	}
	if w.hi != nil {
		to = pg.search(w.hi)
		if w.past {
			to = min(to+1, pg.count-1)
		}
	}
	for i := from; i <= to; i++ {
		next := upper
		if i+1 < pg.count {
			next = pg.key(i + 1)
		}
		if err := p.subtree(w, pg.child(i), pg.key(i), next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// read gets a page with its overflow into the buffer of its depth.
func (p *pages) read(id uint64, depth int) ([]byte, error) {
	if id < 2 || id >= p.meta.high {
		return nil, corrupt("there is no page %d", id)
	}
	for len(p.bufs) <= depth {
		p.bufs = append(p.bufs, make([]byte, pageSize))
	}
	buf := p.bufs[depth][:pageSize]
	if err := readAt(p.r, buf, int64(id)*pageSize); err != nil {
		return nil, err
	}
	overflow := uint64(native.Uint32(buf[12:]))
	if native.Uint64(buf) != id || overflow >= p.meta.high-id {
		return nil, corrupt("page %d has a damaged header", id)
	}
	if overflow == 0 {
		return buf, nil
	}
	buf = slices.Grow(buf, int(overflow)*pageSize)[:int(overflow+1)*pageSize]
	p.bufs[depth] = buf
	return buf, readAt(p.r, buf[pageSize:], int64(id+1)*pageSize)
}

// inUse checks that n pages from id on are not free and, in a walk of everything, not used by another tree as well.
func (p *pages) inUse(id, n uint64) error {
	for ; n > 0; id, n = id+1, n-1 {
		if _, free := slices.BinarySearch(p.free, id); free {
			return corrupt("page %d is in use and free", id)
		}
		if p.seen == nil {
			continue
		}
		if bit := uint64(1) << (id % 64); p.seen[id/64]&bit != 0 {
			return corrupt("page %d is used twice", id)
		} else {
			p.seen[id/64] |= bit
		}
	}
	return nil
}
