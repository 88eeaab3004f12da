//go:build linux || darwin

package scope

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// special holds what may stand at a marker's path without being a marker.
var special = map[string]func(t *testing.T, path string){
	"symlink to a marker": func(t *testing.T, path string) {
		target := filepath.Join(t.TempDir(), "target.json")
		require.NoError(t, os.WriteFile(target, []byte(`{"runId":"r"}`), 0o600))
		require.NoError(t, os.Symlink(target, path))
	},
	"dangling symlink": func(t *testing.T, path string) {
		require.NoError(t, os.Symlink("nowhere", path))
	},
	"symlink to itself": func(t *testing.T, path string) {
		require.NoError(t, os.Symlink(filepath.Base(path), path))
	},
	"symlink to a device": func(t *testing.T, path string) {
		require.NoError(t, os.Symlink("/dev/zero", path))
	},
	"FIFO": func(t *testing.T, path string) {
		require.NoError(t, syscall.Mkfifo(path, 0o600))
	},
	"socket": func(t *testing.T, path string) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Skip("the path is too long for a socket:", err)
		}
		t.Cleanup(func() { _ = l.Close() })
	},
	"device": func(t *testing.T, path string) {
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5); err != nil {
			t.Skip("no permission to make a device:", err)
		}
	},
	"directory": func(t *testing.T, path string) {
		require.NoError(t, os.Mkdir(path, 0o700))
	},
	"directory with a marker": func(t *testing.T, path string) {
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path, "s.json"), []byte(`{"runId":"r"}`), 0o600))
	},
}

// shortDir is a directory whose path is short enough for a socket's.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func placeSpecial(t *testing.T, place func(*testing.T, string)) (state, path string) {
	state = shortDir(t)
	path = Path(state, "s")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	place(t, path)
	return state, path
}

func TestWhatIsNoRegularFileIsUnreadable(t *testing.T) {
	for name, place := range special {
		t.Run(name, func(t *testing.T) {
			state, path := placeSpecial(t, place)
			info, err := os.Lstat(path)
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				m, err := Read(state, "s")
				require.ErrorIs(t, err, ErrUnreadable)
				requireLine(t, err, path)
				require.Equal(t, "s", m.Session)
				require.True(t, m.ModTime.Equal(info.ModTime()))
				require.Empty(t, m.Run)
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("reading hangs")
			}
		})
	}
}

func TestWhatIsNoRegularFileIsRemovedUnlessItIsADirectory(t *testing.T) {
	remove := map[string]func(state string) (bool, error){
		"Remove": func(state string) (bool, error) {
			m, _ := Read(state, "s")
			return Remove(state, m)
		},
		"Close": func(state string) (bool, error) { return Close(state, "s") },
		"Sweep": func(state string) (bool, error) {
			removed, err := Sweep(state, ttl, time.Now().Add(ttl+time.Hour), nil)
			return len(removed) == 1 && removed[0].Err != nil, err
		},
	}
	for how, remove := range remove {
		for name, place := range special {
			t.Run(how+" "+name, func(t *testing.T) {
				state, path := placeSpecial(t, place)
				target, _ := os.Readlink(path)
				info, err := os.Lstat(path)
				require.NoError(t, err)

				removed, err := remove(state)
				if info.IsDir() {
					require.False(t, removed)
					requireLine(t, err, path)
					require.DirExists(t, path)
					return
				}
				require.NoError(t, err)
				require.True(t, removed)
				require.Empty(t, names(t, filepath.Dir(path)))
				if filepath.IsAbs(target) {
					require.FileExists(t, target)
				}
			})
		}
	}
}

func TestWriteReplacesWhatIsNoRegularFileUnlessItIsADirectory(t *testing.T) {
	for name, place := range special {
		t.Run(name, func(t *testing.T) {
			state, path := placeSpecial(t, place)
			target, _ := os.Readlink(path)
			info, err := os.Lstat(path)
			require.NoError(t, err)

			err = Write(state, Marker{Session: "s", Run: "new"})
			require.Equal(t, []string{"s.json"}, names(t, filepath.Dir(path)))
			if info.IsDir() {
				requireLine(t, err, path)
				return
			}
			require.NoError(t, err)
			m, err := Read(state, "s")
			require.NoError(t, err)
			require.Equal(t, "new", m.Run)
			if filepath.Ext(target) == ".json" && filepath.IsAbs(target) {
				got, err := os.ReadFile(target)
				require.NoError(t, err)
				require.Equal(t, `{"runId":"r"}`, string(got))
			}
		})
	}
}

func TestTheStateDirectoryMayBeALinkTheScopeDirectoryMayNot(t *testing.T) {
	real := t.TempDir()
	require.NoError(t, Write(real, Marker{Session: "s", Run: "r"}))

	link := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Symlink(real, link))
	m, err := Read(link, "s")
	require.NoError(t, err)
	require.Equal(t, "r", m.Run)
	require.NoError(t, Write(link, Marker{Session: "s", Run: "r2"}))

	inner := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(real, DirName), filepath.Join(inner, DirName)))
	requireErrState(t, inner)
	require.Equal(t, []string{"s.json"}, names(t, filepath.Join(real, DirName)))

	loop := filepath.Join(t.TempDir(), "loop")
	require.NoError(t, os.Symlink(loop, loop))
	requireErrState(t, loop)
}

func TestModesWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077, 0o777} {
		state := filepath.Join(t.TempDir(), "a", "b")
		old := syscall.Umask(mask)
		err := Write(state, Marker{Session: "s", Run: "r"})
		syscall.Umask(old)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), mode(t, Path(state, "s")), "umask %o", mask)
		require.Equal(t, os.FileMode(0o700), mode(t, filepath.Join(state, DirName)), "umask %o", mask)
		require.Equal(t, os.FileMode(0o700), mode(t, state), "umask %o", mask)
		require.Equal(t, os.FileMode(0o700), mode(t, filepath.Dir(state)), "umask %o", mask)
	}
}

func TestWriteLeavesDirectoriesTheirModes(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, os.Chmod(state, 0o755))
	put(t, state, "s", `{"runId":"old"}`)
	require.NoError(t, os.Chmod(filepath.Join(state, DirName), 0o755))
	require.NoError(t, os.Chmod(Path(state, "s"), 0o644))
	require.NoError(t, Write(state, Marker{Session: "s", Run: "r"}))
	require.Equal(t, os.FileMode(0o755), mode(t, state))
	require.Equal(t, os.FileMode(0o755), mode(t, filepath.Join(state, DirName)))
	require.Equal(t, os.FileMode(0o600), mode(t, Path(state, "s")))
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

// again runs the calling test once more in a process of its own and requires that it passes there.
func again(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Args = append(cmd.Args, "-test.run=^"+t.Name()+"$", "-test.v")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	if strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skipf("%s", out)
	}
	require.Contains(t, string(out), "--- PASS: "+t.Name())
}

// unprivileged reports whether the process is subject to file modes. Where it is not, it runs the test once more in a
// process that is, and reports false.
func unprivileged(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	dir := shortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	bin, temp := filepath.Join(dir, "test"), filepath.Join(dir, "tmp")
	copyFile(t, self(t), bin)
	require.NoError(t, os.Mkdir(temp, 0o700))
	require.NoError(t, os.Chown(temp, 65534, 65534))

	cmd := exec.Command(bin)
	cmd.Dir = temp
	cmd.Env = childEnv("TMPDIR=" + temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	again(t, cmd)
	return false
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Chmod(0o755))
	require.NoError(t, out.Close())
}

func TestAMarkerWithoutPermissionToReadIsUnreadable(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	state := t.TempDir()
	path := put(t, state, "s", `{"runId":"r"}`)
	setModTime(t, path, now)
	require.NoError(t, os.Chmod(path, 0))
	m, err := Read(state, "s")
	require.ErrorIs(t, err, ErrUnreadable)
	require.ErrorIs(t, err, os.ErrPermission)
	requireLine(t, err, path)
	requireUnreadable(t, m)

	removed, err := Remove(state, m)
	require.NoError(t, err)
	require.True(t, removed)
	require.NoFileExists(t, path)
}

func TestADirectoryThatCannotBeSearchedIsErrState(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	for name, sub := range map[string]string{"state directory": "", "scope directory": DirName} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			put(t, state, "s", `{"runId":"r"}`)
			dir := filepath.Join(state, sub)
			for _, session := range []string{"s", "other"} {
				require.NoError(t, os.Chmod(dir, 0o600))
				_, err := Read(state, session)
				require.NoError(t, os.Chmod(dir, 0o700))
				require.ErrorIs(t, err, ErrState)
				require.NotErrorIs(t, err, ErrUnreadable)
				requireLine(t, err, state)
			}
			require.NoError(t, os.Chmod(dir, 0o000))
			_, err := List(state)
			require.NoError(t, os.Chmod(dir, 0o700))
			require.ErrorIs(t, err, ErrState)
		})
	}
}

func TestWriteInAReadOnlyDirectoryKeepsTheOldMarker(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	state := t.TempDir()
	put(t, state, "s", `{"runId":"old"}`)
	dir := filepath.Join(state, DirName)
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })

	err := Write(state, Marker{Session: "s", Run: "new"})
	require.ErrorIs(t, err, os.ErrPermission)
	requireLine(t, err, Path(state, "s"))
	require.Contains(t, err.Error(), "make the directory writable")
	require.Equal(t, os.FileMode(0o500), mode(t, dir))

	m, err := Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "old", m.Run)

	removed, err := Remove(state, m)
	require.ErrorIs(t, err, os.ErrPermission)
	require.False(t, removed)
	require.FileExists(t, Path(state, "s"))
	_, err = Close(state, "s")
	require.ErrorIs(t, err, os.ErrPermission)
	swept, err := Sweep(state, -1, time.Now().Add(time.Hour), nil)
	require.ErrorIs(t, err, os.ErrPermission)
	require.Empty(t, swept)
}

// The directory is flushed, which takes reading it: a marker whose name may be lost is told.
func TestWriteTellsThatAMarkerMayNotSurvive(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	state := t.TempDir()
	put(t, state, "s", `{"runId":"old"}`)
	dir := filepath.Join(state, DirName)
	require.NoError(t, os.Chmod(dir, 0o300))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })

	err := Write(state, Marker{Session: "s", Run: "new"})
	require.ErrorIs(t, err, os.ErrPermission)
	requireLine(t, err, Path(state, "s"))
	require.Contains(t, err.Error(), "it is in place, but may not survive a power failure")
	m, err := Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "new", m.Run)
}
