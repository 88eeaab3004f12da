package paths

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process file system is known by what it is, so that it is known wherever it is mounted.
func TestAProcessFileSystemIsKnownByWhatItIs(t *testing.T) {
	require.True(t, onProc("/proc"))
	require.True(t, onProc("/proc/self"))
	require.False(t, onProc(t.TempDir()))
	require.False(t, onProc("/proc/none"))
}

// What is below the process file system by a link is of each process's own by its name, where no link in it is followed, too.
func TestALinkIntoTheProcessFileSystemIsFollowed(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink("/proc/version", link))
	_, err := Resolve(link)
	require.ErrorIs(t, err, ErrPerProcess)
}

// Mounted in a second place, as for chroot, its links are still of each process's own. The mount is in a namespace of the test's.
func TestASecondProcessFileSystemIsKnown(t *testing.T) {
	const variable = "TEST_SECOND_PROC"
	if dir := os.Getenv(variable); dir != "" {
		if syscall.Mount("proc", dir, "proc", 0, "") != nil {
			os.Exit(3)
		}
		for _, path := range []string{"/self/cwd/x", "/1/root/x", "/thread-self/fd/1"} {
			_, err := Resolve(dir + path)
			require.ErrorIs(t, err, ErrPerProcess, path)
		}
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestASecondProcessFileSystemIsKnown$")
	c.Env = append(os.Environ(), variable+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() == 3 {
		t.Skip("no mount of our own here: ", err)
	}
	require.NoError(t, err, "%s", out)
}
