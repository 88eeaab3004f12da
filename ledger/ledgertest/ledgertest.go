// Package ledgertest is the suite that every [ledger.Ledger] must pass.
package ledgertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger"
)

// Run holds a store against the contract of [ledger.Ledger]. open makes a new, empty store for one test, in which no
// run was opened yet, and cleans it up itself. Every test ends with Verify.
func Run(t *testing.T, open func(t *testing.T) ledger.Ledger) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, l ledger.Ledger)
	}{
		{"nothing is there before a run is opened", beforeOpening},
		{"the last turn is taken and one more refused", boundary},
		{"a limit of one", limitOfOne},
		{"a dimension has its own bound", dimensionBound},
		{"dimensions are bounded in number", dimensionsBound},
		{"turns without a dimension count on the run only", withoutDimension},
		{"a grant raises the limit of the run only", grants},
		{"a key is recorded once", keys},
		{"a key replays at the limit and after closing", keysWhenSpent},
		{"a key belongs to its dimension", keysAcrossDimensions},
		{"a key belongs to its run", keysAcrossRuns},
		{"a closed run takes nothing more", closedRun},
		{"an unknown run is refused", unknownRun},
		{"opening again", openingAgain},
		{"a refusal changes nothing", refusalChangesNothing},
		{"runs do not see each other", separateRuns},
		{"a turn counts from its begin and is spent at its end", begunTurns},
		{"the next begin ends the open turn of its dimension only", nextBegin},
		{"turns without a dimension have one open turn", openWithoutDimension},
		{"a begin replays while its turn is open", openReplay},
		{"a begin's key is over with its turn", turnOver},
		{"a key belongs to its kind and dimension", reusedKeys},
		{"a begin that a bound refuses ends the open turn, once", refusedBegin},
		{"a refused begin does not use its key up", refusedKey},
		{"an end without an open turn of its own does nothing", idleEnd},
		{"an end with a key ends the turn of this key", endByKey},
		{"no turn is recorded beside an open one", recordBesideOpen},
		{"closing ends all open turns", closeWhileOpen},
		{"what is checked first is said first", orderOfChecks},
		{"a begin is made only where its anchors hold", anchoredBegins},
		{"a grant of turns to a dimension", dimensionGrants},
		{"a grant of dimensions", moreDimensions},
		{"a grant is of one thing", badGrants},
		{"a grant to a run at its cap", grantAtTheCap},
		{"the times of turns", times},
		{"receipts are what is stored", receipts},
		{"runs are listed oldest first", listing},
		{"the chain can be recomputed from an export", export},
		{"entries start anywhere and stop on an error", entries},
		{"entries may use the ledger meanwhile", entriesReentrant},
		{"anchors hold", anchors},
		{"a turn is recorded only where its anchors hold", anchoredTurns},
		{"arguments are bounded", arguments},
		{"an ended context ends the call", endedContext},
		{"a limit of 500 holds among goroutines", race},
		{"a key recorded at the same time counts once", keyRace},
		{"loops that begin and end share a limit exactly", loopRace},
		{"a key begun at the same time begins one turn", beginRace},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := open(t)
			t.Cleanup(func() { Sound(t, l) })
			c.test(t, l)
		})
	}
}

// Sound fails the test when the ledger does not verify. A ledger that was never created is sound.
func Sound(t *testing.T, l ledger.Ledger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	report, err := l.Verify(ctx)
	if errors.Is(err, ledger.ErrMissing) {
		return
	}
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

var ctx = context.Background()

func openRun(t *testing.T, l ledger.Ledger, run string, maxConvTurns, maxDimensions int64) ledger.Receipt {
	t.Helper()
	r, err := l.OpenRun(ctx, run, maxConvTurns, maxDimensions)
	require.NoError(t, err)
	return r
}

func turn(t *testing.T, l ledger.Ledger, run, dimension, key string) ledger.Receipt {
	t.Helper()
	r, err := l.RecordTurn(ctx, run, dimension, key)
	require.NoError(t, err)
	return r
}

func requireSpent(t *testing.T, err error, want ledger.SpentError) {
	t.Helper()
	require.ErrorIs(t, err, ledger.ErrBudgetSpent)
	var spent *ledger.SpentError
	require.ErrorAs(t, err, &spent)
	require.Equal(t, want, *spent)
}

func requireBudget(t *testing.T, l ledger.Ledger, want ledger.Budget) {
	t.Helper()
	got, err := l.Budget(ctx, want.Run, nil)
	require.NoError(t, err)
	require.False(t, got.LastAt.IsZero())
	got.LastAt = time.Time{} // tested on its own
	require.Equal(t, want, got)
}

// all reads the whole ledger: what was handed out, and the stored bytes.
func all(t *testing.T, l ledger.Ledger) (receipts []ledger.Receipt, stored []string) {
	t.Helper()
	require.NoError(t, l.Entries(ctx, 1, func(r ledger.Receipt, b []byte) error {
		receipts = append(receipts, r)
		stored = append(stored, string(b))
		return nil
	}))
	return receipts, stored
}

func beforeOpening(t *testing.T, l ledger.Ledger) {
	_, err := l.RecordTurn(ctx, "r", "", "")
	require.Error(t, err)
	_, err = l.BeginTurn(ctx, "r", "", "")
	require.Error(t, err)
	_, err = l.EndTurn(ctx, "r", "", "")
	require.Error(t, err)
	_, err = l.Budget(ctx, "r", nil)
	require.Error(t, err)
	_, err = l.OpenRun(ctx, "", 1, 1)
	require.ErrorIs(t, err, ledger.ErrInvalid)
	_, err = l.RecordTurn(ctx, "r", "", "")
	require.Error(t, err, "only a run that was opened may make a ledger")
}

func boundary(t *testing.T, l ledger.Ledger) {
	opened := openRun(t, l, "r", 4, 2)
	require.EqualValues(t, 0, opened.Used)
	require.EqualValues(t, 8, opened.Limit)
	for n := int64(1); n <= 8; n++ {
		requireBudget(t, l, ledger.Budget{Run: "r", Used: n - 1, Limit: 8})
		r := turn(t, l, "r", "", "")
		require.Equal(t, n, r.Used)
		require.EqualValues(t, 8, r.Limit)
		require.EqualValues(t, n+1, r.Seq)
		require.False(t, r.Replayed)
	}
	for range 3 {
		_, err := l.RecordTurn(ctx, "r", "", "")
		requireSpent(t, err, ledger.SpentError{Run: "r", Bound: "turns", Used: 8, Limit: 8})
	}
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 8, Limit: 8})
}

func limitOfOne(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	turn(t, l, "r", "d", "")
	_, err := l.RecordTurn(ctx, "r", "d", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Bound: "turns", Used: 1, Limit: 1})
}

func dimensionBound(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 2, 3)
	turn(t, l, "r", "a", "")
	turn(t, l, "r", "a", "")
	_, err := l.RecordTurn(ctx, "r", "a", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "a", Bound: "dimension-turns", Used: 2, Limit: 2})
	turn(t, l, "r", "b", "")
	u, err := l.Usage(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"a": 2, "b": 1}, u.Dimensions)
}

func dimensionsBound(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 5, 2)
	turn(t, l, "r", "a", "")
	turn(t, l, "r", "b", "")
	_, err := l.RecordTurn(ctx, "r", "c", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "c", Bound: "dimensions", Used: 2, Limit: 2})
	turn(t, l, "r", "a", "")
	turn(t, l, "r", "", "")
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 4, Limit: 10})
}

func withoutDimension(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 2, 2)
	for range 3 {
		turn(t, l, "r", "", "")
	}
	turn(t, l, "r", "a", "")
	_, err := l.RecordTurn(ctx, "r", "b", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Bound: "turns", Used: 4, Limit: 4})
	u, err := l.Usage(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"a": 1}, u.Dimensions)
}

func grants(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 2, 1)
	turn(t, l, "r", "a", "")
	turn(t, l, "r", "a", "")
	g, err := l.Grant(ctx, "r", ledger.Grant{Turns: 2}, "the reviewer asked for more")
	require.NoError(t, err)
	require.Equal(t, ledger.KindGrant, g.Kind)
	require.EqualValues(t, 2, g.Entry.Turns)
	require.EqualValues(t, 4, g.Limit)
	require.Equal(t, "the reviewer asked for more", g.Reason)
	_, err = l.RecordTurn(ctx, "r", "a", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "a", Bound: "dimension-turns", Used: 2, Limit: 2})
	_, err = l.RecordTurn(ctx, "r", "b", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "b", Bound: "dimensions", Used: 1, Limit: 1})
	turn(t, l, "r", "", "")
	turn(t, l, "r", "", "")
	_, err = l.RecordTurn(ctx, "r", "", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Bound: "turns", Used: 4, Limit: 4})
	u, err := l.Usage(ctx, "r")
	require.NoError(t, err)
	require.EqualValues(t, 2, u.Granted)
	require.EqualValues(t, 2, u.MaxConvTurns)
	require.Zero(t, u.Remaining)
}

// requireReplay fails unless got is the first receipt once more. Its Turns are those of the run as it is now.
func requireReplay(t *testing.T, first, got ledger.Receipt) {
	t.Helper()
	first.Replayed, first.Turns = true, got.Turns
	require.Equal(t, first, got)
}

func keys(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 5, 1)
	first := turn(t, l, "r", "d", "k1")
	turn(t, l, "r", "d", "k2")
	requireReplay(t, first, turn(t, l, "r", "d", "k1"))
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 2, Limit: 5})
	turn(t, l, "r", "d", "")
	turn(t, l, "r", "d", "")
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 4, Limit: 5})
}

func keysWhenSpent(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	first := turn(t, l, "r", "d", "k")
	requireReplay(t, first, turn(t, l, "r", "d", "k"))
	_, err := l.CloseRun(ctx, "r")
	require.NoError(t, err)
	requireReplay(t, first, turn(t, l, "r", "d", "k"))
	_, err = l.RecordTurn(ctx, "r", "d", "other")
	require.ErrorIs(t, err, ledger.ErrRunClosed)
}

func keysAcrossDimensions(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 4, 2)
	first := turn(t, l, "r", "a", "k")
	for _, other := range []string{"b", ""} {
		_, err := l.RecordTurn(ctx, "r", other, "k")
		require.ErrorIs(t, err, ledger.ErrKeyReused, other)
	}
	requireReplay(t, first, turn(t, l, "r", "a", "k"))
	u, err := l.Usage(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"a": 1}, u.Dimensions)
}

func keysAcrossRuns(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 4, 2)
	openRun(t, l, "r2", 4, 2)
	turn(t, l, "r", "", "k")
	require.False(t, turn(t, l, "r2", "", "k").Replayed)
	// Ids that run into each other must not be mixed up.
	turn(t, l, "r", "", "2k")
	require.False(t, turn(t, l, "r2", "", "2k").Replayed)
	turn(t, l, "r", "2d", "")
	u, err := l.Usage(ctx, "r2")
	require.NoError(t, err)
	require.Empty(t, u.Dimensions)
}

func closedRun(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 4, 2)
	turn(t, l, "r", "", "")
	closed, err := l.CloseRun(ctx, "r")
	require.NoError(t, err)
	require.Equal(t, ledger.KindRunClosed, closed.Kind)
	require.EqualValues(t, 1, closed.Used)
	_, err = l.RecordTurn(ctx, "r", "", "")
	require.ErrorIs(t, err, ledger.ErrRunClosed)
	_, err = l.Grant(ctx, "r", ledger.Grant{Turns: 1}, "more")
	require.ErrorIs(t, err, ledger.ErrRunClosed)
	_, err = l.OpenRun(ctx, "r", 4, 2)
	require.ErrorIs(t, err, ledger.ErrRunClosed)
	again, err := l.CloseRun(ctx, "r")
	require.NoError(t, err)
	requireReplay(t, closed, again)
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 1, Limit: 8, Closed: true})
}

func unknownRun(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	_, err := l.RecordTurn(ctx, "other", "", "k")
	require.ErrorIs(t, err, ledger.ErrRunUnknown)
	_, err = l.Grant(ctx, "other", ledger.Grant{Turns: 1}, "more")
	require.ErrorIs(t, err, ledger.ErrRunUnknown)
	_, err = l.CloseRun(ctx, "other")
	require.ErrorIs(t, err, ledger.ErrRunUnknown)
	_, err = l.BeginTurn(ctx, "other", "", "k")
	require.ErrorIs(t, err, ledger.ErrRunUnknown)
	_, err = l.EndTurn(ctx, "other", "", "k")
	require.ErrorIs(t, err, ledger.ErrRunUnknown)
	_, err = l.Budget(ctx, "other", nil)
	require.ErrorIs(t, err, ledger.ErrRunUnknown)
	_, err = l.Usage(ctx, "other")
	require.ErrorIs(t, err, ledger.ErrRunUnknown)
}

func openingAgain(t *testing.T, l ledger.Ledger) {
	first := openRun(t, l, "r", 4, 2)
	require.Equal(t, ledger.KindRunOpened, first.Kind)
	require.EqualValues(t, 4, first.MaxConvTurns)
	require.EqualValues(t, 2, first.MaxDimensions)
	turn(t, l, "r", "", "")
	requireReplay(t, first, openRun(t, l, "r", 4, 2))
	for _, limits := range [][2]int64{{2, 4}, {8, 1}, {4, 3}} {
		_, err := l.OpenRun(ctx, "r", limits[0], limits[1])
		require.ErrorIs(t, err, ledger.ErrRunExists)
	}
	_, err := l.Grant(ctx, "r", ledger.Grant{Turns: 1}, "more")
	require.NoError(t, err)
	requireReplay(t, first, openRun(t, l, "r", 4, 2))
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 1, Limit: 9})
}

func refusalChangesNothing(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	turn(t, l, "r", "d", "k")
	before, err := l.Head(ctx)
	require.NoError(t, err)
	for range 3 {
		_, err := l.RecordTurn(ctx, "r", "d", "k2")
		require.ErrorIs(t, err, ledger.ErrBudgetSpent)
		_, err = l.RecordTurn(ctx, "other", "d", "k2")
		require.ErrorIs(t, err, ledger.ErrRunUnknown)
		turn(t, l, "r", "d", "k")
		openRun(t, l, "r", 1, 1)
	}
	after, err := l.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = l.Grant(ctx, "r", ledger.Grant{Turns: 1}, "more")
	require.NoError(t, err)
	require.False(t, turn(t, l, "r", "", "k2").Replayed, "a refused turn must not use its key up")
}

func separateRuns(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "a", 2, 1)
	openRun(t, l, "b", 3, 1)
	turn(t, l, "a", "d", "")
	turn(t, l, "b", "d", "")
	turn(t, l, "a", "d", "")
	_, err := l.RecordTurn(ctx, "a", "d", "")
	require.ErrorIs(t, err, ledger.ErrBudgetSpent)
	turn(t, l, "b", "d", "")
	requireBudget(t, l, ledger.Budget{Run: "a", Used: 2, Limit: 2})
	requireBudget(t, l, ledger.Budget{Run: "b", Used: 2, Limit: 3})
}

func receipts(t *testing.T, l ledger.Ledger) {
	awkward := `"quoted" \ <é> ` + strings.Repeat("長", 70)
	var want []ledger.Receipt
	want = append(want, openRun(t, l, awkward, 4, 2))
	want = append(want, turn(t, l, awkward, awkward, awkward))
	g, err := l.Grant(ctx, awkward, ledger.Grant{Turns: 3}, awkward)
	require.NoError(t, err)
	want = append(want, g)
	requireBudget(t, l, ledger.Budget{Run: awkward, Used: 1, Limit: 11})
	want = append(want, begin(t, l, awkward, awkward, awkward+"2"), begin(t, l, awkward, awkward, ""), end(t, l, awkward, awkward, ""))
	g, err = l.Grant(ctx, awkward, ledger.Grant{Turns: 3, Dimension: awkward}, awkward)
	require.NoError(t, err)
	want = append(want, g)
	g, err = l.Grant(ctx, awkward, ledger.Grant{Dimensions: 2}, awkward)
	require.NoError(t, err)
	want = append(want, g, begin(t, l, awkward, "", ""))
	requireBudget(t, l, ledger.Budget{Run: awkward, Used: 4, Open: 1, Limit: 22})
	c, err := l.CloseRun(ctx, awkward)
	require.NoError(t, err)
	want = append(want, c)
	got, _ := all(t, l)
	for i := range want {
		want[i].Turns = ledger.Turns{} // of the run at the time, and not stored
	}
	require.Equal(t, want, got)
	for _, r := range got {
		require.Equal(t, time.UTC, r.At.Location())
	}
}

func listing(t *testing.T, l ledger.Ledger) {
	for _, run := range []string{"z", "a", "m"} {
		openRun(t, l, run, 2, 2)
	}
	turn(t, l, "a", "d", "")
	last := turn(t, l, "z", "", "")
	runs, err := l.Runs(ctx)
	require.NoError(t, err)
	require.Len(t, runs, 3)
	for i, run := range []string{"z", "a", "m"} {
		require.Equal(t, run, runs[i].Run)
		one, err := l.Usage(ctx, run)
		require.NoError(t, err)
		require.Equal(t, one, runs[i])
	}
	require.Equal(t, last.Seq, runs[0].LastSeq)
	require.Equal(t, last.At, runs[0].LastAt)
	require.EqualValues(t, 3, runs[0].Remaining)
	require.NotNil(t, runs[2].Dimensions)
}

func export(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 4, 2)
	empty := chainStart(t, l)
	for i := range 5 {
		turn(t, l, "r", "d"+fmt.Sprint(i%2), fmt.Sprint("k", i))
	}
	receipts, stored := all(t, l)
	require.Len(t, stored, 6)
	previous, err := hex.DecodeString(empty)
	require.NoError(t, err)
	for i, b := range stored {
		sum := sha256.Sum256(append(previous, b...))
		require.Equal(t, hex.EncodeToString(sum[:]), receipts[i].Hash)
		require.EqualValues(t, i+1, receipts[i].Seq)
		var e ledger.Entry
		require.NoError(t, json.Unmarshal([]byte(b), &e))
		require.Equal(t, receipts[i].Entry, e)
		previous = sum[:]
	}
	head, err := l.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, ledger.Anchor{Ledger: empty, Seq: 6, Hash: hex.EncodeToString(previous)}, head)
}

// chainStart is the ledger's id, with which the chain begins.
func chainStart(t *testing.T, l ledger.Ledger) string {
	t.Helper()
	head, err := l.Head(ctx)
	require.NoError(t, err)
	return head.Ledger
}

func entries(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 9, 1)
	for range 5 {
		turn(t, l, "r", "", "")
	}
	whole, _ := all(t, l)
	for from := uint64(0); from <= 8; from++ {
		var got []ledger.Receipt
		require.NoError(t, l.Entries(ctx, from, func(r ledger.Receipt, _ []byte) error {
			got = append(got, r)
			return nil
		}))
		want := whole[min(max(from, 1)-1, uint64(len(whole))):]
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	}
	enough := errors.New("enough")
	seen := 0
	err := l.Entries(ctx, 1, func(ledger.Receipt, []byte) error {
		if seen++; seen == 2 {
			return enough
		}
		return nil
	})
	require.Equal(t, enough, err)
	require.Equal(t, 2, seen)
}

func entriesReentrant(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 9, 1)
	seen := 0
	require.NoError(t, l.Entries(ctx, 1, func(ledger.Receipt, []byte) error {
		seen++
		turn(t, l, "r", "", "")
		return nil
	}))
	require.Equal(t, 1, seen, "what is recorded meanwhile is not handed out")
}

func anchors(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 9, 1)
	var held []ledger.Anchor
	for range 4 {
		a, err := l.Head(ctx)
		require.NoError(t, err)
		held = append(held, a)
		turn(t, l, "r", "", "")
	}
	empty := ledger.Anchor{Ledger: held[0].Ledger, Hash: held[0].Ledger}
	for _, a := range append(held, empty) {
		b, err := l.Budget(ctx, "r", &a)
		require.NoError(t, err)
		require.EqualValues(t, 4, b.Used)
	}
	report, err := l.Verify(ctx, held...)
	require.NoError(t, err)
	require.True(t, report.OK())
	require.EqualValues(t, 5, report.Entries)
	require.Equal(t, 1, report.Runs)

	other := strings.Repeat("ab", 32)
	for name, a := range map[string]ledger.Anchor{
		"another ledger":      {Ledger: other, Seq: held[1].Seq, Hash: held[1].Hash},
		"another hash":        {Ledger: held[1].Ledger, Seq: held[1].Seq, Hash: other},
		"past the end":        {Ledger: held[1].Ledger, Seq: 99, Hash: held[1].Hash},
		"the largest number":  {Ledger: held[1].Ledger, Seq: 1<<64 - 1, Hash: held[1].Hash},
		"another empty start": {Ledger: held[1].Ledger, Seq: 0, Hash: other},
	} {
		_, err := l.Budget(ctx, "r", &a)
		require.ErrorIs(t, err, ledger.ErrAnchorLost, name)
		report, err := l.Verify(ctx, held[0], a)
		require.NoError(t, err, name)
		require.Len(t, report.Problems, 1, name)
	}
	_, err = l.Budget(ctx, "r", &ledger.Anchor{Ledger: held[1].Ledger, Seq: 99})
	require.ErrorIs(t, err, ledger.ErrInvalid)
}

func anchoredTurns(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 9, 1)
	var held []ledger.Anchor
	for range 3 {
		a, err := l.Head(ctx)
		require.NoError(t, err)
		held = append(held, a)
		turn(t, l, "r", "d", "")
	}
	first, err := l.RecordTurn(ctx, "r", "d", "k", held...)
	require.NoError(t, err)
	require.EqualValues(t, 4, first.Used)

	other := strings.Repeat("ab", 32)
	for name, a := range map[string]ledger.Anchor{
		"another ledger": {Ledger: other, Seq: held[1].Seq, Hash: held[1].Hash},
		"another hash":   {Ledger: held[1].Ledger, Seq: held[1].Seq, Hash: other},
		"past the end":   {Ledger: held[1].Ledger, Seq: 99, Hash: held[1].Hash},
	} {
		for _, key := range []string{"", "new", "k"} { // a replay rests on what is lost, too
			for _, anchors := range [][]ledger.Anchor{{a}, {a, held[0]}, {held[0], held[2], a}} {
				_, err := l.RecordTurn(ctx, "r", "d", key, anchors...)
				require.ErrorIs(t, err, ledger.ErrAnchorLost, name)
			}
		}
		_, err := l.RecordTurn(ctx, "unknown", "", "", a)
		require.ErrorIs(t, err, ledger.ErrAnchorLost, "what was lost explains more than that the run is unknown")
	}
	_, err = l.RecordTurn(ctx, "r", "", "", ledger.Anchor{Ledger: held[1].Ledger, Seq: 99})
	require.ErrorIs(t, err, ledger.ErrInvalid)
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 4, Limit: 9})
	again, err := l.RecordTurn(ctx, "r", "d", "k", held...)
	require.NoError(t, err)
	requireReplay(t, first, again)
}

func arguments(t *testing.T, l ledger.Ledger) {
	longest := strings.Repeat("x", ledger.MaxIDBytes)
	openRun(t, l, longest, 2, 2)
	turn(t, l, longest, longest, longest)
	_, err := l.Grant(ctx, longest, ledger.Grant{Turns: 1}, strings.Repeat("x", ledger.MaxReasonBytes))
	require.NoError(t, err)
	openRun(t, l, "largest", ledger.MaxLimit, 1)
	_, err = l.Grant(ctx, "largest", ledger.Grant{Turns: 1}, "more")
	require.ErrorIs(t, err, ledger.ErrInvalid)
	before, err := l.Head(ctx)
	require.NoError(t, err)

	bad := map[string]string{
		"too long": longest + "x", "newline": "a\nb", "NUL": "a\x00b", "delete": "a\x7f", "C1 control": "a\u0085", "not UTF-8": "a\xff",
		"broken once": "a\ufffd",
	}
	for name, id := range bad {
		_, err := l.OpenRun(ctx, id, 1, 1)
		require.ErrorIs(t, err, ledger.ErrInvalid, name)
		for _, args := range [][3]string{{id, "d", "k"}, {longest, id, "k"}, {longest, "d", id}} {
			_, err = l.RecordTurn(ctx, args[0], args[1], args[2])
			require.ErrorIs(t, err, ledger.ErrInvalid, name)
			_, err = l.BeginTurn(ctx, args[0], args[1], args[2])
			require.ErrorIs(t, err, ledger.ErrInvalid, name)
			_, err = l.EndTurn(ctx, args[0], args[1], args[2])
			require.ErrorIs(t, err, ledger.ErrInvalid, name)
		}
		_, err = l.Grant(ctx, longest, ledger.Grant{Turns: 1, Dimension: id}, "more")
		require.ErrorIs(t, err, ledger.ErrInvalid, name)
		_, err = l.Grant(ctx, id, ledger.Grant{Turns: 1}, "more")
		require.ErrorIs(t, err, ledger.ErrInvalid, name)
		_, err = l.CloseRun(ctx, id)
		require.ErrorIs(t, err, ledger.ErrInvalid, name)
		_, err = l.Budget(ctx, id, nil)
		require.ErrorIs(t, err, ledger.ErrInvalid, name)
		_, err = l.Usage(ctx, id)
		require.ErrorIs(t, err, ledger.ErrInvalid, name)
		if name != "too long" {
			_, err = l.Grant(ctx, longest, ledger.Grant{Turns: 1}, id)
			require.ErrorIs(t, err, ledger.ErrInvalid, name)
		}
	}
	_, err = l.RecordTurn(ctx, "", "", "")
	require.ErrorIs(t, err, ledger.ErrInvalid)
	const most = 1<<63 - 1
	for _, limits := range [][2]int64{
		{0, 1}, {1, 0}, {-1, 1}, {1, -1}, {-1, -1}, {ledger.MaxLimit, 2}, {2, ledger.MaxLimit}, {most, 1}, {1, most}, {most, most}, {1 << 32, 1 << 32},
	} {
		_, err := l.OpenRun(ctx, "new", limits[0], limits[1])
		require.ErrorIs(t, err, ledger.ErrInvalid, "%v", limits)
	}
	for _, turns := range []int64{0, -1, ledger.MaxLimit, ledger.MaxLimit + 1, most} {
		_, err := l.Grant(ctx, longest, ledger.Grant{Turns: turns}, "more")
		require.ErrorIs(t, err, ledger.ErrInvalid, "%d", turns)
	}
	for _, reason := range []string{"", strings.Repeat("x", ledger.MaxReasonBytes+1)} {
		_, err := l.Grant(ctx, longest, ledger.Grant{Turns: 1}, reason)
		require.ErrorIs(t, err, ledger.ErrInvalid)
	}
	after, err := l.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func endedContext(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 2, 1)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := l.RecordTurn(ended, "r", "", "")
	if err != nil {
		require.NotErrorIs(t, err, ledger.ErrCorrupt)
		requireBudget(t, l, ledger.Budget{Run: "r", Used: 0, Limit: 2})
	}
}

func race(t *testing.T, l ledger.Ledger) {
	const limit, workers = 500, 8
	openRun(t, l, "r", limit/2, 2)
	var mu sync.Mutex
	seqs := map[uint64]bool{}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				r, err := l.RecordTurn(ctx, "r", "", "")
				if errors.Is(err, ledger.ErrBudgetSpent) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seqs[r.Seq] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seqs, limit)
	for n := uint64(2); n < limit+2; n++ {
		require.True(t, seqs[n], "sequence %d", n)
	}
	requireBudget(t, l, ledger.Budget{Run: "r", Used: limit, Limit: limit})
}

func keyRace(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 20, 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for k := range 10 {
				if _, err := l.RecordTurn(ctx, "r", "d", fmt.Sprint(k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 10, Limit: 20})
}
