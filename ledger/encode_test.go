package ledger

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sampleState() runState {
	return runState{
		used: 7, open: 2, limit: 15, granted: 3, maxConvTurns: 4, maxDimensions: 3, grantedDimensions: 1, dimensions: 2,
		openedSeq: 5, openedAt: 1_700_000_000_000_000_001, lastSeq: 90, lastAt: 1_700_000_000_000_000_002,
		newestAt: 1_700_000_000_000_000_003, beforeAt: 1_700_000_000_000_000_004, endedAt: 1_700_000_000_000_000_005,
	}
}

func TestARunStateSurvivesItsEncoding(t *testing.T) {
	s := sampleState()
	got, err := decodeRunState(s.encode())
	require.NoError(t, err)
	require.Equal(t, s, got)
	require.Len(t, s.encode(), 122, "as the package comment says")
}

func TestAMangledRunStateIsRefused(t *testing.T) {
	good := sampleState().encode()
	for n := range good {
		_, err := decodeRunState(good[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	newer := append([]byte(nil), good...)
	newer[0]++
	_, err := decodeRunState(newer)
	require.ErrorIs(t, err, ErrNewerFormat)
	sealed := seal(bucketRuns, []byte("r"), good)
	for i := range sealed {
		for bit := range 8 {
			bad := append([]byte(nil), sealed...)
			bad[i] ^= 1 << bit
			_, err := unseal(bucketRuns, []byte("r"), bad)
			require.ErrorIs(t, err, ErrCorrupt)
		}
	}
	_, err = unseal(bucketRuns, []byte("s"), sealed)
	require.ErrorIs(t, err, ErrCorrupt, "a state is good for its own run only")
	_, err = unseal(bucketKeys, []byte("r"), sealed)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestNumbersThatContradictEachOtherAreRefused(t *testing.T) {
	for name, change := range map[string]func(*runState){
		"more used than allowed":     func(s *runState) { s.used = 16 },
		"negative":                   func(s *runState) { s.used = -1 },
		"a limit out of nowhere":     func(s *runState) { s.limit = 16 },
		"no turns":                   func(s *runState) { s.maxConvTurns = 0 },
		"a product that overflows":   func(s *runState) { s.maxConvTurns, s.maxDimensions = 1<<33, 1<<33; s.limit = 3 },
		"more dimensions than turns": func(s *runState) { s.used, s.open, s.beforeAt = 1, 1, 0 },
		"too many dimensions":        func(s *runState) { s.dimensions = 4 },
		"newest before first":        func(s *runState) { s.lastSeq = 4 },
		"never opened":               func(s *runState) { s.openedSeq = 0 },
		"granted beyond every limit": func(s *runState) { s.granted = math.MaxInt64; s.limit = math.MinInt64 + 11 },
		"a limit beyond every limit": func(s *runState) { s.granted = MaxLimit; s.limit = MaxLimit + 12 },
		"all dimensions granted":     func(s *runState) { s.grantedDimensions = 3 },
		"a negative grant":           func(s *runState) { s.grantedDimensions = -1 },
		"negatively open":            func(s *runState) { s.open = -1 },
		"more open than used":        func(s *runState) { s.used, s.open, s.dimensions, s.beforeAt = 1, 2, 1, 0 },
		"more open than dimensions":  func(s *runState) { s.open = 4 },
		"open and closed":            func(s *runState) { s.closed = true },
		"a turn at no time":          func(s *runState) { s.newestAt = 0 },
		"one turn at two times":      func(s *runState) { s.used, s.open, s.dimensions = 1, 1, 1 },
		"two turns at one time":      func(s *runState) { s.beforeAt = 0 },
		"an end without a turn":      func(s *runState) { s.used, s.open, s.dimensions, s.newestAt, s.beforeAt = 0, 0, 0, 0, 0 },
		"before every time":          func(s *runState) { s.endedAt = -1 },
	} {
		s := sampleState()
		change(&s)
		_, err := decodeRunState(s.encode())
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

func sampleEntry() Entry {
	return Entry{
		Seq: 12, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Kind: KindTurn, Run: "storm-42", Dimension: "cost", Key: "k",
		Used: 3, Open: 1, Limit: 8,
	}
}

func TestStoredBytesAreTheCompactJSONOfAnEntry(t *testing.T) {
	stored, err := encodeEntry(sampleEntry())
	require.NoError(t, err)
	require.Equal(t, `{"seq":12,"at":"2026-01-02T03:04:05.000000006Z","kind":"turn","run":"storm-42","dimension":"cost","key":"k","used":3,"open":1,"limit":8}`, string(stored))
	got, err := decodeEntry(stored)
	require.NoError(t, err)
	require.Equal(t, sampleEntry(), got)
}

func TestAnEntryMatchesItsOwnFieldsOnly(t *testing.T) {
	for _, run := range []string{"storm-42", "a b", "é", `quo"te`, `back\slash`, "<&>", "x", strings.Repeat("y", MaxIDBytes)} {
		e := sampleEntry()
		e.Run = run
		e.Dimension = `","run":"other","used":9,"open":9,"limit":9}`
		stored, err := encodeEntry(e)
		require.NoError(t, err)
		require.True(t, matches(stored, 12, run, 3, 1, 8), run)
		require.False(t, matches(stored, 13, run, 3, 1, 8), run)
		require.False(t, matches(stored, 1, run, 3, 1, 8), run)
		require.False(t, matches(stored, 12, run+"x", 3, 1, 8), run)
		require.False(t, matches(stored, 12, "other", 3, 1, 8), run)
		require.False(t, matches(stored, 12, run[:len(run)-1], 3, 1, 8), run)
		require.False(t, matches(stored, 12, run, 2, 1, 8), run)
		require.False(t, matches(stored, 12, run, 3, 1, 9), run)
		require.False(t, matches(stored, 12, run, 3, 0, 8), run)
		require.False(t, matches(stored, 12, run, 3, 2, 8), run)
		require.False(t, matches(stored, 12, run, 9, 9, 9), run)
	}
}

// The happy path of Budget must not need a JSON decoder.
func TestAnOrdinaryEntryIsMatchedAsText(t *testing.T) {
	stored, err := encodeEntry(sampleEntry())
	require.NoError(t, err)
	require.True(t, matchesText(stored, 12, "storm-42", 3, 1, 8))
}

func FuzzDecodeEntry(f *testing.F) {
	stored, err := encodeEntry(sampleEntry())
	require.NoError(f, err)
	f.Add(append(make([]byte, 32), stored...))
	f.Add(seal(bucketRuns, []byte("r"), sampleState().encode()))
	f.Fuzz(func(t *testing.T, value []byte) {
		_, _ = decodeLink(value)
		_, _ = decodeUint(value)
		_, _, _ = splitRunKey(value)
		if d, err := decodeDimensionState(value); err == nil {
			require.Equal(t, value, d.encode())
		}
		if s, err := decodeRunState(value); err == nil {
			require.True(t, s.plausible())
			require.Equal(t, value, s.encode())
		}
		_, stored, err := splitEntry(value)
		if err != nil {
			return
		}
		e, err := decodeEntry(stored)
		if err != nil {
			require.False(t, matches(stored, e.Seq, e.Run, e.Used, e.Open, e.Limit))
			return
		}
		if matchesText(stored, e.Seq, e.Run, e.Used, e.Open, e.Limit) {
			require.True(t, matches(stored, e.Seq, e.Run, e.Used, e.Open, e.Limit))
		}
		again, err := encodeEntry(e)
		if err == nil {
			back, err := decodeEntry(again)
			require.NoError(t, err)
			require.Equal(t, e.Seq, back.Seq)
			require.True(t, e.At.Equal(back.At))
		}
	})
}

func TestStoredBytesAreThoseOfTheJSONEncoder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(15, 16))
	texts := []string{"", "r", "storm-42", "a b", `quo"te`, `back\slash`, "<tag>", "&", "é", "漢字", "\u2028", "\x7f", "\x01", "\xff", "\ufffd", filler, "~ !#'()*+,-./:;=?@[]^_`{|}"}
	numbers := []int64{0, 1, -1, 7, 1000, MaxLimit, 1<<63 - 1, -1 << 63}
	text := func() string { return texts[rng.IntN(len(texts))] }
	number := func() int64 { return numbers[rng.IntN(len(numbers))] }
	plain := 0
	for range 20_000 {
		e := Entry{
			Seq: rng.Uint64() >> rng.UintN(64), At: time.Unix(rng.Int64N(1<<33), rng.Int64N(1e9)).UTC(),
			Kind: []Kind{KindTurn, KindTurnBegun, KindTurnEnded, KindGrant, KindRunOpened, KindRunClosed, "\"?"}[rng.IntN(7)],
			Run:  text(), MaxConvTurns: number(), MaxDimensions: number(), Turns: number(), Dimensions: number(),
			Ends: uint64(number()), Used: number(), Open: number(), Limit: number(),
		}
		if rng.IntN(2) == 0 {
			e.Dimension, e.Key, e.Reason = text(), text(), text()
		}
		switch rng.IntN(10) {
		case 0:
			e.At = e.At.Truncate(time.Second)
		case 1:
			e.At = e.At.Truncate(10 * time.Millisecond)
		case 2:
			e.At = e.At.In(time.FixedZone("elsewhere", 3600))
		case 3:
			e.At = time.Time{}
		}
		want, err := json.Marshal(e)
		require.NoError(t, err)
		got, err := encodeEntry(e)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		if ordinary(e.Run + e.Dimension + e.Key + e.Reason + string(e.Kind)) {
			plain++
		}
	}
	require.Greater(t, plain, 1000)
}
