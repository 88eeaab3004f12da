package ledger

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

func mustBegin(t *testing.T, l *File, run, dimension, key string) Receipt {
	t.Helper()
	r, err := l.BeginTurn(context.Background(), run, dimension, key)
	require.NoError(t, err)
	return r
}

// A first operation is flushed by its commit; only what rests on an older entry needs a flush of its own.
func TestAReplayIsFlushedAndAFirstOperationIsNotFlushedTwice(t *testing.T) {
	l := newLedger(t)
	ctx := context.Background()
	flushes := 0
	var fails error
	l.sync = func(db *bbolt.DB) error {
		flushes++
		return errors.Join(fails, db.Sync())
	}
	open := func() (Receipt, error) { return l.OpenRun(ctx, "r", 2, 2) }
	record := func() (Receipt, error) { return l.RecordTurn(ctx, "r", "a", "recorded") }
	begin := func() (Receipt, error) { return l.BeginTurn(ctx, "r", "b", "begun") }
	end := func() (Receipt, error) { return l.EndTurn(ctx, "r", "b", "begun") }
	close := func() (Receipt, error) { return l.CloseRun(ctx, "r") }
	for _, c := range []struct {
		name string
		do   func() (Receipt, error)
	}{{"open", open}, {"record", record}, {"begin", begin}, {"end", end}, {"close", close}} {
		flushes = 0
		r, err := c.do()
		require.NoError(t, err)
		require.False(t, r.Replayed, c.name)
		require.Zero(t, flushes, c.name)
		if c.name == "close" {
			c.do = func() (Receipt, error) { return l.EndTurn(ctx, "r", "", "") } // of a closed run
		}
		for _, do := range []func() (Receipt, error){c.do, record} {
			if c.name == "open" {
				do = open
			}
			flushes = 0
			r, err = do()
			require.NoError(t, err)
			require.True(t, r.Replayed, c.name)
			require.Equal(t, 1, flushes, c.name)
			fails = errors.New("the disk is gone")
			r, err = do()
			require.ErrorIs(t, err, ErrNotRecorded, c.name)
			require.Zero(t, r, c.name)
			fails = nil
		}
	}
	flushes = 0
	mustBudget(t, l, "r")
	_, err := l.BeginTurn(ctx, "r", "a", "recorded")
	require.ErrorIs(t, err, ErrKeyReused)
	_, err = l.BeginTurn(ctx, "r", "a", "")
	require.ErrorIs(t, err, ErrRunClosed)
	require.Zero(t, flushes, "what acknowledges nothing")
}

func TestARefusedBeginThatEndsNothingLeavesTheFileAsItWas(t *testing.T) {
	l := newLedger(t)
	ctx := context.Background()
	mustOpen(t, l, "r", 1, 1)
	mustBegin(t, l, "r", "", "k")
	read := func() string {
		content, err := os.ReadFile(l.path)
		require.NoError(t, err)
		return string(content)
	}
	before := read()
	_, err := l.RecordTurn(ctx, "r", "", "other")
	require.ErrorIs(t, err, ErrTurnOpen)
	require.True(t, mustBegin(t, l, "r", "", "k").Replayed)
	require.Equal(t, before, read())
	_, err = l.BeginTurn(ctx, "r", "", "")
	require.ErrorIs(t, err, ErrBudgetSpent)
	before = read()
	for _, key := range []string{"", "k", "new"} {
		_, err = l.BeginTurn(ctx, "r", "", key)
		require.Error(t, err)
		_, err = l.EndTurn(ctx, "r", "", key)
		require.NoError(t, err)
	}
	require.Equal(t, before, read())
}

func TestErrorsOfTurnsSayWhatToDoNext(t *testing.T) {
	l := newLedger(t)
	ctx := context.Background()
	mustOpen(t, l, "r", 2, 2)
	mustTurn(t, l, "r", "", "recorded")
	mustBegin(t, l, "r", "a", "over")
	mustBegin(t, l, "r", "a", "open")
	begin := func(dimension, key string) error { _, err := l.BeginTurn(ctx, "r", dimension, key); return err }
	record := func(dimension, key string) error { _, err := l.RecordTurn(ctx, "r", dimension, key); return err }
	grant := func(g Grant) error { _, err := l.Grant(ctx, "r", g, "more"); return err }
	for _, c := range []struct {
		err  error
		want error
		says string
	}{
		{begin("a", "recorded"), ErrKeyReused,
			`key used before: key "recorded" of run "r" came with a recorded turn without a dimension, not with the begin of a turn of dimension "a"; use another key`},
		{record("", "over"), ErrKeyReused,
			`key used before: key "over" of run "r" came with the begin of a turn of dimension "a", not with a recorded turn without a dimension; use another key`},
		{begin("a", "over"), ErrTurnOver,
			`turn over: the turn that key "over" began in run "r" was ended; begin the next one with another key`},
		{record("a", ""), ErrTurnOpen,
			`turn open: the open turn of dimension "a" of run "r" is counted already; end it with ` + "`capgate turn end`"},
		{grant(Grant{Turns: 1, Dimension: "b"}), ErrInvalid,
			`invalid argument: run "r" has no dimension "b" yet; grant to one that is in use, or grant a dimension more`},
		{grant(Grant{Turns: 1, Dimensions: 1}), ErrInvalid,
			`invalid argument: a grant is of turns or of dimensions, not of both; make two grants`},
		{grant(Grant{}), ErrInvalid, `invalid argument: a grant is of 1 to 1000000000000 turns, not 0`},
		{grant(Grant{Dimensions: MaxLimit}), ErrInvalid,
			`invalid argument: 1000000000000 more dimensions of 2 turns would raise the limit of run "r" over 1000000000000; grant fewer`},
		{grant(Grant{Turns: MaxLimit}), ErrInvalid,
			`invalid argument: 1000000000000 more turns would raise the limit of run "r" over 1000000000000; grant fewer`},
	} {
		require.ErrorIs(t, c.err, c.want)
		_, text, found := strings.Cut(c.err.Error(), " in ledger "+l.path+": ")
		require.True(t, found, c.err)
		require.Equal(t, c.says, text)
	}
}

func TestAnOpenTurnThatTheRunDoesNotKnowOfIsDamage(t *testing.T) {
	t.Parallel()
	l := NewFile(t.TempDir()+"/ledger.db", Options{})
	mustOpen(t, l, "r", 4, 2)
	mustTurn(t, l, "r", "a", "")
	key := runKey("r", "a")
	edit(t, l.path, func(tx *bbolt.Tx) error {
		d := dimensionState{turns: 1, open: 2}
		return tx.Bucket([]byte(bucketDimensions)).Put(key, seal(bucketDimensions, key, d.encode()))
	})
	ctx := context.Background()
	_, err := l.BeginTurn(ctx, "r", "a", "")
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = l.RecordTurn(ctx, "r", "a", "")
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = l.Usage(ctx, "r")
	require.ErrorIs(t, err, ErrCorrupt)
	require.NotEmpty(t, problems(t, l))
}
