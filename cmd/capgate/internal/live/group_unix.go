//go:build unix

package live

import (
	"os/exec"
	"syscall"
	"time"
)

// group makes the end of a command's context the end of its children, too: clients spawn hooks, shells and servers.
func group(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return killGroup(c.Process.Pid) }
	c.WaitDelay = 5 * time.Second // for a grandchild that has left the group and holds our pipes
}

// killGroup ends what is left of the process group that the process leads or led.
func killGroup(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }
