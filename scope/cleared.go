package scope

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// ClearedDir is the directory in the state directory that holds one note for each client process that has left an armed
// session for a new one, as /clear does. The note is the file PID.json:
//
//	{"started":"…","session":"OLD","at":"2026-03-01T09:30:00Z","to":"NEW"}
//
// The client tells nobody which session followed which, so its process is the link between the two. "started" tells that
// process from a later one of the same number; it is when the process was started, in the system's own terms, and "" where
// that cannot be told. "to" is missing until the new session is known.
const ClearedDir = "cleared"

// clearedFor is how long a note holds: a background agent's calls carry the new session's id before the client has told
// that there is one.
const clearedFor = time.Minute

// cleared is the content of a note.
type cleared struct {
	Started string    `json:"started"`
	Session string    `json:"session"`
	At      time.Time `json:"at"`
	To      string    `json:"to,omitempty"`
}

// Leave notes that the client process pid has left the session for a new one. A session that is not armed leaves no note,
// and neither does a client whose process is not known.
func Leave(state, session string, pid int, at time.Time) error {
	if pid <= 0 {
		return nil
	}
	if _, err := os.Lstat(Path(state, session)); err != nil {
		return ignoreMissing(err)
	}
	return writeCleared(state, pid, cleared{Started: processStarted(pid), Session: session, At: at.UTC()})
}

// Left returns the session that the client process pid has left within the last minute, for a new one that is not known
// yet and may be session.
func Left(state, session string, pid int, now time.Time) (from string, ok bool) {
	if pid <= 0 {
		return "", false
	}
	text, err := disk.ReadRegular(clearedPath(state, pid), MaxBytes)
	if err != nil {
		return "", false
	}
	var c cleared
	if json.Unmarshal(text, &c) != nil || !ValidSession(c.Session) || c.Session == session {
		return "", false
	}
	switch {
	case now.Sub(c.At).Abs() > clearedFor,
		c.To != "", // it is known, and was armed: whether it still is, is for its own marker to say
		c.Started != processStarted(pid):
		return "", false
	}
	return c.Session, true
}

// Follow arms session in the place of the one that the client process pid has left: for the same run, since the same
// moment. The old session stays armed, because calls that it made before may still come. It does nothing where no
// session was left, and where the new one is armed already.
func Follow(state, session string, pid int, now time.Time) error {
	from, ok := Left(state, session, pid, now)
	if !ok || !ValidSession(session) {
		return nil
	}
	if _, err := Read(state, session); errors.Is(err, ErrNone) {
		armed, err := armFrom(state, session, from)
		if err != nil || !armed {
			return err
		}
	}
	return writeCleared(state, pid, cleared{Started: processStarted(pid), Session: from, At: now.UTC(), To: session})
}

// Inherit arms the session of a subagent like the one that has started it: for the same run, since the same moment. It does
// nothing where that one is not armed, or the subagent's is armed already.
func Inherit(state, session, parent string) error {
	if !ValidSession(session) || !ValidSession(parent) || session == parent {
		return nil
	}
	if _, err := Read(state, session); !errors.Is(err, ErrNone) {
		return err
	}
	_, err := armFrom(state, session, parent)
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// armFrom arms a session like another, and reports whether it stays so: whoever closes the other one meanwhile has not
// seen the new one.
func armFrom(state, session, from string) (armed bool, err error) {
	m, err := Read(state, from)
	if err != nil {
		return false, err
	}
	m.Session, m.From = session, from
	if m.StartedAt.IsZero() {
		m.StartedAt = m.ModTime // its age goes on
	}
	if err := Write(state, m); err != nil {
		return false, err
	}
	if _, err := Read(state, from); errors.Is(err, ErrNone) {
		_, err := Close(state, session)
		return false, err
	}
	return true, nil
}

func clearedPath(state string, pid int) string {
	return filepath.Join(state, ClearedDir, strconv.Itoa(pid)+extension)
}

// ignoreMissing returns nil for an error that says that there is nothing.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeCleared replaces a note. It need not survive a power failure, which ends the client as well.
func writeCleared(state string, pid int, c cleared) error {
	path := clearedPath(state, pid)
	if err := disk.Mkdir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return disk.Swap(path, text, disk.FileMode(filepath.Dir(path)))
}

// Related returns the session and those that have taken its place or whose place it has taken, one after the other, sorted:
// the sessions of one conversation, which are armed and disarmed as one.
func Related(state, session string) ([]string, error) {
	all, err := List(state)
	if err != nil {
		return nil, err
	}
	related := map[string]bool{session: true}
	for grown := true; grown; {
		grown = false
		for _, m := range all {
			if m.From != "" && related[m.Session] != related[m.From] {
				related[m.Session], related[m.From], grown = true, true, true
			}
		}
	}
	armed := map[string]bool{session: true} // or named: who asks about it may not know
	for _, m := range all {
		armed[m.Session] = true
	}
	var names []string
	for name := range related {
		if armed[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
