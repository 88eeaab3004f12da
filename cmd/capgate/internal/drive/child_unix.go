//go:build unix

package drive

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// forwarded are the signals that end a command, or ask it to end.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// fromTerminal reports whether a signal has most likely come from the terminal that we are in the foreground of: it sends
// to every process of the group, and so the child has it already.
func fromTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	for _, f := range []*os.File{os.Stdin, os.Stderr, os.Stdout} {
		if group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil {
			return group == unix.Getpgrp()
		}
	}
	return false
}

// signalOf returns the signal that ended a process.
func signalOf(p *os.ProcessState) (int, bool) {
	w, ok := p.Sys().(syscall.WaitStatus)
	if !ok || !w.Signaled() {
		return 0, false
	}
	return int(w.Signal()), true
}

// numberOf returns the number of a signal.
func numberOf(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return int(n)
}
