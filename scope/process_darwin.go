package scope

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// processStarted tells a process from others that have had, or will have, its number: when it was started. It is "" where
// that cannot be told.
func processStarted(pid int) string {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	at := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", at.Sec, at.Usec)
}
