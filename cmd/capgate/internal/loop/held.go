package loop

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// stillHeld checks that the ledger holds what it held when the session was armed. Whatever is wrong with the run itself
// is for others to say.
func stillHeld(a *cli.App, cmd *cobra.Command, l ledger.Ledger, m scope.Marker) error {
	if m.Anchor == nil {
		return nil
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	anchor := ledger.Anchor(*m.Anchor)
	_, err := l.Budget(ctx, m.Run, &anchor)
	file, _ := a.LedgerPath()
	wayOut := fmt.Sprintf("restore it from a copy, or give the old count up with `capgate scope close --session %s`", m.Session)
	switch {
	case errors.Is(err, ledger.ErrRunUnknown):
		return nil
	case errors.Is(err, ledger.ErrMissing):
		return lostError{fmt.Sprintf("session %s is armed for run %s, but its ledger %s is gone: %s", m.Session, m.Run, file, wayOut)}
	case errors.Is(err, ledger.ErrAnchorLost), errors.Is(err, ledger.ErrInvalid):
		return lostError{fmt.Sprintf("session %s is armed for run %s, but ledger %s does not hold what it held then: "+
			"it was rolled back or replaced, or is another one; %s", m.Session, m.Run, file, wayOut)}
	}
	return err
}

// lostError is a ledger that does not hold what a marker remembers.
type lostError struct{ text string }

func (e lostError) Error() string { return e.text }

func (e lostError) Unwrap() error { return ledger.ErrAnchorLost }
