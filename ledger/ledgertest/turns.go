package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/capgate/capgate/ledger"
	"github.com/stretchr/testify/require"
)

func begin(t *testing.T, l ledger.Ledger, run, dimension, key string) ledger.Receipt {
	t.Helper()
	r, err := l.BeginTurn(ctx, run, dimension, key)
	require.NoError(t, err)
	return r
}

func end(t *testing.T, l ledger.Ledger, run, dimension, key string) ledger.Receipt {
	t.Helper()
	r, err := l.EndTurn(ctx, run, dimension, key)
	require.NoError(t, err)
	return r
}

func grant(t *testing.T, l ledger.Ledger, run string, g ledger.Grant) ledger.Receipt {
	t.Helper()
	r, err := l.Grant(ctx, run, g, "agreed")
	require.NoError(t, err)
	return r
}

func usage(t *testing.T, l ledger.Ledger, run string) ledger.Usage {
	t.Helper()
	u, err := l.Usage(ctx, run)
	require.NoError(t, err)
	return u
}

// requireEntries fails unless the ledger has n entries.
func requireEntries(t *testing.T, l ledger.Ledger, n uint64) {
	t.Helper()
	head, err := l.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, n, head.Seq)
}

func begunTurns(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 2)
	first := begin(t, l, "r", "a", "k")
	require.Equal(t, ledger.KindTurnBegun, first.Kind)
	require.Equal(t, "a", first.Dimension)
	require.Equal(t, "k", first.Key)
	require.Zero(t, first.Ends)
	require.EqualValues(t, 1, first.Used)
	require.EqualValues(t, 1, first.Open)
	require.EqualValues(t, 1, first.Turns.Open)
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 1, Open: 1, Limit: 2})
	over := end(t, l, "r", "a", "")
	require.Equal(t, ledger.KindTurnEnded, over.Kind)
	require.Equal(t, "a", over.Dimension)
	require.Equal(t, first.Seq, over.Ends)
	require.EqualValues(t, 1, over.Used)
	require.Zero(t, over.Open)
	require.False(t, over.Replayed)
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 1, Limit: 2})

	begin(t, l, "r", "b", "")
	b, err := l.Budget(ctx, "r", nil)
	require.NoError(t, err)
	require.Equal(t, b.Limit, b.Used)
	require.False(t, b.Spent(), "the last turn goes on")
	end(t, l, "r", "b", "")
	b, err = l.Budget(ctx, "r", nil)
	require.NoError(t, err)
	require.True(t, b.Spent())
	require.Equal(t, map[string]int64{"a": 1, "b": 1}, usage(t, l, "r").Dimensions)
}

func nextBegin(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 3, 2)
	openRun(t, l, "other", 3, 2)
	begin(t, l, "other", "a", "")
	a := begin(t, l, "r", "a", "")
	b := begin(t, l, "r", "b", "")
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 2, Open: 2, Limit: 6})
	next := begin(t, l, "r", "a", "")
	require.Equal(t, a.Seq, next.Ends)
	require.Equal(t, b.Seq+1, next.Seq, "it ends the turn in its own entry")
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 3, Open: 2, Limit: 6})
	require.Equal(t, b.Seq, end(t, l, "r", "b", "").Ends)
	require.Equal(t, next.Seq, end(t, l, "r", "a", "").Ends)
	requireBudget(t, l, ledger.Budget{Run: "other", Used: 1, Open: 1, Limit: 6})
}

func openWithoutDimension(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 5, 1)
	turn(t, l, "r", "", "")
	first := begin(t, l, "r", "", "")
	a := begin(t, l, "r", "a", "")
	require.Zero(t, a.Ends)
	require.Equal(t, first.Seq, begin(t, l, "r", "", "").Ends)
	u := usage(t, l, "r")
	require.EqualValues(t, 2, u.Open)
	require.Equal(t, map[string]int64{"a": 1}, u.Dimensions, "it is no dimension")
	require.NotZero(t, end(t, l, "r", "", "").Ends)
	require.True(t, end(t, l, "r", "", "").Replayed)
	turn(t, l, "r", "", "")
	require.Equal(t, map[string]int64{"a": 1}, usage(t, l, "r").Dimensions)
}

func openReplay(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 2)
	first := begin(t, l, "r", "a", "k")
	begin(t, l, "r", "b", "k2")
	for range 3 { // at the limit, too
		again := begin(t, l, "r", "a", "k")
		requireReplay(t, first, again)
		require.EqualValues(t, 2, again.Turns.Open)
	}
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 2, Open: 2, Limit: 2})
	requireEntries(t, l, 3)
}

func turnOver(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 9, 1)
	for how, over := range map[string]func(){
		"ended":       func() { end(t, l, "r", "a", "") },
		"followed":    func() { begin(t, l, "r", "a", "") },
		"ended twice": func() { end(t, l, "r", "a", "ended twice"); end(t, l, "r", "a", "ended twice") },
	} {
		begin(t, l, "r", "a", how)
		over()
		before := usage(t, l, "r")
		_, err := l.BeginTurn(ctx, "r", "a", how)
		require.ErrorIs(t, err, ledger.ErrTurnOver, how)
		require.ErrorContains(t, err, how)
		require.Equal(t, before, usage(t, l, "r"), "a key that is over ends nothing")
	}
	openRun(t, l, "refused", 1, 1)
	begin(t, l, "refused", "", "k")
	_, err := l.BeginTurn(ctx, "refused", "", "")
	require.ErrorIs(t, err, ledger.ErrBudgetSpent)
	_, err = l.BeginTurn(ctx, "refused", "", "k")
	require.ErrorIs(t, err, ledger.ErrTurnOver)

	openRun(t, l, "closed", 1, 1)
	begin(t, l, "closed", "", "k")
	_, err = l.CloseRun(ctx, "closed")
	require.NoError(t, err)
	_, err = l.BeginTurn(ctx, "closed", "", "k")
	require.ErrorIs(t, err, ledger.ErrTurnOver)
	_, err = l.BeginTurn(ctx, "closed", "", "other")
	require.ErrorIs(t, err, ledger.ErrRunClosed)
}

func reusedKeys(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 5, 3)
	recorded := turn(t, l, "r", "a", "recorded")
	begun := begin(t, l, "r", "a", "begun")
	requireReused := func() {
		t.Helper()
		for _, c := range []struct {
			do             func(dimension, key string) error
			dimension, key string
		}{
			{func(d, k string) error { _, err := l.RecordTurn(ctx, "r", d, k); return err }, "b", "recorded"},
			{func(d, k string) error { _, err := l.RecordTurn(ctx, "r", d, k); return err }, "", "recorded"},
			{func(d, k string) error { _, err := l.RecordTurn(ctx, "r", d, k); return err }, "a", "begun"},
			{func(d, k string) error { _, err := l.RecordTurn(ctx, "r", d, k); return err }, "b", "begun"},
			{func(d, k string) error { _, err := l.BeginTurn(ctx, "r", d, k); return err }, "a", "recorded"},
			{func(d, k string) error { _, err := l.BeginTurn(ctx, "r", d, k); return err }, "", "recorded"},
			{func(d, k string) error { _, err := l.BeginTurn(ctx, "r", d, k); return err }, "b", "begun"},
			{func(d, k string) error { _, err := l.BeginTurn(ctx, "r", d, k); return err }, "", "begun"},
		} {
			err := c.do(c.dimension, c.key)
			require.ErrorIs(t, err, ledger.ErrKeyReused)
			require.ErrorContains(t, err, c.key)
			require.NotContains(t, err.Error(), "\n")
		}
	}
	requireReused()
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 2, Open: 1, Limit: 15})
	requireReplay(t, recorded, turn(t, l, "r", "a", "recorded"))
	requireReplay(t, begun, begin(t, l, "r", "a", "begun"))
	end(t, l, "r", "a", "")
	requireReused()
	_, err := l.CloseRun(ctx, "r")
	require.NoError(t, err)
	requireReused()
	requireReplay(t, recorded, turn(t, l, "r", "a", "recorded"))
}

func refusedBegin(t *testing.T, l ledger.Ledger) {
	for _, c := range []struct {
		run         string
		dimension   string
		turns, dims int64
		fill        []string // dimensions of turns recorded before
		want        ledger.SpentError
	}{
		{run: "turns", dimension: "a", turns: 1, dims: 2, fill: []string{"b"},
			want: ledger.SpentError{Run: "turns", Bound: "turns", Used: 2, Limit: 2}},
		{run: "turns, no dimension", dimension: "", turns: 2, dims: 1, fill: []string{"b"},
			want: ledger.SpentError{Run: "turns, no dimension", Bound: "turns", Used: 2, Limit: 2}},
		{run: "dimension-turns", dimension: "a", turns: 2, dims: 2, fill: []string{"a"},
			want: ledger.SpentError{Run: "dimension-turns", Dimension: "a", Bound: "dimension-turns", Used: 2, Limit: 2}},
	} {
		openRun(t, l, c.run, c.turns, c.dims)
		for _, d := range c.fill {
			turn(t, l, c.run, d, "")
		}
		open := begin(t, l, c.run, c.dimension, "k")
		_, err := l.BeginTurn(ctx, c.run, c.dimension, "next")
		requireSpent(t, err, c.want)
		u := usage(t, l, c.run)
		require.Zero(t, u.Open, c.run)
		require.Equal(t, open.Seq+1, u.LastSeq, "the end is an entry")
		var last ledger.Receipt
		require.NoError(t, l.Entries(ctx, u.LastSeq, func(r ledger.Receipt, _ []byte) error { last = r; return nil }))
		require.Equal(t, ledger.KindTurnEnded, last.Kind)
		require.Equal(t, open.Seq, last.Ends)
		require.Equal(t, c.dimension, last.Dimension)
		require.Equal(t, last.At, u.Turns.Ended)
		for range 2 {
			_, err := l.BeginTurn(ctx, c.run, c.dimension, "next")
			requireSpent(t, err, c.want)
		}
		require.Equal(t, u, usage(t, l, c.run), "there was nothing left to end")
	}

	// A new dimension is refused, which has no open turn: those of others go on.
	openRun(t, l, "dimensions", 4, 1)
	begin(t, l, "dimensions", "a", "")
	begin(t, l, "dimensions", "", "")
	before := usage(t, l, "dimensions")
	_, err := l.BeginTurn(ctx, "dimensions", "b", "")
	requireSpent(t, err, ledger.SpentError{Run: "dimensions", Dimension: "b", Bound: "dimensions", Used: 1, Limit: 1})
	require.Equal(t, before, usage(t, l, "dimensions"))
}

func refusedKey(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	begin(t, l, "r", "", "first")
	for range 2 {
		_, err := l.BeginTurn(ctx, "r", "", "k")
		require.ErrorIs(t, err, ledger.ErrBudgetSpent)
	}
	grant(t, l, "r", ledger.Grant{Turns: 2})
	require.False(t, turn(t, l, "r", "a", "k").Replayed, "neither its kind nor its dimension are bound")
}

func idleEnd(t *testing.T, l ledger.Ledger) {
	newest := openRun(t, l, "r", 5, 2)
	idle := func(dimension, key string) {
		t.Helper()
		r := end(t, l, "r", dimension, key)
		require.True(t, r.Replayed)
		require.Equal(t, newest.Entry, r.Entry, "the run's newest entry")
		require.Equal(t, newest.Hash, r.Hash)
		requireEntries(t, l, newest.Seq)
	}
	idle("", "")
	idle("a", "k")
	newest = turn(t, l, "r", "a", "recorded")
	idle("a", "")
	idle("a", "recorded")
	newest = begin(t, l, "r", "b", "begun")
	idle("a", "")
	idle("", "")
	idle("b", "recorded")
	idle("b", "never used")
	idle("a", "begun")
	require.EqualValues(t, 1, end(t, l, "r", "a", "").Turns.Open)
	newest = end(t, l, "r", "b", "begun")
	idle("b", "begun")
	idle("b", "")
	begin(t, l, "r", "b", "again")
	var err error
	newest, err = l.CloseRun(ctx, "r")
	require.NoError(t, err)
	idle("b", "again")
	idle("b", "")
}

func endByKey(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 5, 1)
	begin(t, l, "r", "a", "one")
	two := begin(t, l, "r", "a", "two")
	require.True(t, end(t, l, "r", "a", "one").Replayed, "another loop's turn goes on")
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 2, Open: 1, Limit: 5})
	r := end(t, l, "r", "a", "two")
	require.Equal(t, two.Seq, r.Ends)
	require.Empty(t, r.Key)
	three := begin(t, l, "r", "a", "")
	require.True(t, end(t, l, "r", "a", "two").Replayed)
	require.Equal(t, three.Seq, end(t, l, "r", "a", "").Ends, "one that was begun without a key")
}

func recordBesideOpen(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 2, 2)
	recorded := turn(t, l, "r", "a", "recorded")
	begin(t, l, "r", "a", "begun")
	before := usage(t, l, "r")
	for _, key := range []string{"", "k"} { // the dimension's bound is reached as well
		_, err := l.RecordTurn(ctx, "r", "a", key)
		require.ErrorIs(t, err, ledger.ErrTurnOpen)
		require.ErrorContains(t, err, "capgate turn end")
		require.NotErrorIs(t, err, ledger.ErrBudgetSpent)
	}
	require.Equal(t, before, usage(t, l, "r"))
	requireReplay(t, recorded, turn(t, l, "r", "a", "recorded"))
	turn(t, l, "r", "b", "")
	begin(t, l, "r", "", "")
	_, err := l.RecordTurn(ctx, "r", "", "")
	require.ErrorIs(t, err, ledger.ErrTurnOpen, "of turns without a dimension, and before the run's limit")
	end(t, l, "r", "a", "")
	_, err = l.RecordTurn(ctx, "r", "a", "k")
	require.ErrorIs(t, err, ledger.ErrBudgetSpent)
}

func closeWhileOpen(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 2, 2)
	begin(t, l, "r", "a", "k")
	begin(t, l, "r", "", "")
	ended := usage(t, l, "r").Turns.Ended
	closed, err := l.CloseRun(ctx, "r")
	require.NoError(t, err)
	require.Zero(t, closed.Open)
	require.Zero(t, closed.Turns.Open)
	require.Equal(t, ended, closed.Turns.Ended, "closing is no end of a turn")
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 2, Limit: 4, Closed: true})
	b, err := l.Budget(ctx, "r", nil)
	require.NoError(t, err)
	require.True(t, b.Spent())
	for _, dimension := range []string{"a", "", "b"} {
		_, err = l.BeginTurn(ctx, "r", dimension, "")
		require.ErrorIs(t, err, ledger.ErrRunClosed)
		_, err = l.RecordTurn(ctx, "r", dimension, "")
		require.ErrorIs(t, err, ledger.ErrRunClosed, "a closed run has no open turn")
	}
	requireReplay(t, closed, end(t, l, "r", "a", "k"))
	require.Equal(t, map[string]int64{"a": 1}, usage(t, l, "r").Dimensions)
}

func orderOfChecks(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	turn(t, l, "r", "", "recorded")
	lost := ledger.Anchor{Ledger: strings.Repeat("ab", 32), Seq: 1, Hash: strings.Repeat("ab", 32)}
	methods := map[string]func(run, dimension, key string, anchors ...ledger.Anchor) error{
		"begin": func(run, dimension, key string, anchors ...ledger.Anchor) error {
			_, err := l.BeginTurn(ctx, run, dimension, key, anchors...)
			return err
		},
		"record": func(run, dimension, key string, anchors ...ledger.Anchor) error {
			_, err := l.RecordTurn(ctx, run, dimension, key, anchors...)
			return err
		},
	}
	for name, do := range methods {
		require.ErrorIs(t, do("unknown", "b", "recorded", lost), ledger.ErrAnchorLost, name)
		require.ErrorIs(t, do("unknown", "b", "recorded"), ledger.ErrRunUnknown, name)
		require.ErrorIs(t, do("r", "b", "recorded", lost), ledger.ErrAnchorLost, name)
		require.ErrorIs(t, do("r", "b", "recorded"), ledger.ErrKeyReused, name)
		require.ErrorIs(t, do("r", "b", "k"), ledger.ErrBudgetSpent, name)
	}
	_, err := l.CloseRun(ctx, "r")
	require.NoError(t, err)
	for name, do := range methods {
		require.ErrorIs(t, do("r", "b", "recorded", lost), ledger.ErrAnchorLost, name)
		require.ErrorIs(t, do("r", "b", "recorded"), ledger.ErrKeyReused, name)
		require.ErrorIs(t, do("r", "b", "k"), ledger.ErrRunClosed, name)
	}
}

func anchoredBegins(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	held, err := l.Head(ctx)
	require.NoError(t, err)
	_, err = l.BeginTurn(ctx, "r", "a", "k", held)
	require.NoError(t, err)
	before := usage(t, l, "r")
	lost := held
	lost.Seq = 99
	for _, key := range []string{"", "new", "k"} {
		_, err := l.BeginTurn(ctx, "r", "a", key, held, lost)
		require.ErrorIs(t, err, ledger.ErrAnchorLost)
	}
	_, err = l.BeginTurn(ctx, "r", "a", "", ledger.Anchor{Ledger: held.Ledger, Seq: 1})
	require.ErrorIs(t, err, ledger.ErrInvalid)
	require.Equal(t, before, usage(t, l, "r"), "it ends nothing either")
}

func dimensionGrants(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 2, 2)
	turn(t, l, "r", "a", "")
	_, err := l.Grant(ctx, "r", ledger.Grant{Turns: 1, Dimension: "b"}, "agreed")
	require.ErrorIs(t, err, ledger.ErrInvalid, "it is not in use")
	require.ErrorContains(t, err, `"b"`)
	g := grant(t, l, "r", ledger.Grant{Turns: 3, Dimension: "a"})
	require.Equal(t, "a", g.Dimension)
	require.EqualValues(t, 3, g.Entry.Turns)
	require.Zero(t, g.Dimensions)
	require.EqualValues(t, 7, g.Limit)
	for range 4 {
		begin(t, l, "r", "a", "")
	}
	_, err = l.BeginTurn(ctx, "r", "a", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "a", Bound: "dimension-turns", Used: 5, Limit: 5})
	turn(t, l, "r", "b", "")
	turn(t, l, "r", "b", "")
	_, err = l.RecordTurn(ctx, "r", "b", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Bound: "turns", Used: 7, Limit: 7})
	grant(t, l, "r", ledger.Grant{Turns: 2})
	_, err = l.RecordTurn(ctx, "r", "b", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "b", Bound: "dimension-turns", Used: 2, Limit: 2})
	grant(t, l, "r", ledger.Grant{Turns: 1, Dimension: "a"})
	turn(t, l, "r", "a", "")
	u := usage(t, l, "r")
	require.EqualValues(t, 10, u.Limit)
	require.EqualValues(t, 6, u.Granted)
	require.Equal(t, map[string]int64{"a": 4}, u.DimensionGrants)
	require.Equal(t, map[string]int64{"a": 6, "b": 2}, u.Dimensions)
}

func moreDimensions(t *testing.T, l ledger.Ledger) {
	first := openRun(t, l, "r", 3, 1)
	turn(t, l, "r", "a", "")
	_, err := l.BeginTurn(ctx, "r", "b", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "b", Bound: "dimensions", Used: 1, Limit: 1})
	g := grant(t, l, "r", ledger.Grant{Dimensions: 2})
	require.EqualValues(t, 2, g.Dimensions)
	require.Zero(t, g.Entry.Turns)
	require.Empty(t, g.Dimension)
	require.EqualValues(t, 9, g.Limit)
	for range 3 {
		turn(t, l, "r", "b", "")
	}
	_, err = l.RecordTurn(ctx, "r", "b", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "b", Bound: "dimension-turns", Used: 3, Limit: 3})
	begin(t, l, "r", "c", "")
	_, err = l.BeginTurn(ctx, "r", "d", "")
	requireSpent(t, err, ledger.SpentError{Run: "r", Dimension: "d", Bound: "dimensions", Used: 3, Limit: 3})
	u := usage(t, l, "r")
	require.EqualValues(t, 3, u.MaxDimensions)
	require.Zero(t, u.Granted)
	require.Equal(t, u.Limit, u.MaxConvTurns*u.MaxDimensions+u.Granted)
	requireReplay(t, first, openRun(t, l, "r", 3, 1))
	_, err = l.OpenRun(ctx, "r", 3, 3)
	require.ErrorIs(t, err, ledger.ErrRunExists, "limits are those of the opening")
}

func badGrants(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1000, 2)
	turn(t, l, "r", "a", "")
	before := usage(t, l, "r")
	const most = 1<<63 - 1
	for _, g := range []ledger.Grant{
		{}, {Dimension: "a"}, {Turns: 1, Dimensions: 1}, {Turns: 1, Dimensions: -1}, {Turns: -1, Dimensions: 1}, {Dimensions: 1, Dimension: "a"},
		{Turns: -1}, {Dimensions: -1}, {Turns: -1, Dimension: "a"}, {Turns: most}, {Dimensions: most}, {Turns: most, Dimension: "a"},
		{Turns: ledger.MaxLimit}, {Dimensions: ledger.MaxLimit}, {Dimensions: ledger.MaxLimit / 1000}, {Turns: ledger.MaxLimit - 1999},
		{Turns: ledger.MaxLimit - 1999, Dimension: "a"}, {Turns: 1, Dimension: "b"},
	} {
		_, err := l.Grant(ctx, "r", g, "agreed")
		require.ErrorIs(t, err, ledger.ErrInvalid, "%+v", g)
		require.NotContains(t, err.Error(), "\n")
	}
	require.Equal(t, before, usage(t, l, "r"))
	grant(t, l, "r", ledger.Grant{Dimensions: ledger.MaxLimit/1000 - 2})
	require.EqualValues(t, ledger.MaxLimit, usage(t, l, "r").Limit)
	turn(t, l, "r", "b", "")
}

func grantAtTheCap(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 1, 1)
	begin(t, l, "r", "a", "k")
	_, err := l.BeginTurn(ctx, "r", "a", "k2")
	require.ErrorIs(t, err, ledger.ErrBudgetSpent)
	for range 2 {
		b, err := l.Budget(ctx, "r", nil)
		require.NoError(t, err)
		require.True(t, b.Spent())
		require.False(t, b.Closed)
		grant(t, l, "r", ledger.Grant{Turns: 1, Dimension: "a"})
		b, err = l.Budget(ctx, "r", nil)
		require.NoError(t, err)
		require.False(t, b.Spent())
		turn(t, l, "r", "a", "")
	}
	open := grant(t, l, "r", ledger.Grant{Dimensions: 1})
	require.Zero(t, open.Open)
	begin(t, l, "r", "b", "")
	g := grant(t, l, "r", ledger.Grant{Turns: 1})
	require.EqualValues(t, 1, g.Open, "a grant leaves open turns open")
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 4, Open: 1, Limit: 5})
}

func times(t *testing.T, l ledger.Ledger) {
	opened := openRun(t, l, "r", 9, 2)
	var want ledger.Turns
	check := func(r ledger.Receipt) {
		t.Helper()
		require.Equal(t, want, r.Turns)
		u := usage(t, l, "r")
		require.Equal(t, want, u.Turns)
		require.Equal(t, u.Budget.Open, u.Turns.Open)
		b, err := l.Budget(ctx, "r", nil)
		require.NoError(t, err)
		require.Equal(t, u.Budget, b)
		if !r.Replayed {
			require.Equal(t, r.At, b.LastAt)
		}
		require.Equal(t, time.UTC, b.LastAt.Location())
		time.Sleep(time.Millisecond)
	}
	check(opened)
	first := begin(t, l, "r", "a", "k")
	want = ledger.Turns{Open: 1, Newest: first.At}
	check(first)
	check(begin(t, l, "r", "a", "k"))
	recorded := turn(t, l, "r", "b", "k2")
	want.Newest, want.Before = recorded.At, first.At
	check(recorded)
	check(grant(t, l, "r", ledger.Grant{Turns: 1}))
	next := begin(t, l, "r", "a", "")
	want.Newest, want.Before, want.Ended = next.At, recorded.At, next.At
	check(next)
	check(turn(t, l, "r", "b", "k2"))
	over := end(t, l, "r", "a", "")
	want.Open, want.Ended = 0, over.At
	check(over)
	check(end(t, l, "r", "a", ""))
	last := begin(t, l, "r", "", "")
	want.Open, want.Newest, want.Before = 1, last.At, next.At
	check(last)
	closed, err := l.CloseRun(ctx, "r")
	require.NoError(t, err)
	want.Open = 0
	check(closed)
	closed, err = l.CloseRun(ctx, "r")
	require.NoError(t, err)
	check(closed)
	runs, err := l.Runs(ctx)
	require.NoError(t, err)
	require.Equal(t, want, runs[0].Turns)
}

func loopRace(t *testing.T, l ledger.Ledger) {
	const limit, loops = 200, 8
	openRun(t, l, "r", limit/loops, loops)
	begun := make([]int, loops)
	var wg sync.WaitGroup
	for n := range loops {
		wg.Go(func() {
			d := fmt.Sprint(n)
			for i := 0; ; i++ {
				key := fmt.Sprint(d, "-", i)
				_, err := l.BeginTurn(ctx, "r", d, key)
				if errors.Is(err, ledger.ErrBudgetSpent) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				begun[n]++
				if i%3 == 0 {
					if r, err := l.EndTurn(ctx, "r", d, key); err != nil || r.Replayed {
						t.Error("not ended", err)
					}
				}
			}
		})
	}
	wg.Wait()
	for n, b := range begun {
		require.Equal(t, limit/loops, b, "loop %d", n)
	}
	requireBudget(t, l, ledger.Budget{Run: "r", Used: limit, Limit: limit})
}

func beginRace(t *testing.T, l ledger.Ledger) {
	openRun(t, l, "r", 20, 1)
	var mu sync.Mutex
	seqs := map[uint64]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				r, err := l.BeginTurn(ctx, "r", "d", "k")
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seqs[r.Seq]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, map[uint64]int{2: 40}, seqs)
	requireBudget(t, l, ledger.Budget{Run: "r", Used: 1, Open: 1, Limit: 20})
}
