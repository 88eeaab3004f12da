//go:build !linux && !darwin

package scope

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// identity is empty: type, size, time and content have to do.
type identity struct{}

// loadOnce looks before it opens, which is the best that can be done without O_NOFOLLOW and O_NONBLOCK.
func loadOnce(doing, path string) (f file, stable bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file{}, true, &failure{doing: doing, path: path, kind: ErrNone}
	case err != nil:
		return file{}, true, errState(doing, path, err)
	}
	f = fileOf(info)
	if err := f.refuse(); err != nil {
		return f, true, errUnreadable(doing, path, err)
	}
	h, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file{}, true, &failure{doing: doing, path: path, kind: ErrNone}
	case err != nil:
		return f, true, errUnreadable(doing, path, err)
	}
	defer h.Close()
	content, err := io.ReadAll(io.LimitReader(h, MaxBytes+1))
	if err != nil {
		return f, true, errUnreadable(doing, path, err)
	}
	after, err := h.Stat()
	if err != nil {
		return f, true, errUnreadable(doing, path, err)
	}
	if g := fileOf(after); g != f || int64(len(content)) != g.size || !os.SameFile(info, after) {
		return g, false, nil
	}
	f.content = string(content)
	return f, true, nil
}

func fileOf(info fs.FileInfo) file {
	at := info.ModTime()
	return file{id: identity{}, kind: info.Mode().Type(), size: info.Size(), modTime: time.Unix(at.Unix(), int64(at.Nanosecond()))}
}
