package page

import "bytes"

// Node is a branch or leaf page whose layout was found sound.
type Node struct {
	leaf  bool
	count int
	data  []byte
}

// ParseNode checks the layout of a page as bbolt packs it: elements, then keys and values in order without a gap.
// used is where the last value ends. problem is "" for a sound page.
func ParseNode(data []byte) (n Node, used uint64, problem string) {
	switch native.Uint16(data[8:]) {
	case flagBranch:
	case flagLeaf:
		n.leaf = true
	default:
		return n, 0, "is neither branch nor leaf"
	}
	n.count, n.data = int(native.Uint16(data[10:])), data
	used = uint64(HeaderSize + elementSize*n.count)
	if used > uint64(len(data)) {
		return n, 0, "holds more elements than fit"
	}
	if n.count == 0 && !n.leaf {
		return n, 0, "is a branch without children"
	}
	for i := range n.count {
		key, value, end := n.bounds(i)
		switch {
		case key != used || value == key || end > uint64(len(data)):
			return n, 0, "is not packed"
		case i > 0 && bytes.Compare(n.Key(i-1), n.Key(i)) >= 0:
			return n, 0, "has keys out of order"
		}
		used = end
	}
	return n, used, ""
}

// Leaf reports whether the node has values, and no children.
func (n Node) Leaf() bool { return n.leaf }

// Key returns the key of an element, which lies in the page.
func (n Node) Key(i int) []byte {
	k, v, _ := n.bounds(i)
	return n.data[k:v]
}

func (n Node) value(i int) []byte {
	_, v, end := n.bounds(i)
	return n.data[v:end]
}

func (n Node) child(i int) uint64 { return native.Uint64(n.element(i)[8:]) }

func (n Node) flags(i int) uint32 { return native.Uint32(n.element(i)) }

func (n Node) element(i int) []byte {
	off := HeaderSize + elementSize*i
	return n.data[off : off+elementSize]
}

// bounds is where key and value of an element lie, from the start of the page.
func (n Node) bounds(i int) (key, value, end uint64) {
	e := n.element(i)
	off := uint64(HeaderSize + elementSize*i)
	if n.leaf {
		key = off + uint64(native.Uint32(e[4:]))
		value = key + uint64(native.Uint32(e[8:]))
		return key, value, value + uint64(native.Uint32(e[12:]))
	}
	key = off + uint64(native.Uint32(e))
	value = key + uint64(native.Uint32(e[4:]))
	return key, value, value
}

// search is the index of the last key that is not above the given one, 0 where there is none: bbolt's own descent.
func (n Node) search(key []byte) int {
	lo, hi := 0, n.count
	for lo < hi {
		if mid := (lo + hi) / 2; bytes.Compare(n.Key(mid), key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return max(lo-1, 0)
}
