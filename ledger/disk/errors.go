package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// The failures that callers tell apart, with errors.Is.
var (
	// ErrNotRegular says that there is something else than a regular file.
	ErrNotRegular = errors.New("it is not a regular file")
	// ErrNotDurable says that what was made is there, but may not survive a power failure.
	ErrNotDurable = errors.New("it may not survive a power failure")
	// ErrLocked says that another open file has the lock.
	ErrLocked = errors.New("locked by another process")
)

// errNoFlock is what every lock fails with where the system has none.
var errNoFlock = fmt.Errorf("this system has no flock: %w", errors.ErrUnsupported)

// Bare drops the operation and the path, or paths, from an error of package os or of this package, for messages that
// name them already. Any other error it returns as it is.
func Bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// CannotSync reports whether an error of [SyncDir] means that the file system knows no flush of directories, as opposed
// to one that failed.
func CannotSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}

// KindName says in words what a file is, with its article: "a directory", "a FIFO".
func KindName(mode fs.FileMode) string {
	switch kind := mode.Type(); {
	case kind == 0:
		return "a file"
	case kind&fs.ModeDir != 0:
		return "a directory"
	case kind&fs.ModeSymlink != 0:
		return "a symbolic link"
	case kind&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case kind&fs.ModeSocket != 0:
		return "a socket"
	case kind&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}
