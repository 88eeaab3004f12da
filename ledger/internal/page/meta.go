package page

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
)

// Sizes of the layout, in bytes.
const (
	Size       = 4096 // a page
	HeaderSize = 16   // the start of every page
	MetaSize   = 64   // what follows the header of a meta page

	elementSize = 16
	bucketSize  = 16
)

const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	flagBucket = 0x01 // of an element of a leaf
)

var native = binary.NativeEndian

// Meta is what a meta page says, as far as it is needed here.
type Meta struct {
	PageSize uint32
	Root     uint64 // the page of the root bucket
	Freelist uint64 // the page of the freelist
	High     uint64 // the first page that was never used
	TxID     uint64 // the transaction that wrote it
}

// parseMeta reads one meta page, as bbolt validates it. version is that of a sound meta page, known or not.
func parseMeta(buf []byte) (m Meta, version uint32, valid bool) {
	b := buf[HeaderSize : HeaderSize+MetaSize]
	h := fnv.New64a()
	_, _ = h.Write(b[:56])
	if native.Uint32(b) != boltMagic || native.Uint64(b[56:]) != h.Sum64() {
		return m, 0, false
	}
	if v := native.Uint32(b[4:]); v != boltVersion {
		return m, v, false
	}
	return Meta{
		PageSize: native.Uint32(b[8:]), Root: native.Uint64(b[16:]), Freelist: native.Uint64(b[32:]),
		High: native.Uint64(b[40:]), TxID: native.Uint64(b[48:]),
	}, boltVersion, true
}

// readMeta picks the meta page that bbolt will pick, the one with the higher transaction id. bbolt would do with one
// valid page and go back a transaction where the newest is not. But what it writes of a meta page lies in one sector of
// the disk, which no power cut tears: a page that is not valid is damage, and to go back would give a turn back.
func readMeta(r io.ReaderAt, size int64) (Meta, error) {
	var best Meta
	if size < 4*Size {
		return best, damaged("the file has %d bytes, too few for a ledger", size)
	}
	buf := make([]byte, Size+HeaderSize+MetaSize)
	if err := readAt(r, buf, 0); err != nil {
		return best, err
	}
	var metas [2]Meta
	var bad []int
	for i := range metas {
		page := buf[i*Size:]
		m, version, valid := parseMeta(page)
		if version > boltVersion {
			return best, &NewerError{Version: version}
		}
		if metas[i] = m; !valid || !isMetaPage(page, i) || m.TxID%2 != uint64(i) {
			bad = append(bad, i)
		}
	}
	best = metas[0]
	if metas[1].TxID > best.TxID {
		best = metas[1]
	}
	switch {
	case len(bad) == 2:
		return best, damaged("neither meta page is valid: not a ledger, or overwritten")
	case len(bad) == 1:
		return best, torn("meta page %d is damaged", bad[0])
	case best.TxID-min(metas[0].TxID, metas[1].TxID) != 1:
		return best, torn("its meta pages are of the transactions %d and %d, which do not follow each other", metas[0].TxID, metas[1].TxID)
	case best.PageSize != Size:
		return best, damaged("its page size is %d, a ledger's is %d", best.PageSize, Size)
	case best.High > uint64(size)/Size:
		return best, damaged("the file is cut short: %d bytes, %d pages in use", size, best.High)
	case best.Root < 2 || best.Root >= best.High || best.Freelist < 2 || best.Freelist >= best.High:
		return best, damaged("a meta page points outside of the file")
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
		return damaged("the file ends before byte %d", off+int64(len(buf)))
	}
	return &ReadError{Err: err}
}
