//go:build linux || darwin

package scope

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/capgate/capgate/ledger/disk"
)

type identity struct{ dev, ino uint64 }

// openFlags: a link is not followed, a FIFO is not waited for, a terminal does not become ours, a child does not inherit.
const openFlags = syscall.O_RDONLY | disk.NoFollow | disk.Nonblock | syscall.O_NOCTTY | syscall.O_CLOEXEC

// loadOnce uses bare system calls, because package os would look at the file once more and offer it to the poller.
func loadOnce(doing, path string) (f file, stable bool, err error) {
	fd, err := retry(func() (int, error) { return syscall.Open(path, openFlags, 0) })
	if err != nil {
		f, err = lookAt(doing, path, err)
		return f, true, err
	}
	defer syscall.Close(fd)

	var before, after syscall.Stat_t
	if err := fstat(fd, &before); err != nil {
		f, err = lookAt(doing, path, err)
		return f, true, err
	}
	f = fileOf(&before)
	if err := f.refuse(); err != nil {
		return f, true, errUnreadable(doing, path, err)
	}
	buf := make([]byte, f.size)
	n, err := readFull(fd, buf)
	if err != nil {
		return f, true, errUnreadable(doing, path, err)
	}
	if err := fstat(fd, &after); err != nil {
		return f, true, errUnreadable(doing, path, err)
	}
	if g := fileOf(&after); g != f || n != len(buf) {
		return g, false, nil
	}
	f.content = string(buf[:n])
	return f, true, nil
}

// lookAt describes the file that could not be opened for the given reason.
func lookAt(doing, path string, reason error) (file, error) {
	if errors.Is(reason, fs.ErrNotExist) {
		return file{}, &failure{doing: doing, path: path, kind: ErrNone}
	}
	var st syscall.Stat_t
	_, err := retry(func() (int, error) { return 0, syscall.Lstat(path, &st) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file{}, &failure{doing: doing, path: path, kind: ErrNone}
	case err != nil:
		return file{}, errState(doing, path, err)
	}
	f := fileOf(&st)
	if why := f.refuse(); why != nil {
		reason = why
	}
	return f, errUnreadable(doing, path, reason)
}

func fileOf(st *syscall.Stat_t) file {
	return file{
		id:      identity{dev: uint64(st.Dev), ino: st.Ino},
		kind:    kindOf(uint32(st.Mode)),
		size:    st.Size,
		modTime: time.Unix(modTime(st).Unix()),
	}
}

func kindOf(mode uint32) fs.FileMode {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return 0
	case syscall.S_IFDIR:
		return fs.ModeDir
	case syscall.S_IFLNK:
		return fs.ModeSymlink
	case syscall.S_IFIFO:
		return fs.ModeNamedPipe
	case syscall.S_IFSOCK:
		return fs.ModeSocket
	case syscall.S_IFCHR, syscall.S_IFBLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// readFull reads until buf is full or the file ends.
func readFull(fd int, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		got, err := retry(func() (int, error) { return syscall.Read(fd, buf[n:]) })
		if err != nil {
			return n, err
		}
		if got == 0 {
			break
		}
		n += got
	}
	return n, nil
}

func fstat(fd int, st *syscall.Stat_t) error {
	_, err := retry(func() (int, error) { return 0, syscall.Fstat(fd, st) })
	return err
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR {
			return n, err
		}
	}
}
