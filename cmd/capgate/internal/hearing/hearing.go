// Package hearing judges what it means that the hook of an armed session was not heard.
//
// The hook leaves a heartbeat when it judges a call of a session in scope (package scope). A session whose loop records
// turns while its hook is silent is held by the loop's own check alone. How soon silence says so depends on who asks;
// that is decided here and nowhere else.
package hearing

import "time"

// Asker is who wants to know.
type Asker int

// Askers.
const (
	Turn   Asker = iota // capgate turn, which has just recorded one: the hook was due at the turn before it
	Status              // capgate status and scope list, at any moment
	Doctor              // capgate doctor, for which one turn without a search is no fault yet
)

// Word says what is known of a hook. It is part of what `status --json` and `scope list --json` print.
type Word string

// Words.
const (
	Heard    Word = "heard"
	NotYet   Word = "not heard yet" // silence means nothing: the loop may not have searched
	Doubtful Word = "doubtful"      // for the doctor only: silent, and one turn is all there was
	Silent   Word = "silent"
)

// Facts are what is known of an armed session and its run.
type Facts struct {
	Heard bool  // since the session was armed
	Used  int64 // turns of the run, those before it was armed among them

	// The run's newest entry and the moment of arming: as numbers of entries for Turn, as times for the others.
	Newest, Armed     uint64
	NewestAt, ArmedAt time.Time

	// Since counts the turns that were recorded since the session was armed. Only Doctor needs it.
	Since int
}

// Silence says what the facts mean to who asks.
func Silence(asked Asker, f Facts) Word {
	if f.Heard {
		return Heard
	}
	silent := f.Used > 0 && f.NewestAt.After(f.ArmedAt)
	if asked == Turn {
		// The newest entry is this turn, and a turn is recorded before its searches: an earlier one must lie between.
		silent = f.Used >= 2 && f.Newest >= f.Armed+2
	}
	switch {
	case !silent:
		return NotYet
	case asked == Doctor && f.Since < 2:
		return Doubtful
	}
	return Silent
}
