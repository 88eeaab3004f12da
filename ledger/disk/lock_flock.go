//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"errors"
	"os"
	"syscall"
)

// HasFlock says whether this system has flock. Where it has none, [Lock], [TryLock] and [LockPath] fail with
// [errors.ErrUnsupported], and callers need another way or must refuse.
const HasFlock = true

// Lock locks the open file, which it waits for in the kernel's queue. The wait cannot be interrupted: whoever has a
// deadline abandons it, in a goroutine of its own. A lock of the other mode that the file has already is exchanged.
func Lock(f *os.File, m Mode) error {
	err := TryLock(f, m)
	if errors.Is(err, ErrLocked) {
		err = flock(f, m.how())
	}
	return err
}

// TryLock is [Lock] without the wait: a lock that is not free is [ErrLocked].
func TryLock(f *os.File, m Mode) error {
	err := flock(f, m.how()|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return ErrLocked
	}
	return err
}

// Unlock gives a lock back. Closing the file does so too, unless something else keeps it open, as a mapping does.
func Unlock(f *os.File) error { return flock(f, syscall.LOCK_UN) }

func (m Mode) how() int {
	if m == Exclusive {
		return syscall.LOCK_EX
	}
	return syscall.LOCK_SH
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}
