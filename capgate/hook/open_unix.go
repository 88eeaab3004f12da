//go:build unix

package hook

import "syscall"

// openNonblock keeps an open from waiting for a FIFO's writer.
const openNonblock = syscall.O_NONBLOCK
