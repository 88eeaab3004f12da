package scope

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// HeartbeatDir is the directory in the state directory that holds one empty file for each session whose hook was heard
// in scope: its modification time is when.
const HeartbeatDir = "hook-heard"

// Touch notes that the session's hook was heard at a moment. It is best effort: the note serves people, and no verdict
// depends on it.
func Touch(state, session string, at time.Time) error {
	if !ValidSession(session) {
		return errSession("note heartbeat", session)
	}
	path := heartbeatPath(state, session)
	err := os.Chtimes(path, at, at)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(filepath.Dir(path), dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if f != nil {
		_ = f.Close()
	}
	return os.Chtimes(path, at, at)
}

// Heard returns when the session's hook was last heard in scope, and whether it ever was.
func Heard(state, session string) (time.Time, bool) {
	if !ValidSession(session) {
		return time.Time{}, false
	}
	info, err := os.Lstat(heartbeatPath(state, session))
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// Forget removes the note of a session. A session without one is no error.
func Forget(state, session string) error {
	if !ValidSession(session) {
		return errSession("remove heartbeat", session)
	}
	err := os.Remove(heartbeatPath(state, session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Silent reports whether nothing was heard of the session's hook since it was armed: then the turns that the loop itself
// records are the only bound.
func (m Marker) Silent(state string) bool {
	heard, ok := Heard(state, m.Session)
	armed := m.ModTime // the file is written when the session is armed, by whichever clock touches heartbeats, too
	return !ok || heard.Before(armed)
}

func heartbeatPath(state, session string) string {
	return filepath.Join(state, HeartbeatDir, session)
}
