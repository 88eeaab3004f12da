// Package ledger is an append-only record of runs and their turns, shared by many short-lived processes: [NewFile]
// names a ledger file, and its methods ([Ledger]) open it, do one transaction and close it again.
//
// The rest of this comment is the specification of format 1.
//
// # Files
//
//	ledger.db     a bbolt database, mode 0600, page size 4096
//	ledger.lock   empty; the turnstile that queues openers (name: the ledger's, its extension replaced by ".lock", or
//	              with ".lock" appended where that is its extension)
//
// # Buckets
//
// All integers are big-endian. NUL stands for one zero byte: no id holds one, so it separates; nor does an id hold any
// other control character, or U+FFFD. SEAL is the 64-bit FNV-1a of bucket name, NUL, key, NUL and the value before the
// seal, in 8 bytes.
//
//	bucket       key                   value
//	meta         "format"              uint32, 1
//	             "id"                  32 random bytes, SEAL
//	             "created"             RFC 3339 text, SEAL
//	             "head"                uint64 sequence of the newest entry, 32-byte hash of it, SEAL
//	entries      uint64 sequence       32-byte hash, stored bytes
//	runs         run                   run state, SEAL
//	dimensions   run, NUL, dimension   uint64 turns, SEAL
//	keys         run, NUL, key         uint64 sequence of the turn that came with the key, SEAL
//
// Run state, 90 bytes: version (1), flags (bit 0: closed), then 8 bytes each: used, limit, granted, max_conv_turns,
// max_dimensions, number of dimensions in use, sequence and time of the run-opened entry, sequence and time of the
// run's newest entry, and 8 zero bytes kept for later. Times are nanoseconds since 1970, UTC.
//
// The stored bytes of an entry are the compact JSON of [Entry], exactly as [Ledger.Entries] hands them out, and
//
//	hash(n) = SHA-256(hash(n-1) ‖ stored bytes of n)    hash(0) = the ledger's id
//
// so whoever has an export and the id can recompute the chain with nothing but SHA-256.
//
// # Invariants
//
// Sequences are dense from 1. Everything but entries, id, format and created is derived: it is written in the
// transaction of the entry that changes it, and [Ledger.Verify] recomputes all of it. A decision never walks entries:
// it reads the run's state and cross-checks it against the one entry it rests on, whose hash it recomputes.
// limit = max_conv_turns × max_dimensions + granted, and used ≤ limit, always. A grant raises the run's limit only;
// the bounds of dimensions stay what they were when the run was opened.
//
// # Crash guarantee
//
// One entry is one bbolt transaction: data, flush, pointer, flush, and only then a receipt. An acknowledged entry
// survives kill -9, and power loss where the disk honours flushes; an entry that was not acknowledged is there in
// whole or not at all. After a failed write or flush the entry must be taken as not recorded ([ErrNotRecorded]). The
// file is created under another name, complete, and linked into place, so nobody ever sees half a ledger; each
// opening of a run flushes the directory first, and removes what a creator left behind that was killed more than an
// hour ago (.ledger.db.new-….tmp). Durability is not configurable.
//
// # Locks
//
// A process takes the turnstile, then the flock of the database itself (shared to read, exclusive to write), lets
// the turnstile go, and keeps the second one for its one transaction. Both wait in the kernel's queue, so no reader
// starves beside busy writers. Integrity rests on the second lock alone: deleting ledger.lock is harmless. On systems
// without flock, bbolt's own polling lock is used.
//
// # Damage
//
// bbolt trusts the bytes of its pages: a damaged one makes it panic, fault, recurse without end, or count wrong. So
// every page that a method is about to use is checked first, strictly, with plain reads: identity, packing, order,
// bounds, separators, seals. What is damaged is an error ([ErrCorrupt]), never a panic, a hang or a fresh budget.
//
// bbolt itself falls back one transaction when the newest of its two meta pages is not valid. Here both must be, and of
// transactions that follow each other: the 80 bytes that bbolt writes of a meta page lie in one sector of the disk,
// which a power cut leaves old or new, so a page that is neither is damage, and the older one may lack an acknowledged
// turn. Only an [Anchor], kept elsewhere, tells a whole file of yesterday from one of today.
//
// # Threat model
//
// Everybody with the same user id can rewrite the file, hashes included. The chain is evidence against accidents,
// partial edits and damage, not a security boundary. To notice a wholesale replacement, keep an [Anchor] elsewhere, and
// give it to [Ledger.Budget], [Ledger.RecordTurn] and [Ledger.Verify].
//
// # Compatibility
//
// Format 1 stays readable by every later version. A program that meets a newer format touches nothing and says so
// ([ErrNewerFormat]). Bucket names, keys, encodings and the hash of format 1 do not change.
package ledger
