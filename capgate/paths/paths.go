// Package paths tells what a path that a model spelled really names. It knows the file system and no policy: what may be
// written where is for package gates.
package paths

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Bounds of a path.
const (
	Max      = 4096 // bytes of a path; nothing can be written where it is longer
	maxLinks = 40   // symbolic links that are followed in one path, as the kernel does
)

// Absolute returns the path that a client makes of one that its model spelled: a leading ~ is the home directory, and a
// relative path starts in dir.
func Absolute(path, dir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		path = home + rest
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// What [Resolve] cannot tell.
var (
	// ErrTooLong says that a path is longer than any file's.
	ErrTooLong = errors.New("the path is too long for a file's")
	// ErrPerProcess says that a path means another file in each process.
	ErrPerProcess = errors.New("the path means another file in each process")
)

// Resolve returns the path with every symbolic link followed. A link whose target does not exist yet is followed, too:
// that is the file that a write would create. What cannot be looked at stays as it is. For a path that means another file
// in each process, by its name or by a link on the way, the error is [ErrPerProcess], and the path stays as it is.
//
// It looks at each component once, and at none below one that is missing.
func Resolve(path string) (resolved string, err error) {
	path = filepath.Clean(path)
	if len(path) > Max {
		return "", ErrTooLong
	}
	if perProcess(path) {
		return path, ErrPerProcess
	}
	const separator = string(filepath.Separator)
	done := Root(path)
	rest := strings.Split(path[len(done):], separator)
	slices.Reverse(rest) // the next component is the last one
	links, missing := 0, false
	for len(rest) > 0 {
		name := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		switch name {
		case "", ".":
			continue
		case "..":
			done, missing = filepath.Dir(done), false
			continue
		}
		next := done + name
		if done != "" && !os.IsPathSeparator(done[len(done)-1]) {
			next = done + separator + name
		}
		if perProcess(next) {
			return path, ErrPerProcess
		}
		if !missing {
			info, err := os.Lstat(next)
			missing = err != nil
			if err == nil && info.Mode()&fs.ModeSymlink != 0 {
				if onProc(done) {
					return path, ErrPerProcess
				}
				to, err := os.Readlink(next)
				if links++; err != nil || links > maxLinks {
					return path, nil
				}
				to = filepath.FromSlash(to)
				if filepath.IsAbs(to) {
					done = Root(to)
					to = to[len(done):]
				}
				names := strings.Split(to, separator)
				slices.Reverse(names)
				rest = append(rest, names...)
				continue
			}
		}
		done = next
	}
	return done, nil
}

// perProcess reports whether the path, or what it is below, is answered by the system for the process that asks: the
// process file system, and the names of a process's own open files. On Windows so are the names that are handed to devices
// as they are.
func perProcess(path string) bool {
	if runtime.GOOS == "windows" {
		slashed := filepath.ToSlash(path)
		return strings.HasPrefix(slashed, "//?/") || strings.HasPrefix(slashed, "//./")
	}
	for _, dir := range []string{"/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// Root returns the root that an absolute path begins with, "" for a relative one.
func Root(path string) string {
	volume := len(filepath.VolumeName(path))
	if len(path) > volume && os.IsPathSeparator(path[volume]) {
		volume++
	}
	return path[:volume]
}

// Known are files and directories that a path may be another name of. The zero value has none.
type Known struct{ all []known }

type known struct {
	path string
	info fs.FileInfo // nil where it does not exist
}

// Add resolves a path, remembers what is there and returns the resolved path, "" for one that is too long.
func (k *Known) Add(path string) string {
	path, _ = Resolve(path)
	if path != "" {
		info, _ := os.Stat(path)
		k.all = append(k.all, known{path, info})
	}
	return path
}

// Rename returns a resolved path whose lowest ancestor that is one of the known files, under whatever name, is called by
// the known name. On file systems that ignore case one file has many names, and so it has under a second mount.
func (k *Known) Rename(path string) string {
	same := path
	for end := len(Root(path)); end <= len(path); end++ {
		if end < len(path) && end > len(Root(path)) && !os.IsPathSeparator(path[end]) {
			continue
		}
		info, err := os.Stat(path[:end])
		if errors.Is(err, fs.ErrNotExist) {
			break // and so is all below it
		}
		for _, t := range k.all {
			if err == nil && t.info != nil && os.SameFile(info, t.info) {
				same = filepath.Join(t.path, path[end:])
			}
		}
	}
	return same
}

// Ancestor returns the ancestor of a known file that is the very directory at path, by the name that the known file's path
// has for it. Where there is none it returns path.
func (k *Known) Ancestor(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	for _, t := range k.all {
		for dir := t.path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if at, err := os.Stat(dir); err == nil && os.SameFile(info, at) {
				return dir
			}
		}
	}
	return path
}
