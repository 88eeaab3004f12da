//go:build !unix

package live

import (
	"errors"
	"os/exec"
	"time"
)

func group(c *exec.Cmd) { c.WaitDelay = 5 * time.Second }

func killGroup(int) error { return errors.ErrUnsupported }
