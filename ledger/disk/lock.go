package disk

import (
	"context"
	"os"
	"path/filepath"
)

// Mode says what a lock lets others do.
type Mode int

// The modes of a lock.
const (
	Shared    Mode = iota // others may have a shared one beside it
	Exclusive             // others may have none
)

// LockPath waits for the exclusive lock of the lock file at path until ctx ends, which is [ErrLocked]. The file is made,
// with the mode of [FileMode], where there is none; nobody may remove it, since a lock on a removed file excludes nobody who comes
// later. A symbolic link is not followed. unlock gives the lock back.
//
// The wait is in the kernel's queue and cannot be interrupted: a goroutine that is left behind at the end of ctx gives
// the lock back if it gets it later.
func LockPath(ctx context.Context, path string) (unlock func(), err error) {
	if !HasFlock {
		return nil, &os.PathError{Op: "lock", Path: path, Err: errNoFlock}
	}
	mode := FileMode(filepath.Dir(path))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|NoFollow|Nonblock, mode)
	if err != nil {
		return nil, err
	}
	share(f, mode)
	unlock = func() { _ = f.Close() }
	if err := TryLock(f, Exclusive); err == nil {
		return unlock, nil
	}
	locked := make(chan error, 1)
	go func() { locked <- Lock(f, Exclusive) }()
	select {
	case err := <-locked:
		if err != nil {
			_ = f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		return unlock, nil
	case <-ctx.Done():
		go func() {
			<-locked
			_ = f.Close()
		}()
		return nil, &os.PathError{Op: "lock", Path: path, Err: ErrLocked}
	}
}
