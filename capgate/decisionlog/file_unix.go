//go:build unix

package decisionlog

import (
	"os"
	"syscall"
)

// openAppend follows no symlink and never waits for the other end of a FIFO: the state directory may hold anything.
func openAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}

// tryLock takes an exclusive lock on the open file, or fails at once.
func tryLock(f *os.File) (unlock func(), err error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, err
	}
	return func() { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }, nil
}
