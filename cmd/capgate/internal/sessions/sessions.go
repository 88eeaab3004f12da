// Package sessions reads how the armed sessions of a state directory are: the one answer that status, scope list, doctor,
// verify and sweep give.
package sessions

import (
	"context"
	"errors"
	"time"

	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// Session is one marker, with what the ledger and the hook's heartbeat say of it.
type Session struct {
	scope.Listed
	Expired bool
	Beat    scope.Heartbeat

	Usage    ledger.Usage // of its run
	UsageErr error        // why there is none: the marker's own error, or the ledger's

	Hearing scope.Hearing
}

// List returns all sessions with a marker, sorted. A state directory that cannot be used is scope.ErrState.
func List(ctx context.Context, state string, ttl time.Duration, now time.Time, l ledger.Ledger) ([]Session, error) {
	listed, err := scope.List(state)
	if err != nil {
		return nil, err
	}
	runs := map[string]Session{} // each run is read once
	var all []Session
	for _, m := range listed {
		s := Session{Listed: m, Beat: scope.Heard(state, m.Session), UsageErr: m.Err, Hearing: scope.NotYet}
		if m.Err == nil {
			known, read := runs[m.Run]
			if !read {
				known.Usage, known.UsageErr = l.Usage(ctx, m.Run)
				runs[m.Run] = known
			}
			s.Usage, s.UsageErr = known.Usage, known.UsageErr
		}
		s.Expired = m.Expired(now, ttl, s.Usage.LastAt)
		if s.UsageErr == nil {
			s.Hearing = m.Hear(s.Beat, s.Usage.Turns)
		}
		all = append(all, s)
	}
	return all, nil
}

// Newest returns when the newest entry of a run was made, as [scope.Marker.Expired] takes it. Where the ledger cannot
// answer it is zero, and now where it is only busy: it may yet tell of a newer one. Each run is asked about once.
func Newest(ctx context.Context, l ledger.Ledger, now time.Time) func(run string) time.Time {
	known := map[string]time.Time{}
	return func(run string) time.Time {
		at, asked := known[run]
		if !asked {
			switch b, err := l.Budget(ctx, run, nil); {
			case err == nil:
				at = b.LastAt
			case errors.Is(err, ledger.ErrBusy):
				at = now
			}
			known[run] = at
		}
		return at
	}
}
