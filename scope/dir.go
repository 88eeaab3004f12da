package scope

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/capgate/capgate/ledger/disk"
)

// openDir returns the directory that holds the markers: ErrNone when it does not exist, ErrState when it cannot be used.
func openDir(doing, state string) (string, error) {
	if !filepath.IsAbs(state) {
		return "", errRelative(doing, state)
	}
	dir := scopeDir(state)
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := checkAbsent(state); err != nil {
			return "", errState(doing, state, err)
		}
		return "", &failure{doing: doing, path: dir, kind: ErrNone}
	case err != nil:
		return "", errState(doing, dir, err)
	case !info.IsDir():
		return "", errState(doing, dir, notDir(info))
	}
	return dir, nil
}

// makeDir returns the directory that holds the markers, and makes it and its parents where they are absent. What is there
// keeps its mode.
func makeDir(doing, state string) (string, error) {
	dir, err := openDir(doing, state)
	if errors.Is(err, ErrNone) {
		// A marker whose directory a power failure takes back is one that the session can be given again.
		if err := disk.MakeDirs(scopeDir(state)); err != nil && !errors.Is(err, disk.ErrNotDurable) {
			return "", errState(doing, scopeDir(state), err)
		}
		dir, err = openDir(doing, state)
	}
	return dir, err
}

func notDir(info fs.FileInfo) error {
	return errors.New("is " + disk.KindName(info.Mode().Type()) + ", not a directory")
}

func errState(doing, path string, cause error) error {
	return &failure{doing: doing, path: path, kind: ErrState, cause: disk.Bare(cause)}
}

func errRelative(doing, state string) error {
	cause := errors.New("no path given")
	if state != "" {
		cause = errors.New("the path is relative")
	}
	return &failure{doing: doing + " in", path: state, kind: ErrState, cause: cause, hint: "give an absolute path"}
}
