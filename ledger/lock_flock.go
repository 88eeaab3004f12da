//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ledger

import (
	"errors"
	"os"
	"syscall"
)

// hasFlock: the lock is taken before bbolt opens the file, and bbolt's own attempt on the same descriptor succeeds at
// once. bbolt alone would poll every 50 ms, which starves readers beside busy writers.
const hasFlock = true

// openFlags keeps the opening of a FIFO or a device from blocking; on a regular file it has no effect.
const openFlags = syscall.O_NONBLOCK

// lockFile waits in the kernel's queue. It cannot be interrupted: whoever waits with a deadline abandons it.
func lockFile(f *os.File, exclusive bool) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	err := flock(f, how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = flock(f, how)
	}
	return err
}

func unlockFile(f *os.File) { flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// syncDir makes a new name in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
