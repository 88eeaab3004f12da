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
//	dimensions   run, NUL, dimension   dimension state, SEAL
//	keys         run, NUL, key         uint64 sequence of the turn-begun or turn entry that came with the key, SEAL
//
// Run state, 122 bytes: version (1), flags (bit 0: closed), then 8 bytes each: used, open, limit, granted turns,
// max_conv_turns, max_dimensions with the granted ones, granted dimensions, number of dimensions in use, sequence and
// time of the run-opened entry, sequence and time of the run's newest entry, and three times: of the newest turn's begin
// or record, of the one before it, and of the newest end ([Turns]). Times are nanoseconds since 1970, UTC; 0 is none.
//
// Dimension state, 24 bytes: turns, turns granted to it, and the sequence of the turn-begun entry whose turn is open, 0
// for none. Turns without a dimension have one under the empty name from their first begin on. It keeps their open turn
// only: no bound but the run's holds for them, and they are no dimension in use. In a closed run no turn is open,
// whatever is kept here.
//
// The stored bytes of an entry are the compact JSON of [Entry], exactly as [Ledger.Entries] hands them out, and
//
//	hash(n) = SHA-256(hash(n-1) ‖ stored bytes of n)    hash(0) = the ledger's id
//
// so whoever has an export and the id can recompute the chain with nothing but SHA-256.
//
// # Operations
//
// A turn is open from its begin to its end, and counts against every bound from its begin. A dimension of a run has at
// most one open turn, and so have the turns without a dimension: D stands for either.
//
//	operation  state                                  appended                     answer
//	begin      key known, other kind or dimension     -                            ErrKeyReused
//	begin      key known, its turn is open            -                            first receipt, replayed
//	begin      key known, its turn is over            -                            ErrTurnOver
//	begin      run closed                             -                            ErrRunClosed
//	begin      refused by a bound, D open             turn-ended: open - 1         SpentError, after the commit
//	begin      refused by a bound, D not open         -                            SpentError
//	begin      room                                   turn-begun: used + 1,        receipt
//	                                                  open + 1; where D is open,
//	                                                  it ends that turn: open + 0
//	end        run closed, or D not open, or with a   -                            receipt of the run's newest
//	           key that is not the open turn's                                     entry, replayed
//	end        D open                                 turn-ended: open - 1         receipt
//	record     key known, other kind or dimension     -                            ErrKeyReused
//	record     key known                              -                            first receipt, replayed
//	record     run closed                             -                            ErrRunClosed
//	record     D open                                 -                            ErrTurnOpen
//	record     refused by a bound                     -                            SpentError
//	record     room                                   turn: used + 1               receipt
//	grant      not closed                             grant: limit + n             receipt
//	close      not closed                             run-closed: open = 0         receipt
//
// The first row that holds wins. Before all of them come the anchors (ErrAnchorLost), then whether the run is known
// (ErrRunUnknown). The bounds, in this order: used < limit; a new dimension, number in use < max_dimensions; turns of the
// dimension < max_conv_turns + turns granted to it. A grant of n turns raises the limit by n, and the bound of the
// dimension that it names, which must be in use; a grant of n dimensions raises max_dimensions by n and the limit by
// n × max_conv_turns.
//
// A run is spent ([Budget.Spent]) when used - open ≥ limit, so never while a turn is open, or when it is closed. One loop
// works on a dimension at a time: a second one would end the turns of the first.
//
// # Invariants
//
// Sequences are dense from 1. Everything but entries, id, format and created is derived: it is written in the
// transaction of the entry that changes it, and [Ledger.Verify] recomputes all of it. A decision never walks entries:
// it reads the run's state and cross-checks it against the one entry it rests on, whose hash it recomputes.
// limit = max_conv_turns × max_dimensions + granted turns, and open ≤ used ≤ limit, always. Every entry carries used, open
// and limit of its run; the cross-check compares all three.
//
// # Crash guarantee
//
// One entry is one bbolt transaction: data, flush, pointer, flush, and only then a receipt. An acknowledged entry
// survives kill -9, and power loss where the disk honours flushes; an entry that was not acknowledged is there in
// whole or not at all. After a failed write or flush the entry must be taken as not recorded ([ErrNotRecorded]).
//
// What a replayed receipt acknowledges was written by another process, which may have been killed before its last
// flush: the file is flushed before the receipt is given.
//
// The file is created under another name, complete, and linked into place, so nobody ever sees half a ledger; each
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
// give it to [Ledger.Budget], [Ledger.BeginTurn], [Ledger.RecordTurn] and [Ledger.Verify].
//
// # Compatibility
//
// Format 1 stays readable by every later version. A program that meets a newer format touches nothing and says so
// ([ErrNewerFormat]). Bucket names, keys, encodings and the hash of format 1 do not change.
package ledger
