package drive

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

// child is one run of a command. It shares the terminal, the process group and the standard streams with us.
type child struct {
	command []string
	env     []string
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	signals <-chan os.Signal // that we get; see [forwarded]
	// unlessSays ends the command's first line of standard error where it is not to be shown: see [ending.said].
	unlessSays string
}

// ending is how a child ended.
type ending struct {
	status int       // its exit status, or 128 + the signal that ended it
	signal os.Signal // the last one that we got while it ran; nil = none
	said   bool      // it exited with 1 after a first line that begins with child.unlessSays, which was not shown
}

// forwardAgain is how long after an interrupt from the terminal, which the child got itself, we pass it on all the same:
// somebody may have sent it to us alone.
const forwardAgain = 2 * time.Second

// lateSignal is how long we wait for a signal that the child may have ended of.
const lateSignal = 50 * time.Millisecond

// run executes the command to its end. Signals are passed on, and it is waited for all the same. The child ends with us
// where the system can see to that, also where we are killed.
func (c child) run() (ending, error) {
	// The kernel ends the child with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(c.command[0], c.command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, c.stdin, c.stdout, c.stderr
	var held *firstLine
	if c.unlessSays != "" {
		held = &firstLine{to: c.stderr, mark: c.unlessSays}
		cmd.Stderr = held
		cmd.WaitDelay = time.Second // for a grandchild that holds the pipe
	}
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return ending{}, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var e ending
	var again <-chan time.Time
	for {
		select {
		case s := <-c.signals:
			e.signal = s
			if fromTerminal(s) {
				again = time.After(forwardAgain)
				continue
			}
			_ = cmd.Process.Signal(s)
		case <-again:
			again = nil
			_ = cmd.Process.Signal(e.signal)
		case err := <-done:
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
				return e, err
			}
			e.status = statusOf(cmd.ProcessState)
			if e.signal == nil { // whatever its status is: an interrupted client ends with 0
				e.signal = c.late()
			}
			if held != nil {
				e.said = held.end(e.status == 1)
			}
			return e, nil
		}
	}
}

// late returns the signal that ended a child and has not come to us yet: a terminal sends to both at once.
func (c child) late() os.Signal {
	select {
	case s := <-c.signals:
		return s
	case <-time.After(lateSignal):
		return nil
	}
}

// statusOf is the exit status, or as shells have it 128 + the signal that ended the process.
func statusOf(p *os.ProcessState) int {
	if n, ok := signalOf(p); ok {
		return 128 + n
	}
	return p.ExitCode()
}

// catchSignals returns the signals that a command is passed, until stop. One that we were started to ignore stays ignored:
// under nohup a loop outlives its terminal.
func catchSignals() (c chan os.Signal, stop func()) {
	c = make(chan os.Signal, 8)
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// firstLine holds back a first line that begins with mark until it is known whether it is to be shown.
type firstLine struct {
	to      io.Writer
	mark    string
	line    bytes.Buffer
	decided bool // it does not begin with the mark: all is passed on
}

func (f *firstLine) Write(p []byte) (int, error) {
	if f.decided {
		return f.to.Write(p)
	}
	f.line.Write(p)
	if seen := f.line.String(); len(seen) >= len(f.mark) && !strings.HasPrefix(seen, f.mark) || !strings.HasPrefix(f.mark, seen[:min(len(seen), len(f.mark))]) {
		f.decided = true
		_, err := f.line.WriteTo(f.to)
		return len(p), err
	}
	return len(p), nil
}

// end shows what was held back unless drop, and reports whether it was the marked line and was dropped.
func (f *firstLine) end(drop bool) bool {
	if f.decided {
		return false
	}
	if drop && strings.HasPrefix(f.line.String(), f.mark) {
		return true
	}
	_, _ = f.line.WriteTo(f.to)
	return false
}
