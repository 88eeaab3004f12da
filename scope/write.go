package scope

import (
	"errors"
	"io/fs"

	"github.com/capgate/capgate/ledger/disk"
)

// Write arms the session: it makes m the session's marker, in place of any other. A zero StartedAt is not written, so that
// the file's modification time serves.
//
// The file has the mode of [disk.FileMode], in a directory that is made, with its parents, when it is absent. The content goes
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
	if err := disk.Swap(path, content, disk.FileMode(dir)); err != nil {
		return &failure{doing: doing, path: path, cause: disk.Bare(err), hint: hintWrite(err)}
	}
	if err := disk.SyncDir(dir); err != nil && !disk.CannotSync(err) {
		return &failure{doing: doing, path: path, cause: disk.Bare(err), hint: "it is in place, but may not survive a power failure"}
	}
	return nil
}

func hintWrite(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "make the directory writable; the session keeps the marker it had"
	}
	return "the session keeps the marker it had"
}
