package disk

import "syscall"

// atomicWrite is how much a pipe takes as one piece or not at all, in bytes (PIPE_BUF).
const atomicWrite = 4096

// Room reports whether n bytes can be written as a whole without a reader, and makes the pipe or the socket larger where that
// takes it: a process that ends while its reader waits has then not left half of what it had to say. Anything else than a pipe or
// a socket has room. What others have written to it before, and nobody has read, is not counted.
func (d Descriptor) Room(n int) bool {
	if n <= atomicWrite {
		return true
	}
	if size, err := fcntl(int(d), syscall.F_GETPIPE_SZ, 0); err == nil {
		if size < n {
			size, err = fcntl(int(d), syscall.F_SETPIPE_SZ, n)
		}
		return err == nil && size >= n
	}
	size, err := syscall.GetsockoptInt(int(d), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	if err != nil {
		return true
	}
	// The kernel counts its own overhead, too, and doubles what is asked for to have room for that.
	if size/2 < n {
		_ = syscall.SetsockoptInt(int(d), syscall.SOL_SOCKET, syscall.SO_SNDBUF, n)
		size, _ = syscall.GetsockoptInt(int(d), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	}
	return size/2 >= n
}

func fcntl(fd, command, argument int) (int, error) {
	value, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(command), uintptr(argument))
	if errno != 0 {
		return 0, errno
	}
	return int(value), nil
}
