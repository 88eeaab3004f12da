package disk

import (
	"os"
	"syscall"
)

// HasWriter reports whether some process has the regular file at path open for writing, where the kernel can tell: it
// refuses a read lease then, with EAGAIN. Any other refusal (a foreign owner, a network file system) says nothing. The
// lease ends with the descriptor, at once.
func HasWriter(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|NoFollow|Nonblock|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETLEASE, syscall.F_RDLCK)
	return errno == syscall.EAGAIN
}
