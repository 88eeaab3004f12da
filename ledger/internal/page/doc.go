// Package page checks the pages of a bbolt file with plain reads, before bbolt uses them, and refuses whatever bbolt would
// not have written. bbolt itself maps the file and trusts it, so that a damaged page can be a panic, a fault, an endless
// recursion (which no recover stops) or a key that is not found although it is there.
//
// The package knows bbolt's layout and nothing of what a ledger keeps: which buckets there are and which values are good
// is told by [Rules].
//
// # Layout
//
// It is bbolt's version 2, with pages of 4096 bytes ([Size]) and all numbers in the byte order of the machine; a test holds
// it against files that bbolt itself wrote. A page starts at its id times the size:
//
//	page      id u64, flags u16, count u16, overflow u32, then count elements of 16 bytes, then keys and values
//	branch    pos u32, ksize u32, child u64
//	leaf      flags u32, pos u32, ksize u32, vsize u32          pos counts from the element itself
//	bucket    root u64, sequence u64, and where root is 0 a leaf page, in a leaf value whose flags are 1
//	freelist  count ids u64 in order; a count of 0xFFFF stands for the one in a u64 before them
//	meta      magic u32, version u32, page size u32, flags u32, root bucket, freelist u64, high water u64, txid u64,
//	          FNV-64a of the 56 bytes before; transactions write pages 0 and 1 in turn
//
// Flags of a page are 1 branch, 2 leaf, 4 meta, 16 freelist. Overflow is the number of pages that follow and belong to it.
// High water is the first page that was never used. The root bucket is a tree whose values are the other buckets.
//
// # What is checked
//
//	both meta pages       checksum, their own header, transactions that follow each other, everything within the file
//	every page on a path  its own id, within the file, the length that its content needs, not nested without end
//	its elements          packed without a gap, keys in order
//	its place             starts with the key that its parent has for it, ends before the next
//	its values            by [Rules]
//	the freelist          (where the file is written to) in order, within the file, none of it in use
//	everything, once      ([Checker.Everything]) no page is used twice
//
// A check costs the read of each page on the path, which bbolt is about to use anyway. What nobody reads is not checked:
// bytes behind the last value of a page, free pages, and the sequences of buckets.
package page
