// Package cli is what all commands of capgate share: the root with its global flags, where things are, how results are
// printed, what a wrong command line is told, and how a process ends.
//
// A group of commands is a package beside this one. It exports constructors, which package main lists; each gets an
// [App] and takes from it what the command needs.
package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/gates"
)

// Outside is everything a command takes from the outside world.
type Outside struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Lookup         capgate.Lookup                 // an environment variable
	Environment    func() (capgate.Config, error) // the configuration in the same environment
	Now            func() time.Time
	Version        string // as the linker was told; "" = as the go command knows it
}

// App is one command line being run.
type App struct {
	Outside
	*Printer
	*Places

	timeout time.Duration // --timeout
	ran     bool          // a command has begun its work: an error before that is one of usage
	changed bool          // something stays changed when the result cannot be written
}

// NewApp returns the state of one command line. Its results go to the standard output of o, buffered.
func NewApp(o Outside) *App {
	return &App{
		Outside: o,
		Printer: &Printer{out: bufio.NewWriter(o.Stdout)},
		Places:  &Places{lookup: o.Lookup, process: sync.OnceValues(o.Environment), now: o.Now},
	}
}

// Changed notes that something stays changed even when the result cannot be written.
func (a *App) Changed() { a.changed = true }

// Warn writes one line about what was done all the same to standard error.
func (a *App) Warn(format string, args ...any) {
	fmt.Fprintf(a.Stderr, "capgate: warning: %s\n", gates.Visible(fmt.Sprintf(format, args...)))
}

// Command names a command below the root, and builds it.
type Command struct {
	Name string
	New  func(*App) *cobra.Command
}

// Main runs one command line, which means one of the commands, and returns its exit status.
func Main(o Outside, commands []Command) (status int) {
	a := NewApp(o)
	// Go ends a program that panics with status 2, which is our word for a refusal.
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(o.Stderr, "capgate: this is a bug in capgate, please report it: %s%s\n", gates.Visible(fmt.Sprint(p)), a.allTheSame())
			status = StatusError
		}
	}()
	root := rootFor(a, commands)
	root.SetArgs(o.Args)

	cmd, err := root.ExecuteC()
	if werr := a.Flush(); werr != nil {
		err = fmt.Errorf("cannot write the result: %w%s", werr, a.allTheSame())
		a.ran = true
	}
	if err == nil {
		return StatusDone
	}
	message := err.Error()
	if _, ok := errors.AsType[usageError](err); ok || !a.ran {
		message = usageMessage(message, cmd)
	}
	fmt.Fprintf(o.Stderr, "capgate: %s\n", gates.Visible(message))
	if s, ok := errors.AsType[statusError](err); ok {
		return s.status
	}
	return StatusError
}

// allTheSame ends the message of a command that failed after it had changed something.
func (a *App) allTheSame() string {
	if !a.changed {
		return ""
	}
	return "; what was asked is done all the same"
}

// Do wraps what a command does.
func (a *App) Do(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.ran = true
		return run(cmd, args)
	}
}
