package disk

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenRegular opens the regular file at path, with the flags that [os.OpenFile] takes, and says what it opened. One that
// it makes has the mode of [FileMode]. It never waits for the other end of a FIFO; with [NoFollow] among the flags it
// follows no symbolic link. Whatever else it opens there is [ErrNotRegular].
func OpenRegular(path string, flags int) (*os.File, fs.FileInfo, error) {
	var mode fs.FileMode
	if flags&os.O_CREATE != 0 {
		mode = FileMode(filepath.Dir(path))
	}
	f, err := os.OpenFile(path, flags|Nonblock, mode)
	if err != nil {
		return nil, nil, err
	}
	if mode != 0 {
		share(f, mode)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// ReadRegular reads a regular file of at most limit bytes, through a symbolic link as well. It returns nothing of a
// larger one, however large it is, and never waits for the other end of a FIFO.
func ReadRegular(path string, limit int64) ([]byte, error) {
	f, _, err := OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is larger than %d bytes", limit)}
	}
	return text, nil
}
