package scope

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// HeartbeatDir is the directory in the state directory that holds one file for each session whose hook was heard in scope:
// its modification time is when, and its size is how many capped calls have passed since the session was armed.
const HeartbeatDir = "hook-heard"

// Heartbeat is what is known of an armed session's hook.
type Heartbeat struct {
	At     time.Time // when it was last heard, whatever the verdict; zero = never
	Passed int64     // capped calls that it let through since the session was armed
}

// Touch notes that the session's hook was heard at a moment, and that a capped call passed. It is best effort: the note
// serves people, and no verdict depends on it.
func Touch(state, session string, at time.Time, passed bool) error {
	if !ValidSession(session) {
		return errSession("note heartbeat", session)
	}
	path := heartbeatPath(state, session)
	if info, err := os.Lstat(path); !passed && err == nil && info.Mode().IsRegular() {
		return os.Chtimes(path, at, at)
	}
	f, _, err := disk.OpenRegular(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|disk.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		if err := disk.Mkdir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		f, _, err = disk.OpenRegular(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|disk.NoFollow)
	}
	if err != nil {
		return err
	}
	if passed {
		_, err = f.WriteString(".") // one byte in one write: calls at the same moment are all counted
	}
	return errors.Join(err, f.Close(), os.Chtimes(path, at, at))
}

// Heard returns what is known of the session's hook.
func Heard(state, session string) Heartbeat {
	if !ValidSession(session) {
		return Heartbeat{}
	}
	info, err := os.Lstat(heartbeatPath(state, session))
	if err != nil || !info.Mode().IsRegular() {
		return Heartbeat{}
	}
	return Heartbeat{At: info.ModTime(), Passed: info.Size()}
}

// Forget removes the note of a session, as it is when the session is armed. A session without one is no error.
func Forget(state, session string) error {
	if !ValidSession(session) {
		return errSession("remove heartbeat", session)
	}
	return ignoreMissing(os.Remove(heartbeatPath(state, session)))
}

func heartbeatPath(state, session string) string {
	return filepath.Join(state, HeartbeatDir, session)
}
