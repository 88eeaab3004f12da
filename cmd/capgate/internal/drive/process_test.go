//go:build unix

package drive

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// asCapgate has the test's own program be the command line.
const asCapgate = "CAPGATE_TEST_DRIVE"

func TestMain(m *testing.M) {
	if os.Getenv(asCapgate) != "" {
		os.Exit(cli.Main(cli.Outside{
			Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv,
			Environment: func() (capgate.Config, error) { return capgate.LoadConfig(os.LookupEnv), nil }, Now: time.Now,
		}, []cli.Command{{Name: "loop", New: NewLoop}}))
	}
	// Under nohup a hangup is ignored, and so it is in what starts below. What starts below a program that catches it has it
	// as usual.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(m.Run())
}

// loopProcess is `capgate loop` of one run, again and again.
type loopProcess struct {
	t           *testing.T
	state, dir  string
	limit       int
	before      []string // a command that starts it
	out, errors bytes.Buffer
}

func newLoopProcess(t *testing.T, limit int) *loopProcess {
	return &loopProcess{t: t, state: t.TempDir(), dir: t.TempDir(), limit: limit}
}

// start starts the loop over a command for sh, in a process group of its own.
func (l *loopProcess) start(script string) *exec.Cmd {
	l.t.Helper()
	self, err := os.Executable()
	require.NoError(l.t, err)
	args := append(append([]string{}, l.before...), self, "loop", "--run", "r", "--max-conv-turns", fmt.Sprint(l.limit), "--", "sh", "-c", script)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), asCapgate+"=1", "CAPGATE_DATA_DIR="+l.state)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	l.out.Reset()
	l.errors.Reset()
	cmd.Stdout, cmd.Stderr = &l.out, &l.errors
	require.NoError(l.t, cmd.Start())
	return cmd
}

// end waits for the loop's end and returns its exit status, -1 after a signal.
func (l *loopProcess) end(cmd *exec.Cmd) int {
	l.t.Helper()
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		require.Failf(l.t, "the loop does not end", "%s", l.errors.String())
	}
	return cmd.ProcessState.ExitCode()
}

// lines returns the lines of a file in the loop's directory.
func (l *loopProcess) lines(name string) []string {
	text, err := os.ReadFile(filepath.Join(l.dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(l.t, err)
	return strings.Fields(string(text))
}

func (l *loopProcess) usage() ledger.Usage {
	l.t.Helper()
	u, err := ledger.NewFile(filepath.Join(l.state, "ledger.db"), ledger.Options{}).Usage(l.t.Context(), "r")
	require.NoError(l.t, err)
	return u
}

func (l *loopProcess) requireDisarmed() {
	l.t.Helper()
	armed, err := scope.List(l.state)
	require.NoError(l.t, err)
	require.Empty(l.t, armed)
}

func TestAKilledLoopNeverTakesATurnTwiceAndNeverOneTooMany(t *testing.T) {
	const limit = 40
	l := newLoopProcess(t, limit)
	const script = `echo $CAPGATE_TURN >>turns; sleep 0.02; echo $CAPGATE_TURN >>over`
	kills, status := 0, -1
	for delay := time.Duration(0); kills < 200; delay = (delay + 7*time.Millisecond) % (60 * time.Millisecond) {
		cmd := l.start(script)
		time.Sleep(delay)
		if err := cmd.Process.Kill(); err == nil {
			kills++
		}
		if status = l.end(cmd); status == 2 {
			break
		}
	}
	if status != 2 {
		status = l.end(l.start(script))
	}
	require.Equal(t, 2, status, l.errors.String())
	require.Contains(t, l.errors.String(), "spent (40 of 40, run r)")
	require.Equal(t, int64(limit), l.usage().Used)
	require.Zero(t, l.usage().Turns.Open, "the turn that was open when its loop was killed is ended by the next begin")
	seen := map[string]bool{}
	for _, turn := range l.lines("turns") {
		require.False(t, seen[turn], "turn %s was taken twice", turn)
		seen[turn] = true
	}
	require.NotEmpty(t, l.lines("over"))
	l.requireDisarmed()
	t.Logf("%d kills, %d of %d turns were begun by their command", kills, len(seen), limit)
}

func TestAnInterruptedLoopGoesOnWithTheNextTurn(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		group  bool // the whole process group, as a terminal does
		script string
		status int
	}{
		{"^C, the command ends with 0 as an interrupted client does", syscall.SIGINT, true, "trap 'exit 0' INT", 130},
		{"^C, the command ends of it", syscall.SIGINT, true, ":", 130},
		{"a signal to the loop alone is passed on", syscall.SIGTERM, false, "trap 'echo told >>told; exit 0' TERM", 143},
		{"hangup", syscall.SIGHUP, false, "trap 'echo told >>told; exit 0' HUP", 129},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLoopProcess(t, 5)
			cmd := l.start(c.script + `; echo $CAPGATE_TURN >>turns; if test $CAPGATE_TURN = 3; then touch third; i=0; while test $i -lt 400; do sleep 0.05; i=$((i+1)); done; fi`)
			require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(l.dir, "third")); return err == nil }, 20*time.Second, 5*time.Millisecond)
			to := cmd.Process.Pid
			if c.group {
				to = -to
			}
			require.NoError(t, syscall.Kill(to, c.signal))
			require.Equal(t, c.status, l.end(cmd), l.errors.String())
			require.Regexp(t, `capgate: run r was interrupted \([a-z ]+\) in turn 3 of 5, with 2 turns left: the same command line goes on with it`, l.errors.String())
			require.Equal(t, !c.group, len(l.lines("told")) > 0)
			require.Equal(t, int64(3), l.usage().Used)
			require.Zero(t, l.usage().Turns.Open)
			l.requireDisarmed()
			require.Equal(t, 2, l.end(l.start(`echo $CAPGATE_TURN >>turns`)), l.errors.String())
			require.Equal(t, []string{"1", "2", "3", "4", "5"}, l.lines("turns"))
		})
	}
}

// A loop that runs overnight is started with nohup, and its terminal is closed.
func TestALoopUnderNohupOutlivesItsTerminal(t *testing.T) {
	l := newLoopProcess(t, 3)
	l.before = []string{"nohup"}
	cmd := l.start(`touch began; sleep 0.1`)
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(l.dir, "began")); return err == nil }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP))
	require.Equal(t, 2, l.end(cmd), l.errors.String())
	require.Equal(t, int64(3), l.usage().Used)
}
