// Package client knows the agent clients by name, and runs a real one: in a process group of its own, so that its
// hooks, shells and servers end with it, and with bounded output.
package client

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/capgate/capgate/cmd/capgate/internal/lazy"
)

// Command is a client's program with what it is given.
type Command struct {
	Program string
	Args    []string
	Dir     string   // its working directory; "" = ours
	Env     []string // K=V; nil = our own
}

// Result is what a client left that has ended.
type Result struct {
	Exit           int
	Stdout, Stderr []byte // the end of each, at most
	Took           time.Duration
}

// Run executes a client to its end, or kills it with its process group at the end of the context. A client that ended
// by itself is no error, whatever its exit status, and neither is one that was killed: the context says so.
func Run(ctx context.Context, command Command) (Result, error) {
	c := exec.CommandContext(ctx, command.Program, command.Args...)
	var stdout, stderr tail
	c.Dir, c.Env, c.Stdout, c.Stderr = command.Dir, command.Env, &stdout, &stderr
	OwnGroup(c)
	began := time.Now()
	err := c.Run()
	if c.Process == nil {
		return Result{}, err
	}
	_ = EndGroup(c.Process.Pid) // what it leaves behind
	r := Result{Exit: c.ProcessState.ExitCode(), Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Took: time.Since(began)}
	if _, exited := errors.AsType[*exec.ExitError](err); exited || errors.Is(err, exec.ErrWaitDelay) || ctx.Err() != nil {
		err = nil
	}
	return r, err
}

// waitDelay is for a grandchild that has left the group and holds our pipes.
const waitDelay = 5 * time.Second

// Ask runs a client for something that it says at once, and fails unless that ends well.
func Ask(ctx context.Context, program, arg string) (string, error) {
	c := exec.CommandContext(ctx, program, arg)
	OwnGroup(c)
	c.WaitDelay = time.Second
	out, err := c.Output()
	return string(out), err
}

var version = lazy.Regexp(`\d+\.\d+\.\d+[-+.\w]*`)

// Version asks a client for its version. found is "" where it says none in what it said.
func Version(ctx context.Context, program string) (found, said string, err error) {
	said, err = Ask(ctx, program, "--version")
	return version().FindString(said), said, err
}

// maxOutput bounds what is kept of a client's output, in bytes: the last of it, where the results are.
const maxOutput = 16 << 20

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// Write drops the beginning of what would be too much.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - 2*maxOutput; over > 0 {
		t.Next(t.Len() - maxOutput)
	}
	return n, err
}
