package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/ledger/internal/page"
)

// hintDamaged is the way out of a ledger that cannot be used.
const hintDamaged = "run `capgate ledger verify`; restore it from a copy, or close the scope and start a new ledger"

// corrupt makes an [ErrCorrupt] that says what was found.
func corrupt(found string, args ...any) error {
	return fmt.Errorf("%w: %s; %s", ErrCorrupt, fmt.Sprintf(found, args...), hintDamaged)
}

// torn makes an [ErrCorrupt] about meta pages: which entry is the newest is not known any more.
func torn(found string, args ...any) error {
	return fmt.Errorf("%w: %s, so the newest entry may be missing; restore the file from a copy, or close the scope and start a new ledger",
		ErrCorrupt, fmt.Sprintf(found, args...))
}

// ofPages gives an error of package page the sentinel that callers branch on. Any other error is of the rules, which wrap
// one already.
func ofPages(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*page.DamageError](err); ok {
		if e.Torn {
			return torn("%s", e.Found)
		}
		return corrupt("%s", e.Found)
	}
	if e, ok := errors.AsType[*page.NewerError](err); ok {
		return newer(e.Version)
	}
	if e, ok := errors.AsType[*page.ReadError](err); ok {
		return unreadable(e.Err)
	}
	return err
}

// missing also tells a symbolic link that leads nowhere, which nothing is created through.
func (l *File) missing() error {
	if info, err := os.Lstat(l.path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%w: the path is a symbolic link to a file that does not exist; restore that file, or remove the link", ErrMissing)
	}
	return fmt.Errorf("%w: open a run to create it; if there was one, restore it from a copy or close the scope", ErrMissing)
}

// notAFile makes an [ErrCorrupt] for something that no ledger can be.
func notAFile(what string) error {
	return fmt.Errorf("%w: it is %s, not a file; name the file that the ledger is, or is to be", ErrCorrupt, what)
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
	return fmt.Errorf("%w: %w; %s, then try again", ErrNotRecorded, disk.Bare(err), remedy(err, "check free space and the disk"))
}

func unreadable(err error) error {
	return fmt.Errorf("%w: %w; %s", ErrUnreadable, disk.Bare(err), remedy(err, "check its permissions and the disk"))
}

// remedy says what to do about an error of the system, where that is clear.
func remedy(err error, otherwise string) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return "choose a place that can be written"
	case errors.Is(err, fs.ErrPermission):
		return "check the permissions of the file and its directory"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "close files or raise the limit of open ones (ulimit -n)"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return "check the path"
	}
	return otherwise
}

// known reports whether an error already wraps one of the package's sentinels.
func known(err error) bool {
	for _, sentinel := range []error{
		ErrInvalid, ErrMissing, ErrBusy, ErrCorrupt, ErrNewerFormat, ErrUnreadable, ErrAnchorLost, ErrNotRecorded,
		ErrRunUnknown, ErrRunExists, ErrRunClosed, ErrKeyReused, ErrTurnOver, ErrTurnOpen, ErrBudgetSpent,
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
