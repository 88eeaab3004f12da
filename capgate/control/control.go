// Package control keeps an operator's word that holds at once, in running sessions: off.json and halt.json in the state
// directory, each one JSON object:
//
//	{"at":"2026-03-01T22:00:00Z", "until":"2026-03-01T22:10:00Z", "only":"cap", "reason":"…", "by":"alice"}
//
// "until" and "only" may be absent: without the first it holds until it is taken back, and "only" is cap or gates where
// an off is not for everything. Both files are written like a marker is: whole or not at all.
//
// An off that cannot be read is none, and a halt that cannot be read is in force: in doubt the hook judges, and stop means
// stop.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// Names of the files in the state directory.
const (
	OffFile  = "off.json"
	HaltFile = "halt.json"
)

// What an off is for.
const (
	Everything = ""
	Cap        = "cap"
	Gates      = "gates"
)

// maxBytes bounds a file: it is read while a call waits.
const maxBytes = 64 << 10

// Word is what an operator said.
type Word struct {
	At     time.Time  `json:"at"`              // UTC
	Until  *time.Time `json:"until,omitempty"` // UTC; it is over from then on. nil = until it is taken back
	Only   string     `json:"only,omitempty"`  // of an off: [Cap], [Gates], or [Everything]
	Reason string     `json:"reason"`
	By     string     `json:"by"` // the user who said it, as the system calls him
}

// State is what holds in a state directory. The zero value is what holds where nobody has said anything.
type State struct {
	Off  *Word // in force
	Halt *Word // in force; empty but for its time where the file cannot be read
}

// Read returns what holds at a time.
func Read(state string, now time.Time) State {
	var s State
	if Halted(state) {
		halt, err := read(state, HaltFile)
		if err != nil {
			halt = Word{Reason: "its file cannot be read: " + disk.Bare(err).Error()}
		}
		halt.Reason = reasonOf(halt)
		s.Halt = &halt
		return s
	}
	if off, err := read(state, OffFile); err == nil && off.valid() && (off.Until == nil || now.Before(*off.Until)) {
		off.Reason = reasonOf(off)
		s.Off = &off
	}
	return s
}

// MaxReason bounds a reason, in bytes: it stands before the advice in what an agent is told, and in tables.
const MaxReason = 500

// reasonOf is the reason as it is shown: some, and no longer than it may be, whoever wrote the file.
func reasonOf(w Word) string {
	if strings.TrimSpace(w.Reason) == "" {
		return "no reason was given"
	}
	if len(w.Reason) > MaxReason {
		return strings.ToValidUTF8(w.Reason[:MaxReason], "") + "…"
	}
	return w.Reason
}

func (w Word) valid() bool {
	return !w.At.IsZero() && (w.Only == Everything || w.Only == Cap || w.Only == Gates)
}

// Halted reports whether a halt is in force: one look, for the path of every call. In a directory that cannot be searched
// there is none to be seen: there the table denies what it would have to count.
func Halted(state string) bool {
	_, err := os.Lstat(filepath.Join(state, HaltFile))
	return err == nil
}

func read(state, name string) (w Word, err error) {
	path := filepath.Join(state, name)
	text, err := disk.ReadRegular(path, maxBytes)
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return w, fmt.Errorf("read %s: %w", path, err)
	}
	return w, nil
}

// Off switches off, in the place of what an earlier one said.
func Off(state string, w Word) error { return write(state, OffFile, w) }

// On takes an off back, and reports whether there was one.
func On(state string) (was bool, err error) { return remove(state, OffFile) }

// Halt stops every call, and ends an off. Where there is no room for the word, as on a full disk, an empty file holds in its
// place. Calls that were let through before may still be under way when it returns: see [Drain].
func Halt(state string, w Word) error {
	if err := write(state, HaltFile, w); err != nil && !makeEmpty(state, HaltFile) {
		return err
	}
	_, err := On(state)
	return err
}

// Lift takes a halt back, and reports whether there was one.
func Lift(state string) (was bool, err error) { return remove(state, HaltFile) }

func write(state, name string, w Word) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	path := filepath.Join(state, name)
	if err := disk.Replace(path, append(text, '\n'), disk.FileMode(state)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// makeEmpty reports whether it could make an empty file where there is none.
func makeEmpty(state, name string) bool {
	f, err := os.OpenFile(filepath.Join(state, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, disk.FileMode(state))
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func remove(state, name string) (was bool, err error) {
	path := filepath.Join(state, name)
	switch err := os.Remove(path); {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("remove %s: %w", path, err)
	}
	return false, nil
}

// OffText says in words what an off is, who said it and why.
func (w Word) OffText() string {
	what := "everything is off"
	switch w.Only {
	case Cap:
		what = "the cap is off"
	case Gates:
		what = "the subagent gates are off"
	}
	until := " until capgate on"
	if w.Until != nil {
		until = " until " + w.Until.UTC().Format(time.RFC3339)
	}
	return what + until + w.why()
}

// HaltText says in words who halted every call, and why.
func (w Word) HaltText() string { return "halted until capgate halt --lift" + w.why() }

func (w Word) why() string {
	by := ""
	if w.By != "" {
		by = fmt.Sprintf(", by %s at %s", w.By, w.At.UTC().Format(time.RFC3339))
	}
	return by + ": " + w.Reason
}
