package ledger

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// forge replaces all entries of a ledger by others, with hashes and a head to match.
func forge(t *testing.T, l *File, entries []Entry) {
	t.Helper()
	head, err := l.Head(context.Background())
	require.NoError(t, err)
	id, ok := parseDigest(head.Ledger)
	require.True(t, ok)
	at := link{hash: id}
	edit(t, l.path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketEntries))
		for seq := uint64(1); seq <= head.Seq; seq++ {
			require.NoError(t, b.Delete(encodeUint(seq)))
		}
		for _, e := range entries {
			stored, err := encodeEntry(e)
			require.NoError(t, err)
			at = link{seq: at.seq + 1, hash: chain(at.hash, stored)}
			require.NoError(t, b.Put(encodeUint(at.seq), append(bytes.Clone(at.hash[:]), stored...)))
		}
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaHead), seal(bucketMeta, []byte(metaHead), encodeLink(at)))
	})
}

// Whoever recomputes the hashes cannot be told by them. The rules still hold for every entry.
func TestAnEntryThatBreaksTheRulesIsFoundBehindGoodHashes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	build := func(t *testing.T) (*File, []Entry) {
		l := NewFile(t.TempDir()+"/ledger.db", Options{})
		mustOpen(t, l, "r", 2, 2)                                         // 1
		mustTurn(t, l, "r", "a", "recorded")                              // 2
		mustBegin(t, l, "r", "a", "begun")                                // 3
		mustBegin(t, l, "r", "", "free")                                  // 4
		_, err := l.Grant(ctx, "r", Grant{Turns: 1, Dimension: "a"}, "x") // 5
		require.NoError(t, err)
		mustBegin(t, l, "r", "a", "next")    // 6, ends 3
		_, err = l.EndTurn(ctx, "r", "", "") // 7, ends 4
		require.NoError(t, err)
		_, err = l.Grant(ctx, "r", Grant{Dimensions: 1}, "x") // 8
		require.NoError(t, err)
		mustTurn(t, l, "r", "b", "")  // 9
		mustTurn(t, l, "r", "c", "")  // 10
		_, err = l.CloseRun(ctx, "r") // 11
		require.NoError(t, err)
		var entries []Entry
		require.NoError(t, l.Entries(ctx, 1, func(r Receipt, _ []byte) error {
			entries = append(entries, r.Entry)
			return nil
		}))
		require.Len(t, entries, 11)
		return l, entries
	}
	l, entries := build(t)
	forge(t, l, entries)
	require.Empty(t, problems(t, l), "the forger's work is sound where nothing was changed")

	at := func(seq int, change func(e *Entry)) func([]Entry) []Entry {
		return func(es []Entry) []Entry {
			change(&es[seq-1])
			return es
		}
	}
	without := func(seq int) func([]Entry) []Entry {
		return func(es []Entry) []Entry {
			es = slices.Delete(es, seq-1, seq)
			for i := range es {
				es[i].Seq = uint64(i + 1)
			}
			return es
		}
	}
	for name, c := range map[string]struct {
		change func([]Entry) []Entry
		says   string
	}{
		"another count of used":         {at(4, func(e *Entry) { e.Used-- }), "entry 4 says 2 of 4 turns, 2 open, its run has 3 of 4, 2 open"},
		"another count of open":         {at(6, func(e *Entry) { e.Open++ }), "entry 6 says 4 of 5 turns, 3 open, its run has 4 of 5, 2 open"},
		"another limit":                 {at(9, func(e *Entry) { e.Limit++ }), "entry 9 says 5 of 8 turns"},
		"open after closing":            {at(11, func(e *Entry) { e.Open = 1 }), "entry 11 says 6 of 7 turns, 1 open, its run has 6 of 7, 0 open"},
		"a begin that ends nothing":     {at(6, func(e *Entry) { e.Ends = 0 }), "entry 6 ends the turn of entry 0, the open one is of entry 3"},
		"a begin that ends another":     {at(6, func(e *Entry) { e.Ends = 4 }), "entry 6 ends the turn of entry 4, the open one is of entry 3"},
		"an end of another":             {at(7, func(e *Entry) { e.Ends = 3 }), "entry 7 ends the turn of entry 3, the open one is of entry 4"},
		"an end in another dimension":   {at(7, func(e *Entry) { e.Dimension = "b" }), "entry 7 ends a turn, and none is open"},
		"an end without a begin":        {without(4), "entry 6 ends a turn, and none is open"},
		"a record beside an open one":   {at(6, func(e *Entry) { e.Kind, e.Ends = KindTurn, 0 }), "entry 6 records a turn beside the open one of entry 3"},
		"a record that ends":            {at(10, func(e *Entry) { e.Ends = 6 }), "entry 10 holds what no turn entry has"},
		"a grant with a key":            {at(8, func(e *Entry) { e.Key = "k" }), "entry 8 holds what no grant entry has"},
		"an end with a key":             {at(7, func(e *Entry) { e.Key = "free" }), "entry 7 holds what no turn-ended entry has"},
		"a close with turns":            {at(11, func(e *Entry) { e.Turns = 5 }), "entry 11 holds what no run-closed entry has"},
		"a turn with a reason":          {at(9, func(e *Entry) { e.Reason = "x" }), "entry 9 holds what no turn entry has"},
		"an opening in a dimension":     {at(1, func(e *Entry) { e.Dimension = "a" }), "entry 1 holds what no run-opened entry has"},
		"a grant of both":               {at(8, func(e *Entry) { e.Turns = 1 }), "entry 8: invalid argument: a grant is of turns or of dimensions"},
		"a grant of nothing":            {at(8, func(e *Entry) { e.Dimensions = 0 }), "entry 8: invalid argument: a grant is of 1 to"},
		"a grant that takes away":       {at(5, func(e *Entry) { e.Turns = -1 }), "entry 5: invalid argument: a grant is of 1 to"},
		"a grant to an unused one":      {at(5, func(e *Entry) { e.Dimension = "z" }), `entry 5 grants turns to dimension "z", which was not in use`},
		"a dimension over its bound":    {at(5, func(e *Entry) { e.Dimension = "" }), "entry 6 takes its dimension over 2 turns"},
		"a dimension over its bound, 2": {at(9, func(e *Entry) { e.Dimension = "a" }), "entry 9 takes its dimension over 3 turns"},
		"one dimension too many":        {at(8, func(e *Entry) { e.Turns, e.Dimensions = 2, 0 }), "entry 10 takes its run to 3 of 2 dimensions"},
		"over the limit":                {at(1, func(e *Entry) { e.MaxConvTurns = 1 }), "entry 11"},
		"a run opened again":            {at(9, func(e *Entry) { e.Kind = KindRunOpened }), `entry 9 opens run "r" again`},
		"a run without limits":          {at(1, func(e *Entry) { e.MaxDimensions = 0 }), "entry 1: invalid argument: max_dimensions is 0"},
		"another run":                   {at(4, func(e *Entry) { e.Run = "q" }), `entry 4 is of run "q", which was not opened`},
		"a turn after closing": {func(es []Entry) []Entry {
			return append(es, Entry{Seq: 12, At: es[10].At, Kind: KindTurn, Run: "r", Used: 7, Limit: 7})
		}, `entry 12 is of run "r", which was closed before`},
		"a key of another turn":       {at(9, func(e *Entry) { e.Key = "recorded" }), "the key of entry 9 does not lead back to it"},
		"a key that was another's":    {at(3, func(e *Entry) { e.Key = "other" }), "the key of entry 3 does not lead back to it"},
		"a key less":                  {at(3, func(e *Entry) { e.Key = "" }), "4 keys are kept, the entries came with 3"},
		"a turn of another dimension": {at(9, func(e *Entry) { e.Dimension = "d" }), `dimension "b" of run "r" is kept as 1 turns, 0 granted, entry 0 open, its entries make 0, 0 and 0`},
		"a begin of no dimension":     {at(4, func(e *Entry) { e.Dimension = "z" }), `entry 7 ends a turn, and none is open`},
		"a record for a begin":        {at(4, func(e *Entry) { e.Kind = KindTurn }), "entry 4 says 3 of 4 turns, 2 open, its run has 3 of 4, 1 open"},
		"a begin for a record":        {at(9, func(e *Entry) { e.Kind = KindTurnBegun }), "entry 9 says 5 of 7 turns, 1 open, its run has 5 of 7, 2 open"},
		"another time":                {at(9, func(e *Entry) { e.At = e.At.Add(1) }), `run "r" is kept as`},
		"another opening":             {at(1, func(e *Entry) { e.MaxConvTurns, e.MaxDimensions = 4, 1 }), "entry 8 says"},
	} {
		t.Run(name, func(t *testing.T) {
			l, entries := build(t)
			forge(t, l, c.change(entries))
			require.Contains(t, strings.Join(problems(t, l), "\n"), c.says)
		})
	}
}
