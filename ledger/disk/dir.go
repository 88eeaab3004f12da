package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MakeDirs makes dir and what is missing above it, each with the mode of [DirMode], whatever the umask, and each with a
// durable name. A directory that is there, or that another process makes meanwhile, is left as it is. A parent that
// cannot be read cannot be flushed, and counts as durable; where a flush fails otherwise, all directories are made, and
// the error is [ErrNotDurable].
func MakeDirs(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	var lost error
	if parent != dir {
		if lost = MakeDirs(parent); lost != nil && !errors.Is(lost, ErrNotDurable) {
			return lost
		}
	}
	if err := Mkdir(dir); err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return lost
		}
		if errors.Is(err, fs.ErrExist) {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return err
	}
	if err := SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) && lost == nil {
		lost = fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	return lost
}

// Mkdir makes one directory with the mode of [DirMode], whatever the umask.
func Mkdir(dir string) error {
	mode := DirMode(filepath.Dir(dir))
	if err := os.Mkdir(dir, mode); err != nil {
		return err
	}
	return widen(dir, mode)
}

// widen gives a new directory the bits that the umask took, and leaves it the setgid bit that it may have inherited.
func widen(dir string, mode fs.FileMode) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&mode == mode.Perm() {
		return err
	}
	return os.Chmod(dir, mode|info.Mode()&fs.ModeSetgid)
}
