package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// defaultTimeout bounds how long a command waits for the ledger: long enough for any queue of loops on one ledger,
// short enough that a stuck one is noticed.
const defaultTimeout = 10 * time.Second

// Timeout is how long the command may wait for the ledger; 0 = without end.
func (a *App) Timeout() time.Duration { return a.timeout }

// Context returns the context of one operation on the ledger, bounded by --timeout.
func (a *App) Context(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	if a.timeout == 0 {
		return Unbounded(cmd)
	}
	return context.WithTimeout(cmd.Context(), a.timeout)
}

// Unbounded returns the context of a walk over the whole ledger: how long that takes is no sign of trouble. It has a
// deadline, since a ledger sets its own where there is none.
func Unbounded(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	const forever = 10 * 365 * 24 * time.Hour
	return context.WithTimeout(cmd.Context(), forever)
}
