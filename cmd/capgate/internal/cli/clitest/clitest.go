// Package clitest runs command lines of capgate in the test's own process.
package clitest

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

// Bench runs command lines on a state directory and a clock of its own.
type Bench struct {
	Env     map[string]string // the whole environment
	Now     time.Time
	Version string // of the program, as the linker was told

	t        *testing.T
	commands []cli.Command
}

// New returns a bench for the commands, inside the session S of a client.
func New(t *testing.T, commands []cli.Command) *Bench {
	t.Helper()
	return &Bench{
		Env:      map[string]string{"CAPGATE_DATA_DIR": t.TempDir(), "CLAUDE_CODE_SESSION_ID": "S"},
		Now:      time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC),
		t:        t,
		commands: commands,
	}
}

func (b *Bench) lookup(name string) (string, bool) {
	v, ok := b.Env[name]
	return v, ok
}

// Outside is what a command line sees of the bench.
func (b *Bench) Outside(stdout, stderr io.Writer, args ...string) cli.Outside {
	return cli.Outside{
		Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Lookup: b.lookup,
		Environment: func() (capgate.Config, error) { return capgate.LoadConfig(b.lookup), nil },
		Now:         func() time.Time { return b.Now }, Version: b.Version,
	}
}

// Run runs a command line.
func (b *Bench) Run(args ...string) (stdout, stderr string, status int) {
	b.t.Helper()
	var out, errs bytes.Buffer
	status = cli.Main(b.Outside(&out, &errs, args...), b.commands)
	return out.String(), errs.String(), status
}

// Done runs a command line that must be done, and returns what it printed.
func (b *Bench) Done(args ...string) string {
	b.t.Helper()
	out, errs, status := b.Run(args...)
	require.Equal(b.t, cli.StatusDone, status, errs)
	require.Empty(b.t, errs)
	return out
}
