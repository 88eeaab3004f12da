// Package decisionlog keeps the verdicts that were not a plain pass, one JSON object a line, in decisions.jsonl in the
// state directory: `capgate log` shows them, `capgate explain ID` explains one.
//
// A line is appended with a single write of at most [MaxLine] bytes to a file opened with O_APPEND, so that lines of
// parallel processes never mix. Where a crash or a full disk left the last line without its end, the write begins with
// a line break. At [MaxFile] bytes the file becomes decisions.jsonl.1, and that one .2; what was .2 is dropped. Files
// are 0600. Prompts, commands and file contents are never logged. The log is best effort: it is not flushed, and a
// failure to write it never changes a verdict.
//
// Whatever stands in a log's place is neither read nor written unless it is a regular file. Lines of more than
// [MaxLine] bytes, and what is not a record, are left out.
package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// FileName is the log's name in the state directory.
const FileName = "decisions.jsonl"

// Bounds of the log, in bytes.
const (
	MaxLine = 4096     // one line with its line break, and with one before it
	MaxFile = 10 << 20 // size at which the file is rotated
)

// maxField bounds a field that the client or a marker sets, in bytes, so that a line keeps room for the others.
const maxField = 256

// ErrNotFound says that no kept line has the id.
var ErrNotFound = errors.New("no such decision in the log")

// Record is one line.
type Record struct {
	ID        string    `json:"id"` // ULID
	At        time.Time `json:"at"`
	Client    string    `json:"client"` // "claude" or "omp"
	Code      string    `json:"code"`
	Outcome   string    `json:"outcome"` // "pass", "rewrite", "ask" or "deny"
	Session   string    `json:"session"`
	Run       string    `json:"run,omitempty"`
	Tool      string    `json:"tool"`
	AgentID   string    `json:"agent_id,omitempty"`
	AgentType string    `json:"agent_type,omitempty"`
	ToolUseID string    `json:"tool_use_id,omitempty"`
	Admission string    `json:"admission,omitempty"` // what admitted the spawn beforehand
	Used      *int64    `json:"used,omitempty"`      // nil where the ledger was not read
	Limit     *int64    `json:"limit,omitempty"`     // nil where the ledger was not read
	Reason    string    `json:"reason,omitempty"`
}

// line returns the record as it is written. Fields too long for a line are cut.
func (r Record) line() ([]byte, error) {
	for _, field := range []*string{&r.Session, &r.Run, &r.Tool, &r.AgentID, &r.AgentType, &r.ToolUseID, &r.Admission} {
		*field = clip(*field, maxField)
	}
	for {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encode decision %s: %w", r.ID, err)
		}
		over := len(line) + 2 - MaxLine
		if over <= 0 {
			return append(line, '\n'), nil
		}
		// A character can take six bytes as an escape; cutting as many characters as there are bytes too many
		// ends within a few rounds, at an empty reason at the latest.
		if r.Reason == "" {
			r.Session, r.Run, r.Tool, r.AgentID, r.AgentType, r.ToolUseID, r.Admission = "", "", "", "", "", "", ""
			continue
		}
		r.Reason = clip(r.Reason, max(len(r.Reason)-max(over/6, 1), 0))
	}
}

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// Append writes the record to the log of the state directory, which must exist.
func Append(state string, r Record) error {
	line, err := r.line()
	if err != nil {
		return err
	}
	path := filepath.Join(state, FileName)
	f, info, err := openAppend(path)
	if err != nil {
		return fmt.Errorf("write decision log: %w", err)
	}
	defer func() { _ = f.Close() }()
	if info.Size() >= MaxFile {
		if next, nextInfo, err := rotate(f, info, path); err == nil {
			defer func() { _ = next.Close() }()
			f, info = next, nextInfo
		}
	}
	if torn(f, info.Size()) {
		line = append([]byte("\n"), line...)
	}
	if _, err := f.Write(line); err != nil {
		return fmt.Errorf("write decision log: %w", err)
	}
	return nil
}

func openAppend(path string) (*os.File, fs.FileInfo, error) {
	return open(path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
}

// torn reports whether the last line of a file of this size has no end. An empty line too many does no harm.
func torn(f *os.File, size int64) bool {
	if size == 0 {
		return false
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return err != nil || last[0] != '\n'
}

// rotate moves the full log out of the way and opens a new one. Of several processes that find it full, one rotates:
// the lock is on the full file, and who gets it late sees that the path names another file by then.
func rotate(full *os.File, info fs.FileInfo, path string) (*os.File, fs.FileInfo, error) {
	if disk.HasFlock { // elsewhere an open file cannot be renamed, so that two rotations cannot meet
		if err := disk.TryLock(full, disk.Exclusive); err != nil {
			return nil, nil, err
		}
		defer func() { _ = disk.Unlock(full) }()
	}
	if now, err := os.Lstat(path); err == nil && os.SameFile(info, now) {
		if err := os.Rename(path+".1", path+".2"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, nil, err
		}
	}
	return openAppend(path)
}

// Last returns the newest n records, oldest first; all of them when n is 0 or less. Lines that are not records are
// left out. A log that does not exist is empty.
func Last(state string, n int) ([]Record, error) {
	path := filepath.Join(state, FileName)
	return lastOf(n, path, path+".1", path+".2")
}

// lastOf reads files from the newest to the oldest until it has n records.
func lastOf(n int, paths ...string) ([]Record, error) {
	var records []Record
	for _, path := range paths {
		older, err := readFile(path)
		if err != nil {
			return nil, err
		}
		records = append(older, records...)
		if n > 0 && len(records) >= n {
			return records[len(records)-n:], nil
		}
	}
	return records, nil
}

// Find returns the record with the id, or ErrNotFound.
func Find(state, id string) (Record, error) {
	records, err := Last(state, 0)
	if err != nil {
		return Record{}, err
	}
	for _, r := range slices.Backward(records) {
		if strings.EqualFold(r.ID, id) {
			return r, nil
		}
	}
	return Record{}, fmt.Errorf("%w: %s", ErrNotFound, id)
}

func parse(line []byte) (r Record, ok bool) {
	line = bytes.TrimSpace(line)
	return r, len(line) > 0 && json.Unmarshal(line, &r) == nil && r.ID != ""
}

// Follow calls fn for the newest n records, oldest first, and then for each that is appended, until ctx ends or fn
// returns an error. It looks every 200 ms and goes on across rotations; none is left out in between.
func Follow(ctx context.Context, state string, n int, fn func(Record) error) error {
	t := tail{path: filepath.Join(state, FileName)}
	defer t.close()
	records, err := t.next()
	if err != nil {
		return err
	}
	if len(records) < n {
		older, err := lastOf(n-len(records), t.path+".1", t.path+".2")
		if err != nil {
			return err
		}
		records = append(older, records...)
	}
	records = records[max(len(records)-n, 0):]
	for {
		for _, r := range records {
			if err := fn(r); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
		if records, err = t.next(); err != nil {
			return err
		}
	}
}

// tail reads a log that grows and is rotated.
type tail struct {
	path    string
	*reader // nil until there is a log
}

func (t *tail) close() {
	if t.reader != nil {
		t.reader.close()
		t.reader = nil
	}
}

// next returns the records since the last call: the rest of the open file first, then those of the one that has taken
// its place.
func (t *tail) next() ([]Record, error) {
	var found []Record
	for {
		more, err := t.rest()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
		if !t.moved() {
			return found, nil
		}
		// What was appended between the read and the rotation, which is over by now.
		if more, err = t.rest(); err != nil {
			return nil, err
		}
		found = append(found, more...)
		t.close()
		t.reader, err = openReader(t.path)
		if errors.Is(err, fs.ErrNotExist) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// rest returns the records from where the open file was read to.
func (t *tail) rest() ([]Record, error) {
	if t.reader == nil {
		return nil, nil
	}
	return t.records()
}

// moved reports whether the path names another file than the open one, or none is open yet.
func (t *tail) moved() bool {
	if t.reader == nil {
		return true
	}
	open, err := t.f.Stat()
	if err != nil {
		return true
	}
	now, err := os.Lstat(t.path)
	return err == nil && !os.SameFile(open, now)
}
