package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBareDropsOperationAndPath(t *testing.T) {
	own := errors.New("own")
	for name, c := range map[string]struct{ err, want error }{
		"nothing":        {nil, nil},
		"another error":  {own, own},
		"a path":         {&fs.PathError{Op: "open", Path: "/x", Err: syscall.EIO}, syscall.EIO},
		"two paths":      {&os.LinkError{Op: "rename", Old: "/x", New: "/y", Err: syscall.EIO}, syscall.EIO},
		"a wrapped path": {fmt.Errorf("%w: %w", own, &fs.PathError{Op: "open", Path: "/x", Err: syscall.EIO}), syscall.EIO},
	} {
		require.Equal(t, c.want, Bare(c.err), name)
	}
}

func TestKindNames(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0o600:                              "a file",
		fs.ModeDir | 0o700:                 "a directory",
		fs.ModeSymlink | 0o777:             "a symbolic link",
		fs.ModeNamedPipe | 0o600:           "a FIFO",
		fs.ModeSocket | 0o600:              "a socket",
		fs.ModeDevice | 0o600:              "a device",
		fs.ModeDevice | fs.ModeCharDevice:  "a device",
		fs.ModeIrregular:                   "something special",
		fs.ModeSetgid | fs.ModeDir | 0o700: "a directory",
	} {
		require.Equal(t, want, KindName(mode), mode)
	}
}

func TestAFileSystemWithoutTheFlushIsToldFromAFailedOne(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EINVAL: true, syscall.ENOTSUP: true, &fs.PathError{Op: "sync", Path: "/x", Err: syscall.EINVAL}: true,
		syscall.EIO: false, syscall.EACCES: false, syscall.ENOSPC: false,
	} {
		require.Equal(t, want, CannotSync(err), err)
	}
}

// Everything may use this package, so it uses nothing else.
func TestThePackageIsALeaf(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	require.Equal(t, []string{"github.com/capgate/capgate/ledger/disk"}, strings.Fields(string(out)))
}
