package scope

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/disk"
)

func sessions(all []Listed) []string {
	ids := []string{}
	for _, l := range all {
		ids = append(ids, l.Session)
	}
	return ids
}

func TestListOfAMissingDirectoryIsEmpty(t *testing.T) {
	state := filepath.Join(t.TempDir(), "none")
	all, err := List(state)
	require.NoError(t, err)
	require.Empty(t, all)
	removed, err := Sweep(state, ttl, now, nil)
	require.NoError(t, err)
	require.Empty(t, removed)
	require.NoDirExists(t, state)
}

func TestListReturnsAllMarkersSortedBySession(t *testing.T) {
	state := t.TempDir()
	for _, s := range []string{"b", "a-b", "a", "B", "a.b"} {
		require.NoError(t, Write(state, Marker{Session: s, Run: "run of " + s}))
	}
	put(t, state, "c", "{")
	dir := filepath.Join(state, DirName)
	for _, other := range []string{"null.json", ".hidden.json", "ü.json", "x.txt", "json", ".json", "a.JSON", filepath.Base(disk.TempPath(dir))} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other), []byte(`{"runId":"x"}`), 0o600))
	}
	all, err := List(state)
	require.NoError(t, err)
	require.Equal(t, []string{"B", "a", "a-b", "a.b", "b", "c"}, sessions(all))
	for _, l := range all {
		require.False(t, l.ModTime.IsZero())
		if l.Session == "c" {
			require.ErrorIs(t, l.Err, ErrUnreadable)
			require.Empty(t, l.Run)
			continue
		}
		require.NoError(t, l.Err)
		require.Equal(t, "run of "+l.Session, l.Run)
	}
	removed, err := Remove(state, all[5].Marker)
	require.NoError(t, err)
	require.True(t, removed, "a listed marker can be removed")
}

func TestSweepRemovesWhatHasExpiredAndNothingElse(t *testing.T) {
	state := t.TempDir()
	old, boundary := now.Add(-ttl-time.Second), now.Add(-ttl)
	for session, c := range map[string]struct {
		text    string
		modTime time.Time
	}{
		"fresh":               {`{"runId":"r"}`, now},
		"boundary":            {`{"runId":"r"}`, boundary},
		"fresh-by-start":      {`{"runId":"r","startedAt":"2026-03-01T11:00:00Z"}`, old},
		"fresh-unreadable":    {`{`, now},
		"old":                 {`{"runId":"r"}`, old},
		"old-by-start":        {`{"runId":"r","startedAt":"2026-02-01T11:00:00Z"}`, now},
		"old-unreadable":      {`{`, old},
		"old-future":          {`{"runId":"r","startedAt":"2099-01-01T00:00:00Z"}`, old},
		"ahead":               {`{"runId":"r"}`, now.Add(ttl)},
		"too-far-ahead":       {`{"runId":"r","startedAt":"2099-01-01T00:00:00Z"}`, now.Add(ttl + time.Second)},
		"unreadable-by-mtime": {`{"runId":7,"startedAt":"2026-02-01T11:00:00Z"}`, now},
	} {
		setModTime(t, put(t, state, session, c.text), c.modTime)
	}
	removed, err := Sweep(state, ttl, now, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"old", "old-by-start", "old-future", "old-unreadable", "too-far-ahead"}, sessions(removed))
	require.ErrorIs(t, removed[3].Err, ErrUnreadable)

	left, err := List(state)
	require.NoError(t, err)
	require.Equal(t, []string{"ahead", "boundary", "fresh", "fresh-by-start", "fresh-unreadable", "unreadable-by-mtime"}, sessions(left))
	require.Len(t, names(t, filepath.Join(state, DirName)), len(left))
}

func TestSweepRemovesOurOldTemporaryFiles(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, DirName)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	temp := func(age time.Duration) string { return fmt.Sprintf(".capgate-%d-0a.tmp", now.Add(-age).Unix()) }
	stale := []string{temp(time.Hour + time.Second), temp(24 * time.Hour), temp(-2 * time.Hour)}
	kept := []string{
		temp(0), temp(time.Hour), ".capgate-x-0a.tmp", ".capgate-1.tmp", ".capgate-1-0a", "capgate-1-0a.tmp", ".other-1-0a.tmp",
		".capgate-99999999999999999999-0a.tmp",
	}
	for _, name := range append(stale, kept...) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	removed, err := Sweep(state, ttl, now, nil)
	require.NoError(t, err)
	require.Empty(t, removed)
	require.ElementsMatch(t, kept, names(t, dir))
}

func TestATemporaryFileIsNoSessionsMarker(t *testing.T) {
	name := filepath.Base(disk.TempPath("/state"))
	require.False(t, ValidSession(name))
	require.False(t, disk.IsStale(name, time.Now()))
	require.True(t, disk.IsStale(name, time.Now().Add(2*time.Hour)))
}

func TestSweepGoesOnAfterAFailure(t *testing.T) {
	state := t.TempDir()
	for _, s := range []string{"a", "c"} {
		require.NoError(t, os.MkdirAll(Path(state, s), 0o700))
	}
	putExpired(t, state, "b")
	removed, err := Sweep(state, ttl, time.Now().Add(ttl+time.Hour), nil)
	requireLine(t, err, Path(state, "a"))
	require.Contains(t, err.Error(), "1 more")
	require.Equal(t, []string{"b"}, sessions(removed))
}
