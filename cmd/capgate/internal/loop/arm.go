package loop

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/sessions"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// Arm puts a session in scope of a run that is open.
func Arm(a *cli.App, cmd *cobra.Command, l ledger.Ledger, session string, run ledger.Usage) error {
	if !scope.ValidSession(session) {
		return badSession(session)
	}
	_, err := arm(a, cmd, l, session, func() (ledger.Usage, error) { return run, nil })
	return err
}

// armed is what came of arming a session.
type armed struct {
	state     string
	marker    scope.Marker
	head      ledger.Anchor
	usage     ledger.Usage
	before    scope.Marker // of the session, until now
	beforeErr error        // as [scope.Read] returns it
}

// arm opens a run and puts a session in scope of it.
func arm(a *cli.App, cmd *cobra.Command, l ledger.Ledger, session string, openRun func() (ledger.Usage, error)) (done armed, err error) {
	state, ttl, err := a.Markers()
	if err != nil {
		return done, err
	}
	done.state = state
	// Before anything is created: a new ledger in place of a lost one would be a fresh budget.
	done.before, done.beforeErr = scope.Read(state, session)
	switch {
	case errors.Is(done.beforeErr, scope.ErrState):
		if err := cli.MakeStateDir(state); err != nil {
			return done, err
		}
		return done, done.beforeErr
	case done.beforeErr == nil && !done.before.Expired(a.Now(), ttl, newest(a, cmd, l, done.before.Run)):
		if err := stillHeld(a, cmd, l, done.before); err != nil {
			return done, err
		}
	}
	if done.usage, err = openRun(); err != nil {
		return done, err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	if done.head, err = l.Head(ctx); err != nil {
		return done, notArmed(done.usage.Run, err)
	}
	anchor := scope.Anchor(done.head)
	done.marker = scope.Marker{Session: session, Run: done.usage.Run, StartedAt: a.Now().UTC(), Anchor: &anchor}
	if err := scope.Write(state, done.marker); err != nil {
		return done, notArmed(done.usage.Run, err)
	}
	_ = scope.Tidy(state, a.Now())
	_ = scope.Forget(state, session) // what was heard before says nothing of what is heard from now on
	return done, nil
}

// newest returns when the newest entry of a run was made, zero where the ledger cannot answer.
func newest(a *cli.App, cmd *cobra.Command, l ledger.Ledger, run string) time.Time {
	ctx, cancel := a.Context(cmd)
	defer cancel()
	return sessions.Newest(ctx, l, a.Now())(run)
}
