//go:build !unix

package main

import "os/exec"

// ownGroup does nothing: without process groups the command alone is killed at the end of its context.
func ownGroup(*exec.Cmd) {}

func killGroup(c *exec.Cmd) error { return c.Process.Kill() }
