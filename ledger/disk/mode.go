package disk

import (
	"io/fs"
	"os"
)

// FileMode returns the mode of a new file in dir: 0600; and in a directory that a group shares, as its setgid bit says,
// also what the group may do with the directory itself: 0660 in one of mode 2770.
func FileMode(dir string) fs.FileMode { return 0o600 | shared(dir)&0o060 }

// DirMode returns the mode of a new directory in parent, by the same rule: 0700, or 0770 in one of mode 2770.
func DirMode(parent string) fs.FileMode { return 0o700 | shared(parent)&0o070 }

// shared returns the permissions of a directory that a group shares, and none for any other.
func shared(dir string) fs.FileMode {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSetgid == 0 {
		return 0
	}
	return info.Mode().Perm()
}

// share gives a new file, which is empty, the group's bits that the umask took. A file of another user's stays as it is.
func share(f *os.File, mode fs.FileMode) {
	if info, err := f.Stat(); err == nil && info.Size() == 0 && info.Mode().Perm()&mode != mode {
		_ = f.Chmod(mode)
	}
}
