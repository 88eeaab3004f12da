package scope

import (
	"cmp"
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

// Listed is a marker as [List] found it. Err is nil, or ErrUnreadable, and then Marker has only Session and ModTime.
type Listed struct {
	Marker
	Err error
}

// List returns all markers, sorted by session. Names that no session can have are left out. A missing directory is an
// empty list; one that cannot be used is ErrState.
func List(state string) ([]Listed, error) {
	const doing = "list markers"
	dir, names, err := readDir(doing, state)
	if err != nil {
		return nil, err
	}
	var all []Listed
	for _, name := range names {
		session, ok := strings.CutSuffix(name, extension)
		if !ok || !ValidSession(session) {
			continue
		}
		m, err := readIn(doing, dir, session)
		switch {
		case errors.Is(err, ErrNone): // gone since
		case errors.Is(err, ErrState):
			return nil, err
		default:
			all = append(all, Listed{m, err})
		}
	}
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Compare(a.Session, b.Session) })
	return all, nil
}

// Sweep removes every marker that has expired, readable or not, as [Remove] does it, temporary files that a crash
// left behind more than an hour ago, and old notes of the hook. newest says when the newest entry of a run was made, as [Marker.Expired] takes it; nil knows
// of none. It returns the markers it removed, sorted by session, also beside an error, which does not keep it from going on.
func Sweep(state string, ttl time.Duration, now time.Time, newest func(run string) time.Time) ([]Listed, error) {
	all, err := List(state)
	if err != nil {
		return nil, err
	}
	var failed []error
	type pair struct {
		listed Listed
		taken  *taken
	}
	var going []pair
	for _, l := range all {
		if !l.Expired(now, ttl, time.Time{}) || newest != nil && l.Err == nil && !l.Expired(now, ttl, newest(l.Run)) {
			continue
		}
		t, err := take(state, l.Marker)
		if err != nil {
			failed = append(failed, err)
		} else if t != nil {
			going = append(going, pair{l, t})
		}
	}
	if len(going) > 0 {
		time.Sleep(grace)
	}
	var removed []Listed
	for _, g := range going {
		ok, err := g.taken.finish()
		if err != nil {
			failed = append(failed, err)
		} else if ok {
			removed = append(removed, g.listed)
		}
	}
	if err := sweepTemps(state, now); err != nil {
		failed = append(failed, err)
	}
	if err := sweepNotes(state, now, 0); err != nil {
		failed = append(failed, err)
	}
	return removed, first(failed)
}

func sweepTemps(state string, now time.Time) error {
	const doing = "remove temporary file"
	dir, names, err := readDir(doing, state)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		if !disk.IsStale(name, now) {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, &failure{doing: doing, path: path, cause: disk.Bare(err)})
		}
	}
	return first(failed)
}

// readDir returns the scope directory and the names in it: none when it does not exist.
func readDir(doing, state string) (string, []string, error) {
	dir, err := openDir(doing, state)
	if errors.Is(err, ErrNone) {
		return dir, nil, nil
	}
	if err != nil {
		return dir, nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil, nil
	}
	if err != nil {
		return dir, nil, errState(doing, dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return dir, names, nil
}

// first returns the first error on one line, and how many more there are.
func first(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return fmt.Errorf("%w (and %d more)", errs[0], len(errs)-1)
}
