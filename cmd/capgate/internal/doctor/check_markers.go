package doctor

import (
	"errors"
	"fmt"
	"time"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/hearing"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// checkMarkers looks at the sessions that are armed, and at whether their hook was heard.
func checkMarkers(x Examination) []Finding {
	f := findings{check: "markers"}
	if x.MarkersErr != nil {
		if !errors.Is(x.MarkersErr, scope.ErrNone) {
			f.add(Fail, x.MarkersErr.Error(), "calls are denied, because they cannot be counted", "mend the state directory")
		}
		return f.all
	}
	sound := 0
	for _, m := range x.Markers {
		closeIt := "capgate scope close --session " + m.Session
		switch {
		case m.Expired:
			f.add(Warn, fmt.Sprintf("session %s has an expired marker", m.Session), "it is removed at the session's next search", "capgate scope sweep")
		case m.Err != nil:
			f.add(Fail, m.Err.Error(), "every capped call of session "+m.Session+" is denied", closeIt)
		case errors.Is(m.UsageErr, ledger.ErrRunUnknown):
			f.add(Fail, fmt.Sprintf("session %s is armed for run %s, which is not in the ledger", m.Session, m.Run), "every capped call of it is denied", closeIt)
		case m.Age(x.Now) < -time.Minute:
			f.add(Warn, fmt.Sprintf("session %s was armed in the future", m.Session), "the clock was ahead then, or is behind now: it expires late", closeIt)
		case m.Hearing == hearing.Silent:
			f.add(Fail, fmt.Sprintf("session %s has recorded turns, but its hook was not heard since it was armed (hook: silent)", m.Session), "only the loop's own check holds", "start a new session of the client after capgate install, and look at the lines about the hook above")
		case m.Hearing == hearing.Doubtful:
			f.add(Warn, fmt.Sprintf("session %s: no search of it has been judged since it was armed (hook: silent)", m.Session), "after one turn the loop may not have searched yet; if it has, only its own check holds", "look again after the next turn: capgate status")
		default:
			sound++
		}
	}
	if sound > 0 {
		f.ok(cli.Plural(sound, "session") + " armed")
	}
	return f.all
}
