package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/scope"
)

// envFile gives the world an entry with an environment file in the place of a process environment.
func (w *world) envFile(lines ...string) *world {
	path := filepath.Join(filepath.Dir(w.state), "capgate.env")
	lines = append([]string{"# settings", "CAPGATE_DATA_DIR=" + w.state, "CAPGATE_DEADLINE_MS=10000"}, lines...)
	require.NoError(w.t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	w.args, w.env = []string{"--env-file", path}, map[string]string{}
	return w
}

// What a person writes into the file holds at the next call of a running session.
func TestAnEnvironmentFileIsInForceAtTheNextCall(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	for _, c := range []struct {
		lines []string
		tool  string
		code  string // "" = the call passes
	}{
		{[]string{"CAPGATE_ENABLED=1"}, "WebSearch", capgate.CodeBudgetSpent},
		{nil, "WebSearch", ""},
		{[]string{"VOYAGE_STORM_ENABLED='1'"}, "WebSearch", capgate.CodeBudgetSpent},
		{[]string{"CAPGATE_ENABLED=1", "VOYAGE_DISABLE_CAP_HOOK=1"}, "WebSearch", ""},
		{[]string{"CAPGATE_ENABLED=1", "CAPGATE_CAP_TOOLS=Read"}, "Read", capgate.CodeBudgetSpent},
		{[]string{"CAPGATE_ALLOWED_SUBAGENTS=a"}, "Bash", "bash"},
		{[]string{"CAPGATE_ALLOWED_SUBAGENTS=a", "CAPGATE_DISABLE_GATES=1"}, "Bash", ""},
	} {
		w.envFile(c.lines...)
		if got := w.hook(call(session, c.tool)); c.code == "" {
			w.requirePass(got)
		} else {
			w.requireDeny(got, c.code)
		}
	}
}

func TestAnEntryWithAnEnvironmentFileDoesNotHeedTheEnvironment(t *testing.T) {
	other := newWorld(t)
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1).envFile("CAPGATE_ENABLED=1")
	w.env = map[string]string{"CAPGATE_ENABLED": "0", "CAPGATE_DATA_DIR": other.state, "CAPGATE_LEDGER": other.state + "/l", "CAPGATE_CAP_TOOLS": "Bash", "CLAUDE_PLUGIN_DATA": other.state}
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	w.env["CAPGATE_DISABLE"] = "1"
	w.requirePass(w.hook(call(session, "WebSearch")))
}

func TestAnEnvironmentFileOfAProjectIsFoundFromAnywhereInIt(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1).envFile("CAPGATE_ENABLED=1")
	project, path := filepath.Split(w.args[1])
	w.args[1] = path
	w.env["CLAUDE_PROJECT_DIR"] = filepath.Clean(project)
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
}

// Where it cannot be read nobody knows what was switched on: what might be bounded is denied, and nothing else.
func TestAnUnreadableEnvironmentFileDeniesWhatItMightBound(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"gone":        os.Remove,
		"no settings": func(p string) error { return os.WriteFile(p, []byte("{}"), 0o600) },
		"a directory": func(p string) error { _ = os.Remove(p); return os.Mkdir(p, 0o700) },
		"too long":    func(p string) error { return os.WriteFile(p, make([]byte, capgate.MaxEnvFile+1), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).envFile("CAPGATE_ENABLED=1")
			require.NoError(t, spoil(w.args[1]))
			for _, tool := range []string{"WebSearch", "WebFetch", "Agent", "Task", "Workflow", "Bash", "PowerShell", "Monitor"} {
				got := w.hook(call(session, tool))
				require.Equal(t, 2, got.exit, tool)
				require.Empty(t, got.stdout)
				require.Contains(t, got.stderr, w.args[1])
				require.Contains(t, got.stderr, "do not retry")
			}
			require.Equal(t, 2, w.hook("no payload").exit)
			for _, tool := range []string{"Read", "Write", "Edit", "TodoWrite"} {
				w.requirePass(w.hook(call(session, tool)))
			}
			w.requirePass(w.hook(event("SessionStart", session, "source", "startup")))
			w.env["CAPGATE_DISABLE"] = "1"
			w.requirePass(w.hook(call(session, "WebSearch")))
		})
	}
	t.Run("a FIFO that nobody writes", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("there are no FIFOs")
		}
		w := newWorld(t).envFile()
		require.NoError(t, os.Remove(w.args[1]))
		require.NoError(t, exec.Command("mkfifo", w.args[1]).Run())
		require.Equal(t, 2, w.hook(call(session, "WebSearch")).exit)
	})
}

func TestAnOperatorsWordHoldsAtTheNextCall(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	w.env["CAPGATE_ALLOWED_SUBAGENTS"] = "a"
	search, bash, read := call(session, "WebSearch"), call(session, "Bash"), call(session, "Read")
	now, soon := time.Now().UTC(), time.Now().Add(time.Hour)
	say := func(what string, until *time.Time) {
		t.Helper()
		require.NoError(t, control.Off(w.state, control.Word{At: now, Until: until, Only: what, Reason: "why", By: "alice"}))
	}
	w.requireDeny(w.hook(search), capgate.CodeBudgetSpent)
	say(control.Everything, nil)
	w.requirePass(w.hook(search))
	w.requirePass(w.hook(bash))
	w.requirePass(w.hook("no payload"))
	say(control.Cap, &soon)
	w.requirePass(w.hook(search))
	w.requireDeny(w.hook(bash), "bash")
	say(control.Gates, &soon)
	w.requireDeny(w.hook(search), capgate.CodeBudgetSpent)
	w.requirePass(w.hook(bash))
	say(control.Everything, &now)
	w.requireDeny(w.hook(search), capgate.CodeBudgetSpent)

	say(control.Everything, nil)
	require.NoError(t, control.Halt(w.state, control.Word{At: now, Reason: "the wrong branch", By: "alice"}))
	for _, payload := range []string{search, bash, read, call("another", "Read"), "no payload", ""} {
		got := w.hook(payload)
		w.requireDeny(got, capgate.CodeHalted)
		require.Contains(t, got.stderr, "an operator has halted every tool call (the wrong branch)")
	}
	w.requirePass(w.hook(event("SessionStart", session, "source", "startup")))
	for _, off := range []map[string]string{{"CAPGATE_DISABLE": "1"}, {"CAPGATE_ENABLED": "0", "CAPGATE_ALLOWED_SUBAGENTS": ""}} {
		for k, v := range off {
			w.env[k] = v
		}
		w.requirePass(w.hook(read))
		w.env["CAPGATE_DISABLE"] = ""
	}
	w.env["CAPGATE_ENABLED"] = "1"
	_, err := control.Lift(w.state)
	require.NoError(t, err)
	w.requirePass(w.hook(read))
	w.requireDeny(w.hook(search), capgate.CodeBudgetSpent)
}

// A call that is being judged while somebody halts may go on, and then the halt has not returned.
func TestAHaltReturnsWhenNoCallIsUnderWay(t *testing.T) {
	if !disk.HasFlock {
		t.Skip("this system has no flock")
	}
	w := newWorld(t).open("r", 1, 1).arm(session, "r")
	cmd := w.command(t.Context())
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	heldByTheHook := func() bool {
		dir, err := os.Open(w.state)
		require.NoError(t, err)
		defer func() { _ = dir.Close() }()
		return disk.TryLock(dir, disk.Exclusive) != nil
	}
	require.Eventually(t, heldByTheHook, 10*time.Second, time.Millisecond)
	require.NoError(t, control.Halt(w.state, control.Word{At: time.Now(), Reason: "r", By: "a"}))
	require.ErrorIs(t, control.Drain(t.Context(), w.state, 50*time.Millisecond), control.ErrUnderWay)
	w.requireDeny(w.hook(call("another", "Read")), capgate.CodeHalted)
	var returned atomic.Bool
	drained := make(chan error, 1)
	go func() {
		err := control.Drain(t.Context(), w.state, time.Minute)
		returned.Store(true)
		drained <- err
	}()
	_, err = io.WriteString(stdin, call(session, "Read"))
	require.NoError(t, err)
	require.False(t, returned.Load())
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait(), "it was let through before")
	require.NoError(t, <-drained)
}

func TestNoCallPassesOnceAHaltHasReturned(t *testing.T) {
	if !disk.HasFlock {
		t.Skip("this system has no flock")
	}
	w := newWorld(t).open("r", 100, 1).arm(session, "r")
	require.NotEmpty(t, scope.Path(w.state, session))
	var halted atomic.Bool
	var passed, denied, wrong atomic.Int64
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			for range 200 {
				late := halted.Load()
				if w.hook(call(session, "WebSearch")).exit != 0 {
					denied.Add(1)
					if late {
						return
					}
					continue
				}
				passed.Add(1)
				if late {
					wrong.Add(1)
				}
			}
		})
	}
	require.Eventually(t, func() bool { return passed.Load() > 64 }, time.Minute, time.Millisecond)
	require.NoError(t, control.Halt(w.state, control.Word{At: time.Now(), Reason: "r", By: "a"}))
	require.NoError(t, control.Drain(t.Context(), w.state, 10*time.Second))
	halted.Store(true)
	clients.Wait()
	require.Zero(t, wrong.Load())
	require.GreaterOrEqual(t, denied.Load(), int64(32))
}
