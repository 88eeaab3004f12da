//go:build unix

package scope

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The hook writes the heartbeat on every capped call, so what stands in its place must neither hold it up nor be written to.
func TestAHeartbeatIsWrittenToAFileAndToNothingElse(t *testing.T) {
	state, now := t.TempDir(), time.Now()
	require.NoError(t, os.Mkdir(filepath.Join(state, HeartbeatDir), 0o700))

	require.NoError(t, syscall.Mkfifo(filepath.Join(state, HeartbeatDir, "fifo"), 0o600))
	require.Error(t, Touch(state, "fifo", now, true))

	target := filepath.Join(state, "target")
	require.NoError(t, os.WriteFile(target, []byte("kept"), 0o600))
	require.NoError(t, os.Symlink(target, filepath.Join(state, HeartbeatDir, "link")))
	require.Error(t, Touch(state, "link", now, true))
	long := now.Add(-time.Hour)
	require.NoError(t, os.Chtimes(target, long, long))
	require.Error(t, Touch(state, "link", now, false))
	info, err := os.Stat(target)
	require.NoError(t, err)
	require.WithinDuration(t, long, info.ModTime(), time.Second)
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))

	require.NoError(t, Touch(state, "file", now, true))
	require.NoError(t, Touch(state, "file", now, true))
	require.Equal(t, int64(2), Heard(state, "file").Passed)
	require.Equal(t, Heartbeat{}, Heard(state, "fifo"))
	require.Equal(t, Heartbeat{}, Heard(state, "link"))
}
