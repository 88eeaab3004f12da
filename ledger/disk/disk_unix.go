//go:build unix

package disk

import (
	"os"
	"syscall"
)

// Flags for [os.OpenFile]. Elsewhere than on Unix they are zero: look at what is opened.
const (
	Nonblock = syscall.O_NONBLOCK // do not wait for the other end of a FIFO; no effect on a regular file
	NoFollow = syscall.O_NOFOLLOW // fail where the last element of the path is a symbolic link
)

// SyncDir makes the names in a directory durable. Where a directory cannot be opened for that it does nothing.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Descriptor is an open file descriptor that is written to by the bare system call. os.Stdout and os.Stderr would end the
// process by SIGPIPE when the reader has closed its end: for a hook, any exit status but its own lets a denied call
// proceed.
type Descriptor int

// Write implements [io.Writer].
func (d Descriptor) Write(p []byte) (n int, err error) {
	for n < len(p) {
		m, err := syscall.Write(int(d), p[n:])
		if m > 0 {
			n += m
		}
		if err != nil && err != syscall.EINTR {
			return n, err
		}
	}
	return n, nil
}
