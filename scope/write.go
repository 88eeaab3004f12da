package scope

import (
	"errors"
	"io/fs"
	"os"
)

const fileMode = 0o600

// Write arms the session: it makes m the session's marker, in place of any other. A zero StartedAt is not written, so that
// the file's modification time serves.
//
// The file has mode 0600, in a directory of mode 0700 that is made, with its parents, when it is absent. The content goes
// to a temporary file that is synced and renamed, and the directory is synced, so a crash leaves the old marker or the new one.
//
// The error is ErrSession for an id that no marker can have, ErrState for a directory that cannot be made or used, and a
// plain one for a run or anchor that [Read] would refuse and for a failure to write. Unless it says that the marker is in
// place, the session keeps the marker it had.
func Write(state string, m Marker) error {
	const doing = "write marker"
	if !ValidSession(m.Session) {
		return errSession(doing, m.Session)
	}
	content, err := encode(m)
	if err != nil {
		return &failure{doing: doing, path: Path(state, m.Session), cause: err}
	}
	dir, err := makeDir(doing, state)
	if err != nil {
		return err
	}
	path := markerPath(dir, m.Session)
	if err := replace(dir, path, content); err != nil {
		return &failure{doing: doing, path: path, cause: bare(err), hint: hintWrite(err)}
	}
	if err := syncDir(dir); err != nil {
		return &failure{doing: doing, path: path, cause: bare(err), hint: "it is in place, but may not survive a power failure"}
	}
	return nil
}

// replace puts content at path by way of a temporary file in dir, or leaves everything as it was.
func replace(dir, path string, content []byte) error {
	temp := tempPath(dir)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	err = fill(f, content)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp) // Sweep removes what stays
	}
	return err
}

func fill(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err == nil {
		err = f.Chmod(fileMode) // whatever the umask
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func hintWrite(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "make the directory writable; the session keeps the marker it had"
	}
	return "the session keeps the marker it had"
}
