package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

// ErrUnderWay says that calls which began before a halt may still be under way.
var ErrUnderWay = errors.New("calls that began before may still be under way")

// Hold lets one call go on unless a halt is in force. Until the process ends, or release is called, [Drain] waits for it.
// halted is true where the call must not go on.
//
// It holds the shared lock of the state directory itself, so that there is no file that may be missing, and looks for the
// halt again when it has the lock: whoever writes the halt first and gets the exclusive lock then has waited for every
// call that did not see it. Where there is no such directory or no flock nothing is held, and Drain waits for as long as
// a call can take.
func Hold(state string) (halted bool, release func()) {
	release = func() {}
	if Halted(state) {
		return true, release
	}
	dir, err := os.Open(state)
	if err != nil {
		return false, release
	}
	if err := disk.TryLock(dir, disk.Shared); err != nil {
		_ = dir.Close() // somebody drains just now, and has halted before, or the system has no locks
		return Halted(state), release
	}
	release = func() { _ = dir.Close() }
	if Halted(state) {
		release()
		return true, func() {}
	}
	return false, release
}

// Drain waits until no call is under way that [Hold] let go on before. longest is how long a call can take: where nothing
// can be locked it waits for that long, and a lock that it does not get in twice that time is [ErrUnderWay].
func Drain(ctx context.Context, state string, longest time.Duration) error {
	dir, err := os.Open(state)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnderWay, err)
	}
	defer func() { _ = dir.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 2*longest)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := disk.TryLock(dir, disk.Exclusive)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, disk.ErrLocked):
			pause = longest
		}
		select {
		case <-ctx.Done():
			return ErrUnderWay
		case <-time.After(pause):
		}
		if pause == longest {
			return nil
		}
	}
}
