package scope

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The hook leaves a file for each session and each client, so somebody has to take them away.
func TestOldNotesOfTheHookGo(t *testing.T) {
	now := time.Now()
	put := func(t *testing.T, state, dir, name string, age time.Duration) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Join(state, dir), 0o700))
		path := filepath.Join(state, dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	names := func(t *testing.T, state, dir string) (names []string) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(state, dir))
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	for name, sweep := range map[string]func(state string) error{
		"by a sweep":    func(state string) error { _, err := Sweep(state, time.Hour, now, nil); return err },
		"along the way": func(state string) error { return Tidy(state, now) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			put(t, state, ClearedDir, "1.json", clearedKept+time.Minute)
			put(t, state, ClearedDir, "2.json", clearedKept-time.Minute)
			put(t, state, HeartbeatDir, "old", heartbeatKept+time.Minute)
			put(t, state, HeartbeatDir, "young", heartbeatKept-time.Minute)
			require.NoError(t, os.Mkdir(filepath.Join(state, ClearedDir, "a folder"), 0o700))
			require.NoError(t, os.Mkdir(filepath.Join(state, DirName), 0o700))
			require.NoError(t, sweep(state))
			require.Equal(t, []string{"2.json", "a folder"}, names(t, state, ClearedDir))
			require.Equal(t, []string{"young"}, names(t, state, HeartbeatDir))
		})
	}
	require.NoError(t, Tidy(t.TempDir(), now), "there are none")

	state := t.TempDir()
	for i := range 3 * tidied {
		put(t, state, HeartbeatDir, fmt.Sprint(i), heartbeatKept+time.Minute)
	}
	require.NoError(t, Tidy(state, now))
	require.Len(t, names(t, state, HeartbeatDir), 2*tidied, "its cost does not grow with their number")
}
