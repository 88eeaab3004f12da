//go:build unix

package admission

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// lock waits for the store's lock until ctx ends. The wait is in the kernel's queue, in a goroutine that is left behind
// at the deadline and gives the lock back if it gets it later.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return func() { _ = f.Close() }, nil
	}
	locked := make(chan error, 1)
	go func() {
		for {
			err := syscall.Flock(fd, syscall.LOCK_EX)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			locked <- err
			return
		}
	}()
	select {
	case err := <-locked:
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		return func() { _ = f.Close() }, nil
	case <-ctx.Done():
		go func() {
			<-locked
			_ = f.Close()
		}()
		return nil, ErrBusy
	}
}
