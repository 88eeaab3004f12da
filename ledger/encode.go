package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"github.com/capgate/capgate/ledger/internal/page"
)

// format is the version of the file format that this package writes, and the newest that it reads.
const format = 1

// Names of the buckets.
const (
	bucketMeta       = "meta"
	bucketEntries    = "entries"
	bucketRuns       = "runs"
	bucketDimensions = "dimensions"
	bucketKeys       = "keys"
)

// Keys of the meta bucket.
const (
	metaFormat  = "format"
	metaID      = "id"
	metaCreated = "created"
	metaHead    = "head"
)

const sealSize = 8

// checksum covers bucket and key as well as value, so that a value is only good where it was written. It is FNV-1a and
// not a CRC, because the tables of a fast CRC take longer to fill at the start of a process than all reads of a hook.
func checksum(bucket string, key, value []byte) uint64 {
	h := fnv.New64a() // never returns an error
	_, _ = h.Write([]byte(bucket))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(key)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(value)
	return h.Sum64()
}

// seal appends the checksum that [unseal] takes off again.
func seal(bucket string, key, value []byte) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(value), checksum(bucket, key, value))
}

// unseal returns the value without its seal, which must be right.
func unseal(bucket string, key, sealed []byte) ([]byte, error) {
	n := len(sealed) - sealSize
	if n < 0 || binary.BigEndian.Uint64(sealed[n:]) != checksum(bucket, key, sealed[:n]) {
		return nil, corrupt("value of %q in bucket %s has a wrong checksum", page.Printable(key), bucket)
	}
	return sealed[:n], nil
}

// isSealed reports whether values of a bucket carry a seal. Entries carry a hash instead, and the format's version
// is plain because it decides whether seals can be understood.
func isSealed(bucket string, key []byte) bool {
	return bucket != bucketEntries && !(bucket == bucketMeta && string(key) == metaFormat)
}

// digest is a SHA-256 hash, or the ledger's id where the chain starts.
type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// parseDigest reads 64 lower-case hex digits.
func parseDigest(s string) (digest, bool) {
	var d digest
	if len(s) != 2*len(d) {
		return d, false
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return d, false
	}
	return d, d.String() == s
}

// chain is the hash of an entry.
func chain(previous digest, stored []byte) digest {
	h := sha256.New()
	h.Write(previous[:])
	h.Write(stored)
	var d digest
	h.Sum(d[:0])
	return d
}

// link is one place in the chain: a sequence and the hash there. Sequence 0 has the id.
type link struct {
	seq  uint64
	hash digest
}

func encodeLink(l link) []byte {
	return append(binary.BigEndian.AppendUint64(nil, l.seq), l.hash[:]...)
}

func decodeLink(b []byte) (link, error) {
	var l link
	if len(b) != 8+len(l.hash) {
		return l, corrupt("head has %d bytes", len(b))
	}
	l.seq = binary.BigEndian.Uint64(b)
	copy(l.hash[:], b[8:])
	return l, nil
}

func encodeUint(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func decodeUint(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, corrupt("a number has %d bytes", len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// runPrefix starts the keys of everything that is kept per run. Ids hold no control character, so NUL ends one.
func runPrefix(run string) []byte { return append([]byte(run), 0) }

// runKey is the key of one dimension, or one idempotency key, of a run.
func runKey(run, name string) []byte { return append(runPrefix(run), name...) }

// splitRunKey undoes [runKey].
func splitRunKey(key []byte) (run, name string, ok bool) {
	r, n, ok := bytes.Cut(key, []byte{0})
	return string(r), string(n), ok
}

// encodeEntry makes the stored bytes of an entry, which are those of [json.Marshal]. For ordinary text they are written
// here: a process that records one turn takes as long to get a JSON encoder ready as to read what the turn rests on.
func encodeEntry(e Entry) ([]byte, error) {
	if e.At.Location() != time.UTC || !ordinary(string(e.Kind)) || !ordinary(e.Run) || !ordinary(e.Dimension) || !ordinary(e.Key) || !ordinary(e.Reason) {
		return json.Marshal(e)
	}
	b := make([]byte, 0, 256)
	b = strconv.AppendUint(append(b, `{"seq":`...), e.Seq, 10)
	b = e.At.AppendFormat(append(b, `,"at":"`...), time.RFC3339Nano)
	b = append(append(b, `","kind":"`...), e.Kind...)
	b = append(append(b, `","run":"`...), e.Run...)
	b = append(b, '"')
	number := func(name string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(b, name...), n, 10)
		}
	}
	text := func(name, s string) {
		if s != "" {
			b = append(append(append(b, name...), s...), '"')
		}
	}
	number(`,"max_conv_turns":`, e.MaxConvTurns)
	number(`,"max_dimensions":`, e.MaxDimensions)
	text(`,"dimension":"`, e.Dimension)
	text(`,"key":"`, e.Key)
	if e.Ends != 0 {
		b = strconv.AppendUint(append(b, `,"ends":`...), e.Ends, 10)
	}
	number(`,"turns":`, e.Turns)
	number(`,"dimensions":`, e.Dimensions)
	text(`,"reason":"`, e.Reason)
	return appendCounters(b, e.Used, e.Open, e.Limit), nil
}

// appendCounters is the end of every entry.
func appendCounters(b []byte, used, open, limit int64) []byte {
	b = strconv.AppendInt(append(b, `,"used":`...), used, 10)
	b = strconv.AppendInt(append(b, `,"open":`...), open, 10)
	b = strconv.AppendInt(append(b, `,"limit":`...), limit, 10)
	return append(b, '}')
}

// ordinary reports whether text stands in JSON as it is.
func ordinary(text string) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < 0x20, c == '"', c == '\\', c == '<', c == '>', c == '&', c >= 0x7F:
			return false // escaped, or might be
		}
	}
	return true
}

// splitEntry takes the value of an entry apart, without looking into the stored bytes.
func splitEntry(value []byte) (hash digest, stored []byte, err error) {
	if len(value) <= len(hash) {
		return hash, nil, errors.New("is cut short")
	}
	copy(hash[:], value)
	return hash, value[len(hash):], nil
}

// decodeEntry reads stored bytes.
func decodeEntry(stored []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(stored, &e); err != nil {
		return Entry{}, errors.New("holds no readable record")
	}
	switch e.Kind {
	case KindRunOpened, KindTurnBegun, KindTurnEnded, KindTurn, KindGrant, KindRunClosed:
	default:
		return Entry{}, fmt.Errorf("has the unknown kind %q", page.Printable([]byte(e.Kind)))
	}
	return e, nil
}

// matches reports whether stored bytes are the entry seq, and leave its run with these counters. The bytes that
// [encodeEntry] makes for an ordinary run id are compared as text: a decision must not pay for a JSON decoder.
func matches(stored []byte, seq uint64, run string, used, open, limit int64) bool {
	if matchesText(stored, seq, run, used, open, limit) {
		return true
	}
	e, err := decodeEntry(stored)
	return err == nil && e.Seq == seq && e.Run == run && e.Used == used && e.Open == open && e.Limit == limit
}

func matchesText(stored []byte, seq uint64, run string, used, open, limit int64) bool {
	num := make([]byte, 0, 96)
	num = append(num, `{"seq":`...)
	num = strconv.AppendUint(num, seq, 10)
	rest, ok := bytes.CutPrefix(stored, append(num, `,"at":"`...))
	if !ok {
		return false
	}
	_, rest, _ = bytes.Cut(rest, []byte(`","kind":"`))
	_, rest, _ = bytes.Cut(rest, []byte(`","run":"`))
	if !ordinary(run) {
		return false
	}
	if len(rest) <= len(run) || string(rest[:len(run)]) != run || rest[len(run)] != '"' {
		return false
	}
	return bytes.HasSuffix(rest, appendCounters(num[:0], used, open, limit))
}

// runState is what is kept of one run beside its entries. Times are nanoseconds since 1970, 0 where there is none.
type runState struct {
	closed            bool
	used              int64
	open              int64 // turns begun and not ended
	limit             int64
	granted           int64 // turns
	maxConvTurns      int64
	maxDimensions     int64 // granted ones included
	grantedDimensions int64
	dimensions        int64 // in use
	openedSeq         uint64
	openedAt          int64
	lastSeq           uint64
	lastAt            int64
	newestAt          int64 // the newest turn was begun or recorded
	beforeAt          int64 // so was the one before it
	endedAt           int64 // a turn was ended, other than by closing the run
}

const (
	runStateVersion = 1
	runStateNumbers = 15
	runStateSize    = 2 + 8*runStateNumbers
	flagClosed      = 1
)

func (s runState) encode() []byte {
	b := make([]byte, 2, runStateSize)
	b[0] = runStateVersion
	if s.closed {
		b[1] = flagClosed
	}
	for _, n := range [runStateNumbers]uint64{
		uint64(s.used), uint64(s.open), uint64(s.limit), uint64(s.granted), uint64(s.maxConvTurns),
		uint64(s.maxDimensions), uint64(s.grantedDimensions), uint64(s.dimensions),
		s.openedSeq, uint64(s.openedAt), s.lastSeq, uint64(s.lastAt),
		uint64(s.newestAt), uint64(s.beforeAt), uint64(s.endedAt),
	} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// decodeRunState also holds the numbers against each other.
func decodeRunState(b []byte) (runState, error) {
	if len(b) > 0 && b[0] > runStateVersion {
		return runState{}, fmt.Errorf("%w: a run state has version %d; update this program", ErrNewerFormat, b[0])
	}
	if len(b) != runStateSize || b[0] != runStateVersion || b[1]&^flagClosed != 0 {
		return runState{}, corrupt("a run state is malformed")
	}
	var n [runStateNumbers]uint64
	for i := range n {
		n[i] = binary.BigEndian.Uint64(b[2+8*i:])
	}
	s := runState{
		closed: b[1] == flagClosed,
		used:   int64(n[0]), open: int64(n[1]), limit: int64(n[2]), granted: int64(n[3]), maxConvTurns: int64(n[4]),
		maxDimensions: int64(n[5]), grantedDimensions: int64(n[6]), dimensions: int64(n[7]),
		openedSeq: n[8], openedAt: int64(n[9]), lastSeq: n[10], lastAt: int64(n[11]),
		newestAt: int64(n[12]), beforeAt: int64(n[13]), endedAt: int64(n[14]),
	}
	if !s.plausible() {
		return runState{}, corrupt("the numbers of a run state contradict each other")
	}
	return s, nil
}

func (s runState) plausible() bool {
	for _, n := range []int64{s.used, s.open, s.granted, s.dimensions, s.grantedDimensions} {
		if n < 0 || n > MaxLimit {
			return false
		}
	}
	for _, at := range []int64{s.newestAt, s.beforeAt, s.endedAt} {
		if at < 0 || at > 0 && s.used == 0 {
			return false
		}
	}
	return validLimits(s.maxConvTurns, s.maxDimensions) == nil && s.grantedDimensions < s.maxDimensions &&
		s.limit == s.maxConvTurns*s.maxDimensions+s.granted && s.limit <= MaxLimit &&
		s.used <= s.limit && s.dimensions <= s.maxDimensions && s.dimensions <= s.used &&
		s.open <= s.used && s.open <= s.dimensions+1 && !(s.closed && s.open > 0) &&
		(s.newestAt > 0) == (s.used > 0) && (s.beforeAt > 0) == (s.used > 1) &&
		s.openedSeq >= 1 && s.lastSeq >= s.openedSeq
}

// apply is the state after an entry of the run. newDimension says whether a turn names a dimension not seen before.
func (s runState) apply(e Entry, newDimension bool) runState {
	at := e.At.UnixNano()
	switch e.Kind {
	case KindRunOpened:
		s = runState{
			maxConvTurns: e.MaxConvTurns, maxDimensions: e.MaxDimensions, limit: e.MaxConvTurns * e.MaxDimensions,
			openedSeq: e.Seq, openedAt: at,
		}
	case KindTurnBegun, KindTurn:
		s.used++
		if newDimension {
			s.dimensions++
		}
		s.newestAt, s.beforeAt = at, s.newestAt
		if e.Kind == KindTurnBegun {
			s.open++
		}
	case KindGrant:
		s.granted += e.Turns
		s.maxDimensions += e.Dimensions
		s.grantedDimensions += e.Dimensions
		s.limit += e.Turns + e.Dimensions*s.maxConvTurns
	case KindRunClosed:
		s.closed, s.open = true, 0
	}
	if e.Ends != 0 {
		s.open--
		s.endedAt = at
	}
	s.lastSeq, s.lastAt = e.Seq, at
	return s
}

func (s runState) budget(run string) Budget {
	return Budget{Run: run, Used: s.used, Open: s.open, Limit: s.limit, Closed: s.closed, LastAt: instant(s.lastAt)}
}

func (s runState) turns() Turns {
	return Turns{Open: s.open, Newest: instant(s.newestAt), Before: instant(s.beforeAt), Ended: instant(s.endedAt)}
}

func (s runState) usage(run string) Usage {
	return Usage{
		Budget:       s.budget(run),
		Turns:        s.turns(),
		Remaining:    s.limit - s.used,
		MaxConvTurns: s.maxConvTurns, MaxDimensions: s.maxDimensions, Granted: s.granted,
		Dimensions: map[string]int64{}, DimensionGrants: map[string]int64{},
		OpenedAt: instant(s.openedAt), LastSeq: s.lastSeq,
	}
}

// dimensionState is what is kept of one dimension of a run beside its entries, and of the turns without a dimension:
// of those the open turn only, because no bound but the run's holds for them.
type dimensionState struct {
	turns   int64
	granted int64  // turns added to its bound
	open    uint64 // the sequence of the begin of its open turn, or 0; in a closed run it says nothing
}

const dimensionStateSize = 3 * 8

func (d dimensionState) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, dimensionStateSize), uint64(d.turns))
	b = binary.BigEndian.AppendUint64(b, uint64(d.granted))
	return binary.BigEndian.AppendUint64(b, d.open)
}

func decodeDimensionState(b []byte) (dimensionState, error) {
	if len(b) != dimensionStateSize {
		return dimensionState{}, corrupt("what is kept of a dimension has %d bytes", len(b))
	}
	d := dimensionState{
		turns:   int64(binary.BigEndian.Uint64(b)),
		granted: int64(binary.BigEndian.Uint64(b[8:])),
		open:    binary.BigEndian.Uint64(b[16:]),
	}
	if d.turns < 0 || d.turns > MaxLimit || d.granted < 0 || d.granted > MaxLimit {
		return dimensionState{}, corrupt("the numbers of a dimension are out of bounds")
	}
	return d, nil
}

// apply is the state of a dimension after an entry of it.
func (d dimensionState) apply(e Entry) dimensionState {
	if e.Dimension != "" && (e.Kind == KindTurnBegun || e.Kind == KindTurn) {
		d.turns++
	}
	switch e.Kind {
	case KindTurnBegun:
		d.open = e.Seq
	case KindTurnEnded:
		d.open = 0
	case KindGrant:
		d.granted += e.Turns
	}
	return d
}

// instant is the time that a state keeps, and the zero time for 0.
func instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}

// stamp makes a clock's time storable: UTC, no monotonic part, within what nanoseconds since 1970 can say. The first of
// them stands for no time.
func stamp(t time.Time) (time.Time, error) {
	if !t.After(time.Unix(0, 0)) || t.After(time.Unix(0, math.MaxInt64)) {
		return time.Time{}, fmt.Errorf("%w: the clock says %s; set it right", ErrInvalid, t.Format(time.RFC3339))
	}
	return t.Round(0).UTC(), nil
}
