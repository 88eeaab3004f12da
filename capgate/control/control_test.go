package control

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/disk"
)

var now = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)

func word(only string, until *time.Time) Word {
	return Word{At: now, Until: until, Only: only, Reason: "why", By: "alice"}
}

func TestAnOffHoldsUntilItIsOverOrTakenBack(t *testing.T) {
	state := t.TempDir()
	require.Equal(t, State{}, Read(state, now), "nobody has said anything")
	until := now.Add(time.Minute)
	require.NoError(t, Off(state, word(Cap, &until)))
	require.Equal(t, word(Cap, &until), *Read(state, until.Add(-1)).Off)
	require.Nil(t, Read(state, until).Off)
	require.NoError(t, Off(state, word(Everything, nil)))
	require.Equal(t, Everything, Read(state, now.Add(1000*time.Hour)).Off.Only, "the later word counts")
	was, err := On(state)
	require.NoError(t, err)
	require.True(t, was)
	require.Equal(t, State{}, Read(state, now))
	was, err = On(state)
	require.NoError(t, err)
	require.False(t, was)
}

func TestAHaltEndsAnOff(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, Off(state, word(Everything, nil)))
	require.NoError(t, Halt(state, word("", nil)))
	require.True(t, Halted(state))
	require.Equal(t, State{Halt: &Word{At: now, Reason: "why", By: "alice"}}, Read(state, now))
	was, err := Lift(state)
	require.NoError(t, err)
	require.True(t, was)
	require.False(t, Halted(state))
	require.Equal(t, State{}, Read(state, now), "and no off comes back")
	was, err = Lift(state)
	require.NoError(t, err)
	require.False(t, was)
}

// What cannot be read is decided for judging: an off is none then, and a halt holds.
func TestAnUnreadableOffIsNoneAndAnUnreadableHaltHolds(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"no JSON":        func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		"empty":          func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"of other types": func(p string) error { return os.WriteFile(p, []byte(`{"at":1}`), 0o600) },
		"without a time": func(p string) error { return os.WriteFile(p, []byte(`{}`), 0o600) },
		"for something unknown": func(p string) error {
			return os.WriteFile(p, []byte(`{"at":"2026-03-01T22:00:00Z","only":"everything"}`), 0o600)
		},
		"a directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"a link":      func(p string) error { return os.Symlink("nowhere", p) },
		"too long":    func(p string) error { return os.WriteFile(p, make([]byte, maxBytes+1), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			require.NoError(t, spoil(filepath.Join(state, OffFile)))
			require.Equal(t, State{}, Read(state, now))
			require.NoError(t, spoil(filepath.Join(state, HaltFile)))
			require.NotNil(t, Read(state, now).Halt)
			require.True(t, Halted(state))
			halted, release := Hold(state)
			defer release()
			require.True(t, halted)
		})
	}
}

func TestNoStateDirectoryIsNoHalt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, state := range []string{filepath.Join(t.TempDir(), "none"), file} {
		require.Equal(t, State{}, Read(state, now))
		halted, release := Hold(state)
		release()
		require.False(t, halted)
		require.Error(t, Halt(state, word("", nil)))
	}
}

func TestDrainWaitsForTheCallsThatWentOnBefore(t *testing.T) {
	if !disk.HasFlock {
		t.Skip("this system has no flock")
	}
	state := t.TempDir()
	halted, release := Hold(state)
	require.False(t, halted)
	require.NoError(t, Halt(state, word("", nil)))
	require.ErrorIs(t, Drain(t.Context(), state, 20*time.Millisecond), ErrUnderWay)
	late, done := Hold(state)
	done()
	require.True(t, late, "who comes now does not go on, and does not delay it")
	drained := make(chan error, 1)
	go func() { drained <- Drain(context.Background(), state, time.Minute) }()
	release()
	require.NoError(t, <-drained)
}

// However many calls come at that moment: none goes on after the halt has returned.
func TestNoCallGoesOnAfterAHaltHasReturned(t *testing.T) {
	if !disk.HasFlock {
		t.Skip("this system has no flock")
	}
	for range 20 {
		state := t.TempDir()
		var halted atomic.Bool
		var wrong, passed atomic.Int64
		var calls sync.WaitGroup
		for range 16 {
			calls.Go(func() {
				for {
					stop, release := Hold(state)
					if stop {
						return
					}
					passed.Add(1)
					if halted.Load() {
						wrong.Add(1)
					}
					release()
				}
			})
		}
		for passed.Load() < 100 {
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, Halt(state, word("", nil)))
		require.NoError(t, Drain(t.Context(), state, time.Minute))
		halted.Store(true)
		calls.Wait()
		require.Zero(t, wrong.Load())
	}
}

// Whoever wrote the file: what an agent is told has a reason in it, and room for the advice behind it.
func TestAReasonIsShownAndBounded(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "no reason was given", `{"reason":"  "}`: "no reason was given", `{"reason":"why"}`: "why",
		`{"reason":"` + strings.Repeat("é", 4000) + `"}`: strings.Repeat("é", MaxReason/2) + "…",
	} {
		state := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(state, HaltFile), []byte(text), 0o600))
		require.Equal(t, want, Read(state, now).Halt.Reason)
	}
}
