package decisionlog

import (
	"crypto/rand"
	"time"
)

// crockford is the ULID alphabet: Crockford's base 32.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns a ULID (github.com/ulid/spec): 48 bits of milliseconds, then 80 random bits, as 26 characters whose
// order is the order of time. Ids of one millisecond are in no order.
func NewID(now time.Time) string {
	var bits [16]byte
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		bits[i] = byte(ms >> (40 - 8*i))
	}
	_, _ = rand.Read(bits[6:]) // never fails: crypto/rand ends the process instead
	var id [26]byte
	for i := range id {
		// 26 × 5 bits hold the 128 with two in front, which are zero.
		id[i] = crockford[fiveBits(bits[:], 5*i-2)]
	}
	return string(id[:])
}

// fiveBits returns the five bits that begin at bit at; bits outside are zero.
func fiveBits(b []byte, at int) (v byte) {
	for bit := at; bit < at+5; bit++ {
		v <<= 1
		if bit >= 0 {
			v |= b[bit/8] >> (7 - bit%8) & 1
		}
	}
	return v
}
