//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
)

// A lock that another process holds denies at the deadline, whichever of the ledger's two locks it is.
func TestAHeldLockDeniesAtTheDeadline(t *testing.T) {
	for _, name := range []string{"ledger.db", "ledger.lock"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).open("r", 1, 1).arm(session, "r")
			w.env["CAPGATE_DEADLINE_MS"] = "400"
			f, err := os.OpenFile(filepath.Join(w.state, name), os.O_RDWR|os.O_CREATE, 0o600)
			require.NoError(t, err)
			defer func() { _ = f.Close() }()
			require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)) // another open file: as good as another process

			r := w.hook(call(session, "WebSearch"))
			w.requireDeny(r, capgate.CodeLedgerUnreadable)
			require.GreaterOrEqual(t, r.took, 300*time.Millisecond)
			require.Less(t, r.took, 10*time.Second, "it hung")
			t.Logf("answered after %v of 400ms", r.took)

			require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_UN))
			w.requirePass(w.hook(call(session, "WebSearch")))
		})
	}
}

// Nothing in the state directory makes the hook wait for another process.
func TestAFIFOInTheWayHangsNothing(t *testing.T) {
	for _, c := range []struct {
		code string
		path func(w *world) string
	}{
		{capgate.CodeMarkerUnreadable, func(w *world) string { return filepath.Join(w.state, "trekresearch-loop-scope", session+".json") }},
		{capgate.CodeLedgerUnreadable, func(w *world) string { return filepath.Join(w.state, "ledger.db") }},
		{capgate.CodeWithinBudget, func(w *world) string { return filepath.Join(w.state, "decisions.jsonl") }},
	} {
		t.Run(c.code, func(t *testing.T) {
			w := newWorld(t).open("r", 1, 1).arm(session, "r")
			path := c.path(w)
			_ = os.Remove(path)
			require.NoError(t, syscall.Mkfifo(path, 0o600))
			r := w.hook(call(session, "WebSearch"))
			require.Less(t, r.took, 5*time.Second)
			if c.code == capgate.CodeWithinBudget {
				w.requirePass(r)
				return
			}
			w.requireDeny(r, c.code)
		})
	}
}
