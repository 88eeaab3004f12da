// Package atomicfile replaces small files so that a reader, and whoever comes after a crash, finds the old content or the
// new one and nothing in between.
package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes text to path with the mode: to a temporary file in the same directory, which must exist, that is synced
// and renamed; then the directory is synced, best effort. What was at path, a symbolic link included, is replaced.
func Replace(path string, text []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, ".capgate-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // it is gone when all went well
	_, err = temp.Write(text)
	if err == nil {
		err = temp.Chmod(mode)
	}
	if err == nil {
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return err
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
