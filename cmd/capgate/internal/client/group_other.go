//go:build !unix

package client

import (
	"os"
	"os/exec"
)

// OwnGroup leaves the command where it is: without process groups it alone is killed at the end of its context.
func OwnGroup(c *exec.Cmd) { c.WaitDelay = waitDelay }

// EndGroup kills the process alone.
func EndGroup(leader int) error {
	p, err := os.FindProcess(leader)
	if err != nil {
		return err
	}
	return p.Kill()
}
