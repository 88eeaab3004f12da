package scope

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A limit on the size of files fails the write in the middle, as a full disk does.
func TestAWriteThatFailsInTheMiddleKeepsTheOldMarker(t *testing.T) {
	if os.Getenv(childVar) != "limited" {
		cmd := exec.Command(self(t))
		cmd.Env = childEnv(childVar + "=limited")
		again(t, cmd)
		return
	}
	state := t.TempDir()
	put(t, state, "s", `{"runId":"old"}`)
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8, Max: limit.Max}))

	err := Write(state, Marker{Session: "s", Run: "new"})
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	require.ErrorIs(t, err, syscall.EFBIG)
	requireLine(t, err, Path(state, "s"))
	require.Contains(t, err.Error(), "the session keeps the marker it had")
	requireOldMarkerOnly(t, state)
}

func TestWriteOnAFullDiskKeepsTheOldMarker(t *testing.T) {
	state := t.TempDir()
	if err := syscall.Mount("none", state, "tmpfs", 0, "size=8k"); err != nil {
		t.Skip("no permission to mount a small file system:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(state, 0) })
	put(t, state, "s", `{"runId":"old"}`)
	require.Error(t, os.WriteFile(filepath.Join(state, "filler"), make([]byte, 1<<20), 0o600))

	err := Write(state, Marker{Session: "s", Run: "new"})
	require.ErrorIs(t, err, syscall.ENOSPC)
	requireLine(t, err, Path(state, "s"))
	requireOldMarkerOnly(t, state)
}

func requireOldMarkerOnly(t *testing.T, state string) {
	t.Helper()
	m, err := Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "old", m.Run)
	require.Equal(t, []string{"s.json"}, names(t, filepath.Join(state, DirName)))
}

// A writer may wait for the disk for long between its open and its first change, as a truncation does for the journal.
func TestAMarkerThatIsOpenForWritingIsNotRemoved(t *testing.T) {
	state := t.TempDir()
	m := putExpired(t, state, "s")
	f, err := os.OpenFile(Path(state, "s"), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()

	removed, err := Remove(state, m)
	require.NoError(t, err)
	require.False(t, removed)
	swept, err := Sweep(state, ttl, now, nil)
	require.NoError(t, err)
	require.Empty(t, swept)

	_, err = f.WriteString(`{"runId":"new"}`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	got, err := Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "new", got.Run)
	require.Equal(t, []string{"s.json"}, names(t, filepath.Join(state, DirName)))
}

func TestAMarkerThatIsOpenForReadingIsRemoved(t *testing.T) {
	state := t.TempDir()
	m := putExpired(t, state, "s")
	f, err := os.Open(Path(state, "s"))
	require.NoError(t, err)
	defer f.Close()
	removed, err := Remove(state, m)
	require.NoError(t, err)
	require.True(t, removed)
}
