//go:build unix

package disk

import (
	"errors"
	"fmt"
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

// roleVariable selects what the test binary does when a test starts it as another process.
const roleVariable = "CAPGATE_DISK_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "write" {
		_, err := Descriptor(1).Write([]byte("hello"))
		fmt.Fprint(os.Stderr, err)
		os.Exit(7)
	}
	os.Exit(m.Run())
}

func TestAClosedReaderIsAnErrorAndNotTheEnd(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), roleVariable+"=write")
	var said strings.Builder
	c.Stdout, c.Stderr = w, &said
	err = c.Run()
	require.Equal(t, 7, c.ProcessState.ExitCode(), "%v: the signal ended it", err)
	require.Contains(t, said.String(), syscall.EPIPE.Error())
}

func TestADescriptorTakesAllOfIt(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	text := strings.Repeat("x", 1<<20) // more than a pipe holds
	got := make(chan int, 1)
	go func() {
		n := 0
		for buf := make([]byte, 4096); ; {
			m, err := r.Read(buf)
			if n += m; err != nil {
				got <- n
				return
			}
		}
	}()
	n, err := Descriptor(int(w.Fd())).Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	require.NoError(t, w.Close())
	require.Equal(t, len(text), <-got)
}

var errAny = errors.New("any error")

func TestOnlyARegularFileIsRead(t *testing.T) {
	const limit = 10
	for name, c := range map[string]struct {
		make func(path string) error
		text string
		want error  // nil: it is read, or says something else; errAny: which one depends on the system
		says string // without the path
	}{
		"a file":           {make: write("text"), text: "text"},
		"an empty file":    {make: write("")},
		"just within":      {make: write("0123456789"), text: "0123456789"},
		"a byte too large": {make: write("01234567890"), says: "it is larger than 10 bytes"},
		"nothing":          {make: func(string) error { return nil }, want: os.ErrNotExist},
		"a FIFO":           {make: func(p string) error { return syscall.Mkfifo(p, 0o600) }, want: ErrNotRegular},
		"a directory":      {make: func(p string) error { return os.Mkdir(p, 0o700) }, want: ErrNotRegular},
		"an endless file":  {make: func(p string) error { return os.Symlink("/dev/zero", p) }, want: ErrNotRegular},
		"a link to itself": {make: func(p string) error { return os.Symlink(p, p) }, want: syscall.ELOOP},
		"a link to a file": {make: func(p string) error {
			if err := os.WriteFile(p+".target", []byte("text"), 0o600); err != nil {
				return err
			}
			return os.Symlink(p+".target", p)
		}, text: "text"},
		"a socket": {make: func(p string) error {
			l, err := net.Listen("unix", p)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		}, want: errAny},
	} {
		t.Run(name, func(t *testing.T) {
			path := shortPath(t)
			require.NoError(t, c.make(path))
			began := time.Now()
			text, err := ReadRegular(path, limit)
			require.Less(t, time.Since(began), 5*time.Second)
			switch {
			case c.want == errAny:
				require.Error(t, err)
			case c.want != nil:
				require.ErrorIs(t, err, c.want)
			case c.says != "":
				require.EqualError(t, Bare(err), c.says)
			default:
				require.NoError(t, err)
			}
			require.Equal(t, c.text, string(text))
			if err != nil {
				require.Equal(t, 1, strings.Count(err.Error(), path), "the error names the path once: %v", err)
				require.NotContains(t, Bare(err).Error(), path)
			}
		})
	}
}

func write(text string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

// shortPath is a path that a socket may have.
func shortPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "f")
}

func TestNoFollowRefusesALink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.Symlink(path+".nowhere", path))
	_, _, err := OpenRegular(path, os.O_RDWR|os.O_CREATE|NoFollow)
	require.ErrorIs(t, err, syscall.ELOOP)
	require.NoFileExists(t, path+".nowhere")
}

func TestModesWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077, 0o777} {
		top := filepath.Join(t.TempDir(), "a")
		dir := filepath.Join(top, "b")
		old := syscall.Umask(mask)
		err := MakeDirs(dir)
		replaced := Replace(filepath.Join(dir, "f"), nil, 0o640)
		syscall.Umask(old)
		require.NoError(t, err)
		require.NoError(t, replaced)
		for path, want := range map[string]os.FileMode{top: 0o700, dir: 0o700, filepath.Join(dir, "f"): 0o640} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, want, info.Mode().Perm(), "umask %o", mask)
		}
	}
}

func TestMakeDirs(t *testing.T) {
	for name, c := range map[string]struct {
		make func(top string) error
		dir  string // below top
		want error
	}{
		"all of it":         {nil, "a/b/c", nil},
		"what is there":     {func(p string) error { return os.MkdirAll(p+"/a/b", 0o755) }, "a/b", nil},
		"the rest":          {func(p string) error { return os.Mkdir(p+"/a", 0o755) }, "a/b/c", nil},
		"through a link":    {func(p string) error { return os.Symlink(p, p+"/a") }, "a/b/c", nil},
		"a file":            {func(p string) error { return os.WriteFile(p+"/a", nil, 0o600) }, "a", syscall.ENOTDIR},
		"below a file":      {func(p string) error { return os.WriteFile(p+"/a", nil, 0o600) }, "a/b", syscall.ENOTDIR},
		"a dangling link":   {func(p string) error { return os.Symlink("nowhere", p+"/a") }, "a", syscall.ENOTDIR},
		"below a dangling":  {func(p string) error { return os.Symlink("nowhere", p+"/a") }, "a/b", syscall.ENOTDIR},
		"a link to itself":  {func(p string) error { return os.Symlink("a", p+"/a") }, "a/b", syscall.ELOOP},
		"a name that is no": {nil, strings.Repeat("x", 300), syscall.ENAMETOOLONG},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			if c.make != nil {
				require.NoError(t, c.make(top))
			}
			for range 2 { // again, nothing changes
				err := MakeDirs(filepath.Join(top, c.dir))
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
					require.NotErrorIs(t, err, ErrNotDurable)
					return
				}
				require.NoError(t, err)
				require.DirExists(t, filepath.Join(top, c.dir))
			}
		})
	}
}

func TestDirectoriesThatAreThereKeepTheirMode(t *testing.T) {
	top := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.Mkdir(top, 0o700))
	require.NoError(t, os.Chmod(top, 0o755|os.ModeSetgid))
	require.NoError(t, MakeDirs(filepath.Join(top, "b")))
	for path, want := range map[string]os.FileMode{top: 0o755, filepath.Join(top, "b"): 0o750} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm())
	}
}

func TestADirectoryThatIsGoneCannotBeFlushed(t *testing.T) {
	require.NoError(t, SyncDir(t.TempDir()))
	require.ErrorIs(t, SyncDir(filepath.Join(t.TempDir(), "none")), os.ErrNotExist)
}
