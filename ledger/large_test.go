package ledger

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	largeLedger = flag.String("large-ledger", "", "TestWriteLargeLedger writes a ledger of many turns to this `file`")
	largeTurns  = flag.Int("large-turns", 1_000_000, "how many turns")
)

// TestWriteLargeLedger makes the ledger that the benchmark reads (testdata/bench). Through the public methods it would
// take ten minutes, because each turn is flushed; here ten thousand share a flush.
func TestWriteLargeLedger(t *testing.T) {
	if *largeLedger == "" {
		t.Skip("no -large-ledger given")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	l := NewFile(*largeLedger, Options{})
	_, err := l.OpenRun(ctx, "r", 1_000_000_000, 1)
	require.NoError(t, err)
	for written := 0; written < *largeTurns; {
		batch := min(10_000, *largeTurns-written)
		_, err := transact(ctx, l, writing, func(_ context.Context, t *tx) (r Receipt, err error) {
			s, err := t.existing("r")
			for range batch {
				if err == nil {
					if r, err = t.next(s, turn{KindTurn, "r", "", ""}); err == nil {
						s = s.apply(r.Entry, false)
					}
				}
			}
			return r, err
		})
		require.NoError(t, err)
		written += batch
	}
	b, err := l.Budget(ctx, "r", nil)
	require.NoError(t, err)
	require.EqualValues(t, *largeTurns, b.Used)
}
