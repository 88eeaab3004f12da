//go:build unix

package decisionlog

import (
	"os"
	"syscall"
)

// safely: no symlink is followed, and no other end of a FIFO waited for.
const safely = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// tryLock takes an exclusive lock on the open file, or fails at once.
func tryLock(f *os.File) (unlock func(), err error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, err
	}
	return func() { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }, nil
}
