package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// hintDamaged is the way out of a ledger that cannot be used.
const hintDamaged = "run `capgate ledger verify`; restore it from a copy, or close the scope and start a new ledger"

// corrupt makes an [ErrCorrupt] that says what was found.
func corrupt(found string, args ...any) error {
	return fmt.Errorf("%w: %s; %s", ErrCorrupt, fmt.Sprintf(found, args...), hintDamaged)
}

func missing() error {
	return fmt.Errorf("%w: open a run to create it; if there was one, restore it from a copy or close the scope", ErrMissing)
}

func busy(why string) error {
	return fmt.Errorf("%w: %s; try again, and if it stays, look for a process that holds it", ErrBusy, why)
}

func newer(found uint32) error {
	return fmt.Errorf("%w: it has format %d, this program knows %d; update capgate", ErrNewerFormat, found, format)
}

func notRecorded(err error) error {
	if known(err) {
		return err
	}
	return fmt.Errorf("%w: %w; check free space and the disk, then try again", ErrNotRecorded, bare(err))
}

func unreadable(err error) error {
	return fmt.Errorf("%w: %w; check its permissions and the disk", ErrUnreadable, bare(err))
}

// bare drops the operation and the path from an error of package os: the line already names both.
func bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// known reports whether an error already wraps one of the package's sentinels.
func known(err error) bool {
	for _, sentinel := range []error{
		ErrInvalid, ErrMissing, ErrBusy, ErrCorrupt, ErrNewerFormat, ErrUnreadable, ErrAnchorLost, ErrNotRecorded,
		ErrRunUnknown, ErrRunExists, ErrRunClosed, ErrBudgetSpent,
	} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// refusedBySystem reports whether the operating system said no, as opposed to bbolt not liking what it read.
func refusedBySystem(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) || errors.Is(err, fs.ErrPermission)
}
