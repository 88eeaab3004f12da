package page

import (
	"bytes"
	"io"
	"slices"
)

// maxDepth is far beyond the depth of any tree of ours (at least four keys fit a page), and ends every cycle.
const maxDepth = 16

// Rules are what the owner of a file knows of its content.
type Rules struct {
	// Buckets are all the buckets that the file has.
	Buckets []string
	// Value judges a value of a bucket. Its error is handed on as it is; nil takes every value.
	Value func(bucket string, key, value []byte) error
}

// Range selects the keys from Lo to Hi; nil is no end.
type Range struct {
	Lo, Hi []byte
	// Past also selects the page after the one that holds Hi: a cursor may step there, and a key that was not found may
	// be hidden behind a damaged separator.
	Past bool
	// LayoutOnly leaves the values alone.
	LayoutOnly bool
}

// Exactly selects one key.
func Exactly(key []byte) Range { return Range{Lo: key, Hi: key} }

// Checker checks the pages of one open file, for the time that its lock is held. Its errors are [DamageError],
// [NewerError], [ReadError], and those of [Rules].
type Checker struct {
	r       io.ReaderAt
	rules   Rules
	meta    Meta
	buckets map[string]bucketRoot
	free    []uint64 // sorted; loaded for writing and verifying only
	seen    []uint64 // bit set of page ids, for a walk of everything only
	bufs    [][]byte // one per depth, reused
}

// bucketRoot is where a bucket lives: on a page, or inline in the root bucket.
type bucketRoot struct {
	page   uint64
	inline []byte
}

// Open checks the meta pages of a file of this size and finds its buckets. writing also checks the freelist, which bbolt
// loads for writing only.
func Open(r io.ReaderAt, size int64, rules Rules, writing bool) (*Checker, error) {
	meta, err := readMeta(r, size)
	if err != nil {
		return nil, err
	}
	c := &Checker{r: r, rules: rules, meta: meta, buckets: map[string]bucketRoot{}}
	if writing {
		if err := c.Freelist(); err != nil {
			return nil, err
		}
	}
	if err := c.loadBuckets(); err != nil {
		return nil, err
	}
	return c, nil
}

// Meta returns the newest of the two meta pages.
func (c *Checker) Meta() Meta { return c.meta }

// Root returns the page where a bucket's tree starts, or 0 for a bucket without a page of its own.
func (c *Checker) Root(bucket string) uint64 { return c.buckets[bucket].page }

// Freelist checks the list of free pages. From then on, a page that is in use and on the list is damage.
func (c *Checker) Freelist() error {
	data, err := c.read(c.meta.Freelist, 0)
	if err != nil {
		return err
	}
	bad := func() error { return damaged("page %d, the freelist, is damaged", c.meta.Freelist) }
	if native.Uint16(data[8:]) != flagFreelist {
		return bad()
	}
	count, ids := uint64(native.Uint16(data[10:])), data[HeaderSize:]
	if count == 0xFFFF { // the count is too large for its field and stands before the ids
		count, ids = native.Uint64(ids), ids[8:]
	}
	// bbolt allocates for one id more or less than it writes, never for a page more than one.
	need := (HeaderSize+8*count)/Size + 1
	if got := uint64(len(data) / Size); count > uint64(len(ids)/8) || got > need+1 {
		return bad()
	}
	c.free = make([]uint64, count)
	for i := range c.free {
		id := native.Uint64(ids[8*i:])
		if id < 2 || id >= c.meta.High || i > 0 && id <= c.free[i-1] {
			return bad()
		}
		c.free[i] = id
	}
	return c.inUse(c.meta.Freelist, uint64(len(data)/Size))
}

// loadBuckets reads the root bucket, which names the others.
func (c *Checker) loadBuckets() error {
	walk := treeWalk{leaf: func(n Node, i int) error {
		value := bytes.Clone(n.value(i))
		if n.flags(i) != flagBucket || len(value) < bucketSize {
			return damaged("the root bucket holds something else than buckets: not a ledger")
		}
		root := bucketRoot{page: native.Uint64(value)}
		if root.page == 0 {
			root.inline = value[bucketSize:]
		} else if len(value) != bucketSize {
			return damaged("bucket %q is malformed", Printable(n.Key(i)))
		}
		c.buckets[string(n.Key(i))] = root
		return nil
	}}
	return c.subtree(walk, c.meta.Root, nil, nil, 0)
}

// Complete checks that the buckets of the rules are there, and no others.
func (c *Checker) Complete() error {
	for _, name := range c.rules.Buckets {
		if _, ok := c.buckets[name]; !ok {
			return damaged("there is no bucket %s: not a ledger", name)
		}
	}
	if len(c.buckets) != len(c.rules.Buckets) {
		return damaged("there are %d buckets, a ledger has %d", len(c.buckets), len(c.rules.Buckets))
	}
	return nil
}

// Check reads the pages of a bucket that hold a range of keys, and judges every value on them.
func (c *Checker) Check(bucket string, r Range) error {
	root, ok := c.buckets[bucket]
	if !ok {
		return damaged("there is no bucket %s: not a ledger", bucket)
	}
	walk := treeWalk{Range: r, leaf: func(n Node, i int) error {
		if n.flags(i) != 0 {
			return damaged("bucket %s holds a bucket", bucket)
		}
		if r.LayoutOnly || c.rules.Value == nil {
			return nil
		}
		return c.rules.Value(bucket, n.Key(i), n.value(i))
	}}
	if root.page != 0 {
		return c.subtree(walk, root.page, nil, nil, 0)
	}
	if len(root.inline) < HeaderSize {
		return damaged("bucket %s is malformed", bucket)
	}
	n, used, problem := ParseNode(root.inline)
	if problem == "" && (!n.leaf || used != uint64(len(root.inline))) {
		problem = "is malformed"
	}
	if problem != "" {
		return damaged("bucket %s %s", bucket, problem)
	}
	return walk.visit(n)
}

// Everything checks every page of the file once: no page is used twice, none is free.
func (c *Checker) Everything() error {
	c.seen = make([]uint64, c.meta.High/64+1)
	defer func() { c.seen = nil }()
	if err := c.loadBuckets(); err != nil {
		return err
	}
	for name := range c.buckets {
		if err := c.Check(name, Range{}); err != nil {
			return err
		}
	}
	return nil
}

// treeWalk is a range of keys and what to do with each element of its leaf pages.
type treeWalk struct {
	Range
	leaf func(n Node, i int) error
}

// visit takes every element of a page, not only the range's: a bad value next to a key is damage on its page.
func (w treeWalk) visit(n Node) error {
	for i := range n.count {
		if err := w.leaf(n, i); err != nil {
			return err
		}
	}
	return nil
}

// subtree checks a page and those below it. Its keys must start with first, where given, because bbolt's separators
// are the first keys of their pages, and end before upper.
func (c *Checker) subtree(w treeWalk, id uint64, first, upper []byte, depth int) error {
	if depth > maxDepth {
		return damaged("page %d is nested too deep", id)
	}
	data, err := c.read(id, depth)
	if err != nil {
		return err
	}
	pages := uint64(len(data) / Size)
	if err := c.inUse(id, pages); err != nil {
		return err
	}
	n, used, problem := ParseNode(data)
	switch {
	case problem != "":
	case max(1, (used+Size-1)/Size) != pages:
		problem = "has the wrong length"
	case depth > 0 && (n.count == 0 || !bytes.Equal(n.Key(0), first)):
		problem = "is not the one its parent means"
	case n.count > 0 && upper != nil && bytes.Compare(n.Key(n.count-1), upper) >= 0:
		problem = "holds keys of its neighbour"
	}
	if problem != "" {
		return damaged("page %d %s", id, problem)
	}
	if n.leaf {
		return w.visit(n)
	}
	from, to := 0, n.count-1
	if w.Lo != nil {
		from = n.search(w.Lo)
	}
	if w.Hi != nil {
		to = n.search(w.Hi)
		if w.Past {
			to = min(to+1, n.count-1)
		}
	}
	for i := from; i <= to; i++ {
		next := upper
		if i+1 < n.count {
			next = n.Key(i + 1)
		}
		if err := c.subtree(w, n.child(i), n.Key(i), next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// read gets a page with its overflow into the buffer of its depth.
func (c *Checker) read(id uint64, depth int) ([]byte, error) {
	if id < 2 || id >= c.meta.High {
		return nil, damaged("there is no page %d", id)
	}
	for len(c.bufs) <= depth {
		c.bufs = append(c.bufs, make([]byte, Size))
	}
	buf := c.bufs[depth][:Size]
	if err := readAt(c.r, buf, int64(id)*Size); err != nil {
		return nil, err
	}
	overflow := uint64(native.Uint32(buf[12:]))
	if native.Uint64(buf) != id || overflow >= c.meta.High-id {
		return nil, damaged("page %d has a damaged header", id)
	}
	if overflow == 0 {
		return buf, nil
	}
	buf = slices.Grow(buf, int(overflow)*Size)[:int(overflow+1)*Size]
	c.bufs[depth] = buf
	return buf, readAt(c.r, buf[Size:], int64(id+1)*Size)
}

// inUse checks that so many pages from id on are not free and, in a walk of everything, not used by another tree as well.
func (c *Checker) inUse(id, pages uint64) error {
	for ; pages > 0; id, pages = id+1, pages-1 {
		if _, free := slices.BinarySearch(c.free, id); free {
			return damaged("page %d is in use and free", id)
		}
		if c.seen == nil {
			continue
		}
		if bit := uint64(1) << (id % 64); c.seen[id/64]&bit != 0 {
			return damaged("page %d is used twice", id)
		} else {
			c.seen[id/64] |= bit
		}
	}
	return nil
}
