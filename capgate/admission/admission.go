// Package admission keeps what an operator has admitted beforehand: so many spawns of one subagent type, for so long,
// without a prompt.
//
// Admissions are in admissions.json in the state directory: {"format":1,"admissions":[…]}, see [Admission] for the
// members. The file is read, changed and replaced (temporary file, fsync, rename) under an exclusive flock of
// admissions.lock beside it, so that of any number of parallel spawns exactly as many are let through as were admitted.
// A call is charged once, see [Take].
//
// A file that cannot be read or understood admits nothing.
package admission

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// FileName is the store's name in the state directory.
const FileName = "admissions.json"

// Bounds of an admission.
const (
	MaxUses = 1000
	MaxFor  = 30 * 24 * time.Hour
	// keep is how long an admission that is over stays listed.
	keep = 7 * 24 * time.Hour
	// maxBytes bounds the store: it is read while a call waits.
	maxBytes = 4 << 20
)

// Sentinels of the package.
var (
	ErrNotFound = errors.New("no such admission")
	ErrInvalid  = errors.New("invalid admission")
	ErrBusy     = errors.New("admissions are locked by another process")
	ErrCorrupt  = errors.New("admissions cannot be read")
)

// Admission lets a number of spawns of one type through.
type Admission struct {
	ID      string     `json:"id"` // ULID
	Type    string     `json:"type"`
	Session string     `json:"session,omitempty"` // the only session it is for; "" = any
	Uses    int        `json:"uses"`              // spawns it lets through, 1 to [MaxUses]
	Reason  string     `json:"reason"`
	At      time.Time  `json:"at"`    // UTC
	Until   time.Time  `json:"until"` // UTC; it is over from then on
	Revoked *time.Time `json:"revoked,omitempty"`
	Spent   []Use      `json:"spent"`
}

// Use is one spawn that was let through.
type Use struct {
	At        time.Time `json:"at"` // when its call was first seen
	Session   string    `json:"session"`
	ToolUseID string    `json:"tool_use_id"`
	Call      string    `json:"call"` // what makes it this call: a hash of its agent, its tool_use_id and its input
	Seen      int       `json:"seen"` // how often the call was seen, 1 to [MaxSights]
}

// Call is a call that would start agents.
type Call struct {
	Session   string
	AgentID   string // the agent that makes it, "" on the main thread
	ToolUseID string
	Input     []byte   // as it came
	Types     []string // of the agents that it would start, one each
}

// hash is the same for the same call, whatever is in it.
func (c Call) hash() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.AgentID), []byte(c.ToolUseID), c.Input} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// State tells in one word whether the admission still lets anything through: "open", "spent", "expired" or "revoked".
func (a Admission) State(now time.Time) string {
	switch {
	case a.Revoked != nil:
		return "revoked"
	case len(a.Spent) >= a.Uses:
		return "spent"
	case !now.Before(a.Until):
		return "expired"
	}
	return "open"
}

// check validates an admission that is to be added.
func (a Admission) check() error {
	switch {
	case a.Type == "" || strings.TrimSpace(a.Type) != a.Type:
		return fmt.Errorf("%w: the type is %q: name one subagent type", ErrInvalid, a.Type)
	case a.Uses < 1 || a.Uses > MaxUses:
		return fmt.Errorf("%w: %d uses: give 1 to %d", ErrInvalid, a.Uses, MaxUses)
	case !a.Until.After(a.At) || a.Until.Sub(a.At) > MaxFor:
		return fmt.Errorf("%w: it would hold for %v: give more than nothing and at most %v", ErrInvalid, a.Until.Sub(a.At), MaxFor)
	case strings.TrimSpace(a.Reason) == "":
		return fmt.Errorf("%w: it has no reason: say why", ErrInvalid)
	}
	return nil
}

// Add stores an admission.
func Add(ctx context.Context, state string, a Admission) error {
	if err := a.check(); err != nil {
		return err
	}
	if a.Spent == nil {
		a.Spent = []Use{}
	}
	return change(ctx, state, func(all []Admission) ([]Admission, error) {
		all = slices.DeleteFunc(all, func(old Admission) bool {
			return old.State(a.At) != "open" && a.At.Sub(old.Until) > keep
		})
		return append(all, a), nil
	})
}

// List returns all admissions, oldest first.
func List(state string) ([]Admission, error) { return load(filepath.Join(state, FileName)) }

// Revoke ends an admission. Revoking again changes nothing.
func Revoke(ctx context.Context, state, id string, now time.Time) error {
	return change(ctx, state, func(all []Admission) ([]Admission, error) {
		for i := range all {
			if strings.EqualFold(all[i].ID, id) {
				if all[i].Revoked == nil {
					now = now.UTC()
					all[i].Revoked = &now
				}
				return all, nil
			}
		}
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	})
}

// A call is the same as one before where session, agent, tool_use_id and input are the same, for so long after it was first
// seen and so often in all: the copies of one hook run for one call at the same time, while some model servers give out the
// same ids again, and a model may well ask twice for the same.
const (
	replayWindow = 3 * time.Second
	MaxSights    = 3
)

// Take lets one call's spawns through, all of them or none, and returns the ids of the admissions they are charged to.
// ok is false when too little is admitted. Without any admission it takes no lock and writes nothing.
//
// The same call again, within three seconds and at most twice, is let through once more and charged nothing, unless its
// admission was revoked meanwhile. After that it is another call. One without a tool_use_id is always another.
func Take(ctx context.Context, state string, c Call, now time.Time) (ids []string, ok bool, err error) {
	path := filepath.Join(state, FileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || len(c.Types) == 0 {
		return nil, false, nil
	}
	hash := c.hash() // outside the lock: an input may be long
	err = change(ctx, state, func(all []Admission) ([]Admission, error) {
		if uses := replay(all, c, hash, now); len(uses) > 0 {
			for _, u := range uses {
				u.use.Seen++
				ids = append(ids, u.id)
			}
		} else {
			charges, found := charge(all, c, now)
			if !found {
				return nil, errUnchanged
			}
			for _, i := range charges {
				all[i].Spent = append(all[i].Spent, Use{At: now.UTC(), Session: c.Session, ToolUseID: useKey(c.ToolUseID), Call: hash, Seen: 1})
				ids = append(ids, all[i].ID)
			}
		}
		ids, ok = unique(ids), true
		return all, nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	return ids, true, nil
}

// Would reports whether [Take] would let the spawns through, and changes nothing.
func Would(state string, c Call, now time.Time) (ids []string, ok bool) {
	all, err := List(state)
	if err != nil || len(c.Types) == 0 {
		return nil, false
	}
	for _, u := range replay(all, c, c.hash(), now) {
		ids = append(ids, u.id)
	}
	if len(ids) > 0 {
		return unique(ids), true
	}
	charges, ok := charge(all, c, now)
	for _, i := range charges {
		ids = append(ids, all[i].ID)
	}
	return unique(ids), ok
}

// unique leaves out what stands there already, in the same order.
func unique(ids []string) (once []string) {
	for _, id := range ids {
		if !slices.Contains(once, id) {
			once = append(once, id)
		}
	}
	return once
}

// Types returns the types of which a session has used an admission that was not revoked since, sorted. Those are the
// subagents that somebody let start there.
func Types(state, session string) ([]string, error) {
	all, err := List(state)
	if err != nil || session == "" {
		return nil, err
	}
	var types []string
	for _, a := range all {
		if a.Revoked == nil && slices.ContainsFunc(a.Spent, func(u Use) bool { return u.Session == session }) {
			types = append(types, a.Type)
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// Open returns the types of which a session may start at least one agent now, sorted.
func Open(state, session string, now time.Time) ([]string, error) {
	all, err := List(state)
	var types []string
	for _, a := range all {
		if a.State(now) == "open" && (a.Session == "" || a.Session == session) {
			types = append(types, a.Type)
		}
	}
	slices.Sort(types)
	return slices.Compact(types), err
}

// seen is a use of an admission, in the store.
type seen struct {
	id  string // of the admission
	use *Use
}

// replay finds the uses of the same call that may be seen again: one for each of its spawns, or none.
func replay(all []Admission, c Call, hash string, now time.Time) (uses []seen) {
	if c.ToolUseID == "" {
		return nil
	}
	var types []string
	for i := range all {
		for j := range all[i].Spent {
			u := &all[i].Spent[j]
			if all[i].Revoked == nil && u.Session == c.Session && u.Call == hash && u.Seen < MaxSights && now.Sub(u.At).Abs() < replayWindow {
				uses, types = append(uses, seen{all[i].ID, u}), append(types, all[i].Type)
			}
		}
	}
	slices.Sort(types)
	if !slices.Equal(types, slices.Sorted(slices.Values(c.Types))) {
		return nil // one of its admissions was revoked
	}
	return uses
}

// charge chooses the admission that each spawn is charged to, by its place in all; ok is false when one has none.
func charge(all []Admission, c Call, now time.Time) (charges []int, ok bool) {
	taken := map[int]int{}
	for _, t := range c.Types {
		found := -1
		for i, a := range all {
			if a.Type == t && (a.Session == "" || a.Session == c.Session) && a.State(now) == "open" && len(a.Spent)+taken[i] < a.Uses {
				found = i
				break
			}
		}
		if found < 0 {
			return nil, false
		}
		taken[found]++
		charges = append(charges, found)
	}
	return charges, true
}

// maxUseID is the longest tool_use_id that is stored as it is, in bytes.
const maxUseID = 128

// useKey is what is stored of a tool_use_id: itself, or its hash where it is long, so that no call can fill the store.
func useKey(id string) string {
	if len(id) <= maxUseID {
		return id
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(id)))
}

// errUnchanged ends a change that has nothing to write.
var errUnchanged = errors.New("unchanged")

// change replaces the store by what edit makes of it, under the lock.
func change(ctx context.Context, state string, edit func([]Admission) ([]Admission, error)) error {
	path := filepath.Join(state, FileName)
	unlock, err := lock(ctx, filepath.Join(state, "admissions.lock"))
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer unlock()
	all, err := load(path)
	if err != nil {
		return err
	}
	all, err = edit(all)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := store(path, all); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// lock waits for the store's lock until ctx ends. It fails without flock: exactly as many spawns as were admitted cannot
// be promised then, so none is.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if !disk.HasFlock {
		return nil, fmt.Errorf("admitting beforehand needs flock: %w", errors.ErrUnsupported)
	}
	unlock, err = disk.LockPath(ctx, path)
	if errors.Is(err, disk.ErrLocked) {
		err = ErrBusy
	}
	return unlock, err
}

// file is the store's content.
type file struct {
	Format     int         `json:"format"`
	Admissions []Admission `json:"admissions"`
}

func load(path string) ([]Admission, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case !info.Mode().IsRegular() || info.Size() > maxBytes:
		return nil, fmt.Errorf("%w: %s is no regular file of at most %d bytes: remove it and admit again", ErrCorrupt, path, maxBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var f file
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil || f.Format != 1 {
		return nil, fmt.Errorf("%w: %s is not of format 1 (%v): remove it and admit again", ErrCorrupt, path, err)
	}
	return f.Admissions, nil
}

// store replaces the file, so that a crash leaves the old one or the new one.
func store(path string, all []Admission) error {
	text, err := json.MarshalIndent(file{Format: 1, Admissions: all}, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= maxBytes {
		return fmt.Errorf("%w: the store would grow over %d bytes: let admissions expire, or admit fewer uses", ErrInvalid, maxBytes)
	}
	// A use that a power cut took back could be taken again: the new content is on disk before we answer.
	return disk.Replace(path, append(text, '\n'), disk.FileMode(filepath.Dir(path)))
}
