package disk

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes text to path with the mode, whatever the umask: to a temporary file in the same directory, which must
// exist, that is flushed and renamed; then the directory is flushed, best effort. What was at path, a symbolic link
// included, is replaced. After an error it is what it was.
func Replace(path string, text []byte, mode fs.FileMode) error {
	if err := Swap(path, text, mode); err != nil {
		return err
	}
	_ = SyncDir(filepath.Dir(path)) // a directory that may be written need not be readable, which its flush takes
	return nil
}

// Swap is [Replace] without the flush of the directory, for callers that have to say when that fails.
func Swap(path string, text []byte, mode fs.FileMode) error {
	temp := TempPath(filepath.Dir(path))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(f, text, mode)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp) // its name tells its age, should it stay
	}
	return err
}

// fill writes, flushes and closes a new file.
func fill(f *os.File, text []byte, mode fs.FileMode) error {
	_, err := f.Write(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
