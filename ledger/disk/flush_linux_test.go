package disk

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// No test can cut the power. A pipe takes what is written and cannot be flushed, so the flush shows by its error.
func TestAFileIsFlushedBeforeItIsClosed(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	require.ErrorIs(t, fill(w, []byte("text"), 0o600), syscall.EINVAL)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "text", string(got))
}

// The same for a directory's flush: a device cannot be flushed either.
func TestAFlushThatFailsIsTold(t *testing.T) {
	err := SyncDir(os.DevNull)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.True(t, CannotSync(err))
}

// To flush a directory is to open it, which nothing else does here.
func TestTheDirectoryIsFlushedByReplaceAlone(t *testing.T) {
	for name, replace := range replacers {
		dir := t.TempDir()
		watch, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
		require.NoError(t, err)
		_, err = syscall.InotifyAddWatch(watch, dir, syscall.IN_OPEN|syscall.IN_ONLYDIR)
		require.NoError(t, err)
		require.NoError(t, replace(filepath.Join(dir, "f"), []byte("text"), 0o600))
		require.Equal(t, name == "Replace", opened(t, watch), name)
		require.NoError(t, syscall.Close(watch))
	}
}

// opened reports whether the watched directory itself was opened. Its events are those without a name.
func opened(t *testing.T, watch int) bool {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := syscall.Read(watch, buf)
	require.NoError(t, err, "the file in it was opened, at least")
	for at := 0; at < n; {
		length := int(binary.NativeEndian.Uint32(buf[at+12:]))
		if length == 0 {
			return true
		}
		at += syscall.SizeofInotifyEvent + length
	}
	return false
}
