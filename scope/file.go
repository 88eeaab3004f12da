package scope

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// file is what stands at a marker's path, as far as it could be looked at. Two looks that compare equal with == have seen
// the same file with the same content.
type file struct {
	id      identity    // which file it is, where the platform tells
	kind    fs.FileMode // type bits; zero is a regular file
	size    int64       // bytes
	modTime time.Time
	content string // empty where the file is not regular, too large, or could not be opened
}

const (
	loadAttempts = 5
	loadPause    = time.Millisecond
)

// load looks at the file at path. Its error is ErrNone when there is nothing, ErrState when that cannot be told, and
// ErrUnreadable, together with the file, when there is something that must not or cannot be read.
//
// A file that changes while it is read, or is empty, is most likely being written in place at this very moment, so it is
// looked at again a few times within some milliseconds.
func load(doing, path string) (file, error) {
	for attempt := 1; ; attempt++ {
		f, stable, err := loadOnce(doing, path)
		if err != nil || (stable && f.size > 0) {
			return f, err
		}
		if attempt == loadAttempts {
			if !stable {
				err = errUnreadable(doing, path, errors.New("changed while it was read"))
			}
			return f, err
		}
		time.Sleep(loadPause)
	}
}

// refuse says why a file must not be read, or nil.
func (f file) refuse() error {
	switch {
	case f.kind != 0:
		return errors.New("is " + disk.KindName(f.kind) + ", not a regular file")
	case f.size > MaxBytes:
		return fmt.Errorf("%d bytes are more than %d", f.size, MaxBytes)
	}
	return nil
}

func errUnreadable(doing, path string, cause error) error {
	return &failure{
		doing: doing, path: path, kind: ErrUnreadable, cause: disk.Bare(cause),
		hint: "close the session's scope and open it again",
	}
}
