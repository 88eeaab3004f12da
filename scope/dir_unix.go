//go:build unix

package scope

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes the names in a directory survive a power failure. A file system that knows no such thing is not an error.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// checkAbsent has nothing to add: a file in the state directory's place is ENOTDIR already.
func checkAbsent(string) error { return nil }
