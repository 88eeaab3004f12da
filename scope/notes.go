package scope

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// How long the hook's notes are kept: long after they have said what they are for.
const (
	clearedKept   = time.Hour
	heartbeatKept = 7 * 24 * time.Hour
)

// tidied is at most how many notes of a kind are looked at along the way.
const tidied = 64

// Tidy removes old notes of the hook, of as many as can be looked at in a moment, however many there are.
func Tidy(state string, now time.Time) error { return sweepNotes(state, now, tidied) }

// sweepNotes removes old notes of cleared sessions and heartbeats. It looks at most at so many of each, all of them where
// most is 0.
func sweepNotes(state string, now time.Time, most int) error {
	return errors.Join(
		sweepOlder(filepath.Join(state, ClearedDir), now.Add(-clearedKept), most),
		sweepOlder(filepath.Join(state, HeartbeatDir), now.Add(-heartbeatKept), most),
	)
}

// sweepOlder removes the files of a directory that were last written before a moment.
func sweepOlder(dir string, before time.Time, most int) error {
	d, err := os.Open(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	names, _ := d.Readdirnames(most) // an empty directory is io.EOF, and what was read before an error counts
	_ = d.Close()
	var failed error
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			failed = errors.Join(failed, ignoreMissing(os.Remove(path)))
		}
	}
	return failed
}
