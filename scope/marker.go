package scope

import "time"

// MaxBytes is the size of the largest marker file that is read.
const MaxBytes = 64 << 10

// maxSkew is how far in the future a startedAt may lie and still be believed.
const maxSkew = time.Minute

// Anchor is what the ledger held when the session was armed.
type Anchor struct {
	Ledger string `json:"ledger"` // the ledger's id, 1 to 256 bytes
	Seq    uint64 `json:"seq"`    // its last sequence number
	Hash   string `json:"hash"`   // that entry's hash, 1 to 256 bytes
}

// Marker binds a session to a run.
type Marker struct {
	Session   string
	Run       string
	StartedAt time.Time // zero where missing or unparsable
	ModTime   time.Time // the file's modification time; ignored by [Write]
	Anchor    *Anchor   // nil where the marker has none
	From      string    // the session whose place this one has taken, as /clear does; "" where there is none

	judged file // what [Remove] has to find again; zero in a marker that was not read
}

// Age returns how long ago the session was armed: now - StartedAt, or now - ModTime where StartedAt is zero or more than
// a minute in the future. It is negative for a time in the future.
func (m Marker) Age(now time.Time) time.Duration {
	if m.StartedAt.IsZero() || m.StartedAt.Sub(now) > maxSkew {
		return now.Sub(m.ModTime)
	}
	return now.Sub(m.StartedAt)
}

// Expired reports whether the marker is older than ttl, or from further in the future than ttl: a wrong clock must not
// arm a session for ever. A marker of exactly that age is still fresh.
//
// newest is when the newest entry of the marker's run was made, zero where that is not known: a marker's age counts from
// then where that is later, so that a run that goes on keeps its sessions in scope.
func (m Marker) Expired(now time.Time, ttl time.Duration, newest time.Time) bool {
	age := m.Age(now)
	if age > ttl && !newest.IsZero() {
		age = now.Sub(newest)
	}
	return age > ttl || age < -ttl
}
