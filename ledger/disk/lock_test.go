//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soon is how long something that must happen at once may take on a crowded machine.
const soon = 10 * time.Second

func openTwice(t *testing.T) (one, other *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	for _, f := range []**os.File{&one, &other} {
		var err error
		*f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		t.Cleanup(func() { _ = (*f).Close() })
	}
	return one, other
}

func TestOnlySharedLocksStandBesideEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		held, asked Mode
		want        error
	}{
		"shared, shared":       {Shared, Shared, nil},
		"shared, exclusive":    {Shared, Exclusive, ErrLocked},
		"exclusive, shared":    {Exclusive, Shared, ErrLocked},
		"exclusive, exclusive": {Exclusive, Exclusive, ErrLocked},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := openTwice(t)
			require.NoError(t, TryLock(one, c.held))
			require.ErrorIs(t, TryLock(other, c.asked), c.want)
			require.NoError(t, Unlock(one))
			require.NoError(t, TryLock(other, c.asked))
		})
	}
}

func TestALockIsWaitedForUntilItIsGivenBack(t *testing.T) {
	for name, release := range map[string]func(*os.File) error{"unlocked": Unlock, "closed": (*os.File).Close} {
		t.Run(name, func(t *testing.T) {
			one, other := openTwice(t)
			require.NoError(t, Lock(one, Exclusive))
			got := make(chan error, 1)
			go func() { got <- Lock(other, Shared) }()
			select {
			case err := <-got:
				t.Fatal("it did not wait:", err)
			case <-time.After(50 * time.Millisecond):
			}
			require.NoError(t, release(one))
			select {
			case err := <-got:
				require.NoError(t, err)
			case <-time.After(soon):
				t.Fatal("it waits for a lock that is free")
			}
		})
	}
}

func TestTheWaitForALockFileEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := LockPath(t.Context(), path)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = LockPath(ctx, path)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, path)

	// The abandoned wait gets the lock when it is free, and gives it back.
	unlock()
	ctx, cancel = context.WithTimeout(t.Context(), soon)
	defer cancel()
	unlock, err = LockPath(ctx, path)
	require.NoError(t, err)
	unlock()
}

func TestALockFileIsMadePrivateAndNothingElseIsLocked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	unlock, err := LockPath(t.Context(), path)
	require.NoError(t, err)
	unlock()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	_, err = LockPath(t.Context(), link)
	require.ErrorIs(t, err, syscall.ELOOP)
	_, err = LockPath(t.Context(), dir)
	require.ErrorIs(t, err, syscall.EISDIR)
	_, err = LockPath(t.Context(), filepath.Join(dir, "none", "lock"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
