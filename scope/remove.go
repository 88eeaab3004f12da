package scope

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// grace is how long a marker that was moved out of the way is kept before it is deleted. A writer that was about to open
// it when it was moved, and was then kept from running, shows within that time, and the marker goes back. The session
// counts as not armed meanwhile, which is what its expired marker meant, too.
const grace = 25 * time.Millisecond

// Remove removes the very file that was judged, m as [Read] or [List] returned it, and no other. It is false, without an
// error, when that file has gone, has been rewritten, or another marker has taken its place; whatever is there then stays.
// Of a symbolic link the link is removed. A directory stays and is an error, as is a marker that was not read.
//
// It takes some 25 milliseconds. On Linux a marker stays that somebody has open for writing. Elsewhere, who opened it
// before the call and starts to write only after it returned writes to a deleted file: that cannot be helped.
func Remove(state string, m Marker) (bool, error) {
	taken, err := take(state, m)
	if err != nil || taken == nil {
		return false, err
	}
	time.Sleep(grace)
	return taken.finish()
}

// Close disarms the session, whatever its marker holds. It is false when the session was not armed, and never an error
// then. A directory in the marker's place stays and is an error.
func Close(state, session string) (bool, error) {
	const doing = "close scope"
	if !ValidSession(session) {
		return false, errSession(doing, session)
	}
	dir, err := openDir(doing, state)
	if errors.Is(err, ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	path := markerPath(dir, session)
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		return false, errDirectory(doing, path)
	}
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &failure{doing: doing, path: path, cause: disk.Bare(err)}
	}
	_ = disk.SyncDir(dir) // a marker that a power failure brings back expires
	return true, nil
}

// taken is a judged file that was moved out of the way.
type taken struct {
	judged     file
	path, temp string
}

// take moves the judged file out of the way. It is nil when another is in its place.
func take(state string, m Marker) (*taken, error) {
	const doing = "remove marker"
	if !ValidSession(m.Session) {
		return nil, errSession(doing, m.Session)
	}
	dir, err := openDir(doing, state)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := &taken{judged: m.judged, path: markerPath(dir, m.Session), temp: disk.TempPath(dir)}
	switch {
	case m.judged == file{}:
		return nil, &failure{doing: doing, path: t.path, cause: errors.New("it was not read before"), hint: "read it first"}
	case m.judged.kind.IsDir():
		return nil, errDirectory(doing, t.path)
	case !t.isAt(t.path):
		return nil, nil
	}
	err = os.Rename(t.path, t.temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &failure{doing: doing, path: t.path, cause: disk.Bare(err)}
	}
	if !t.isAt(t.temp) {
		return nil, t.putBack()
	}
	return t, nil
}

// finish deletes the file, or puts it back when somebody has written to it or is about to. It asks for writers first: who
// comes between the questions is seen by the second.
func (t *taken) finish() (bool, error) {
	if disk.HasWriter(t.temp) || !t.isAt(t.temp) {
		return false, t.putBack()
	}
	if err := os.Remove(t.temp); err != nil {
		return false, &failure{doing: "remove marker", path: t.temp, cause: disk.Bare(err)}
	}
	return true, nil
}

// isAt reports whether the file at path is the judged one, untouched.
func (t *taken) isAt(path string) bool {
	f, err := load("remove marker", path)
	return !errors.Is(err, ErrNone) && f == t.judged
}

// putBack gives the file its name again, unless there is an even newer marker.
func (t *taken) putBack() error {
	info, err := os.Lstat(t.temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = t.restore(info.Mode())
	}
	if err != nil {
		return &failure{doing: "put back marker", path: t.path, cause: disk.Bare(err), hint: "it is now " + t.temp}
	}
	return nil
}

// restore links, because a link never replaces what is there. Only a regular file on a file system that knows links can
// be linked; for anything else a look has to do.
func (t *taken) restore(mode fs.FileMode) error {
	if mode.IsRegular() {
		err := os.Link(t.temp, t.path)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return os.Remove(t.temp)
		}
	}
	if _, err := os.Lstat(t.path); err == nil && !mode.IsDir() {
		return os.Remove(t.temp)
	}
	return os.Rename(t.temp, t.path)
}

func errDirectory(doing, path string) error {
	return &failure{doing: doing, path: path, cause: errors.New("is a directory"), hint: "remove it by hand"}
}
