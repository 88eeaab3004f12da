//go:build unix

package client

import (
	"os/exec"
	"syscall"
)

// OwnGroup puts a command into a process group of its own, which is killed at the end of its context: clients start
// hooks, shells and servers.
func OwnGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return EndGroup(c.Process.Pid) }
	c.WaitDelay = waitDelay
}

// EndGroup kills what is left of the process group that a process leads or led.
func EndGroup(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }
