package scope

import "syscall"

// hasWriter reports whether some process has the regular file at path open for writing, where the kernel can tell: it
// refuses a read lease then, with EAGAIN. Any other refusal (a foreign owner, a network file system) says nothing. The
// lease ends with the descriptor, at once.
func hasWriter(path string) bool {
	fd, err := retry(func() (int, error) { return syscall.Open(path, openFlags, 0) })
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETLEASE, syscall.F_RDLCK)
	return errno == syscall.EAGAIN
}
