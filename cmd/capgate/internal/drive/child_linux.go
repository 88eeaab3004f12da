package drive

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the child where we are killed: it would go on with nobody to count its turns.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
