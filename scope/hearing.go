package scope

import "github.com/capgate/capgate/ledger"

// Hearing says in one word whether the two halves of the bound work for an armed session: the hook that judges its calls,
// and the loop that counts its turns.
type Hearing string

// The values of [Hearing].
const (
	// NotYet: nothing has been heard of the session's hook, and nothing has to be wrong.
	NotYet Hearing = "not heard yet"
	// Hears: the hook was heard since the session was armed.
	Hears Hearing = "heard"
	// Silent: turns of the run are over, and the hook was not heard in any: only the loop's own check holds.
	Silent Hearing = "silent"
	// Uncounted: capped calls pass, and no turn of the run was counted since the session was armed: the bound does not
	// come any nearer.
	Uncounted Hearing = "uncounted"
)

// Hear is the one rule of "silent" and "uncounted".
//
// A turn that was recorded in one word may be before or after its searches, so only the next one shows that it is over.
func (m Marker) Hear(beat Heartbeat, t ledger.Turns) Hearing {
	armed := m.ModTime // the file is written when the session is armed, also by a loop that writes it by itself
	counted := t.Open > 0 || t.Newest.After(armed)
	switch heard := !beat.At.IsZero() && !beat.At.Before(armed); {
	case heard && beat.Passed > 0 && !counted:
		return Uncounted
	case heard:
		return Hears
	case t.Before.After(armed), t.Ended.After(armed):
		return Silent
	}
	return NotYet
}
