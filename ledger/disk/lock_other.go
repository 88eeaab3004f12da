//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import "os"

// HasFlock says whether this system has flock. Where it has none, [Lock], [TryLock] and [LockPath] fail with
// [errors.ErrUnsupported], and callers need another way or must refuse.
const HasFlock = false

// Lock is not supported here.
func Lock(*os.File, Mode) error { return errNoFlock }

// TryLock is not supported here.
func TryLock(*os.File, Mode) error { return errNoFlock }

// Unlock has nothing to give back here.
func Unlock(*os.File) error { return nil }
