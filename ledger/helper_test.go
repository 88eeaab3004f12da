package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test binary is also every other process of the tests: a child runs one role, named in the environment.
const roleVariable = "CAPGATE_LEDGER_TEST_ROLE"

var roles = map[string]func(l *File, args []string) error{
	"turns":  turnsRole,
	"budget": budgetRole,
	"open":   openRole,
}

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](NewFile(os.Args[1], Options{}), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// turnsRole records turns of a run until it is refused, one line with the sequence for each.
func turnsRole(l *File, args []string) error {
	for {
		r, err := l.RecordTurn(context.Background(), args[0], "", "")
		if errors.Is(err, ErrBudgetSpent) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(r.Seq)
	}
}

// budgetRole reads the budget of a run as often as it is told: used, and the microseconds that it took.
func budgetRole(l *File, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for range n {
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		b, err := l.Budget(ctx, args[0], nil)
		cancel()
		if err != nil {
			return err
		}
		fmt.Println(b.Used, time.Since(start).Microseconds())
		time.Sleep(time.Millisecond)
	}
	return nil
}

// openRole opens a run of its own and says which ledger it is in.
func openRole(l *File, args []string) error {
	r, err := l.OpenRun(context.Background(), args[0], 1, 1)
	if err != nil {
		return err
	}
	head, err := l.Head(context.Background())
	fmt.Println(head.Ledger, r.Seq)
	return err
}

// child is another process at work.
type child struct {
	*exec.Cmd
	out *bufio.Scanner
	err *strings.Builder
}

func start(t *testing.T, path, role string, args ...string) *child {
	t.Helper()
	c, err := launch(path, role, args...)
	require.NoError(t, err)
	t.Cleanup(c.kill)
	return c
}

// launch is start for goroutines, which must not end the test.
func launch(path, role string, args ...string) (*child, error) {
	c := &child{Cmd: exec.Command(os.Args[0], append([]string{path}, args...)...), err: &strings.Builder{}}
	c.Env = append(os.Environ(), roleVariable+"="+role, "GOMAXPROCS=1")
	c.Stderr = c.err
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	return c, c.Start()
}

func (c *child) kill() {
	c.Process.Kill()
	c.Wait()
}

// lines reads what the child has to say until it ends.
func (c *child) lines() (lines []string) {
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	return lines
}

// finish waits for a child that must succeed.
func (c *child) finish(t *testing.T) []string {
	t.Helper()
	lines := c.lines()
	require.NoError(t, c.Wait(), c.err)
	return lines
}

// newLedger makes an empty ledger file that must verify when the test is over.
func newLedger(t *testing.T) *File {
	t.Helper()
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{})
	t.Cleanup(func() { requireSound(t, l) })
	return l
}

func requireSound(t *testing.T, l *File) {
	t.Helper()
	report, err := l.Verify(context.Background())
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

func mustOpen(t *testing.T, l *File, run string, maxConvTurns, maxDimensions int64) Receipt {
	t.Helper()
	r, err := l.OpenRun(context.Background(), run, maxConvTurns, maxDimensions)
	require.NoError(t, err)
	return r
}

func mustTurn(t *testing.T, l *File, run, dimension, key string) Receipt {
	t.Helper()
	r, err := l.RecordTurn(context.Background(), run, dimension, key)
	require.NoError(t, err)
	return r
}

func mustBudget(t *testing.T, l *File, run string) Budget {
	t.Helper()
	b, err := l.Budget(context.Background(), run, nil)
	require.NoError(t, err)
	return b
}

// counts is a budget without its time.
func (b Budget) counts() Budget {
	b.LastAt = time.Time{}
	return b
}

// scaled is a size for tests that can do with less: under -short a tenth of it, with the race detector a third.
func scaled(n int) int {
	switch {
	case testing.Short():
		return max(n/10, 1)
	case raceDetector:
		return max(n/3, 1)
	}
	return n
}
