package scope

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWriteIsReadBackWhole(t *testing.T) {
	for name, m := range map[string]Marker{
		"run only":                             {Run: "r"},
		"start":                                {Run: "r", StartedAt: now.Add(123456789)},
		"offset":                               {Run: "r", StartedAt: now.In(time.FixedZone("", 2*60*60))},
		"monotonic":                            {Run: "r", StartedAt: time.Now()},
		"anchor":                               {Run: "r", StartedAt: now, Anchor: &Anchor{"l", 1<<64 - 1, "h"}},
		"characters that JSON and HTML escape": {Run: `"\/<>&'` + "\u2028é😀"},
		"longest run":                          {Run: strings.Repeat("\\", 256), Anchor: &Anchor{strings.Repeat("<", 256), 0, strings.Repeat("&", 256)}},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			m.Session = "s"
			m.ModTime = now.AddDate(-1, 0, 0) // ignored
			before := time.Now().Add(-time.Minute)
			require.NoError(t, Write(state, m))
			got, err := Read(state, "s")
			require.NoError(t, err)
			require.Equal(t, m.Run, got.Run)
			require.Equal(t, m.Anchor, got.Anchor)
			require.True(t, m.StartedAt.Equal(got.StartedAt))
			require.True(t, got.ModTime.After(before))
			require.Equal(t, []string{"s.json"}, names(t, filepath.Join(state, DirName)))
		})
	}
}

func TestWriteRefusesWhatReadWould(t *testing.T) {
	for name, m := range map[string]Marker{
		"no run":            {},
		"run too long":      {Run: strings.Repeat("a", 257)},
		"run not utf-8":     {Run: "\xff"},
		"run U+FFFD":        {Run: "\ufffd"},
		"run control":       {Run: "a\nb"},
		"anchor no ledger":  {Run: "r", Anchor: &Anchor{"", 1, "h"}},
		"anchor no hash":    {Run: "r", Anchor: &Anchor{"l", 1, ""}},
		"anchor bad hash":   {Run: "r", Anchor: &Anchor{"l", 1, "\x00"}},
		"year 10000":        {Run: "r", StartedAt: now.AddDate(8000, 0, 0)},
		"before the year 0": {Run: "r", StartedAt: now.AddDate(-3000, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			m.Session = "s"
			requireLine(t, Write(state, m), Path(state, "s"))
			require.NoDirExists(t, state)
		})
	}
}

func TestWriteReplacesTheMarker(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, Write(state, Marker{Session: "s", Run: "r1", Anchor: &Anchor{"l", 1, "h"}}))
	require.NoError(t, Write(state, Marker{Session: "s", Run: "r2"}))
	m, err := Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "r2", m.Run)
	require.Nil(t, m.Anchor)
}

func TestAReaderSeesTheOldMarkerOrTheNewOne(t *testing.T) {
	state := t.TempDir()
	runs := []string{strings.Repeat("a", 256), "b"}
	require.NoError(t, Write(state, Marker{Session: "s", Run: runs[0]}))
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			err = Write(state, Marker{Session: "s", Run: runs[i%2]})
		}
		done <- err
	}()
	for running := true; running; {
		select {
		case err := <-done:
			require.NoError(t, err)
			running = false
		default:
			m, err := Read(state, "s")
			require.NoError(t, err)
			require.Contains(t, runs, m.Run)
		}
	}
}

func TestAFailedWriteLeavesNoTemporaryFile(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(Path(state, "s"), "in the way"), 0o700))
	requireLine(t, Write(state, Marker{Session: "s", Run: "r"}), Path(state, "s"))
	require.Equal(t, []string{"s.json"}, names(t, filepath.Join(state, DirName)))
}
