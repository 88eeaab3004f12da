//go:build live

package live_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// withClaude also puts the client on PATH under the name that people call it by.
func withClaude(x *setup) *setup {
	x.t.Helper()
	require.NoError(x.t, os.Symlink(x.Clients.Claude, filepath.Join(x.bin, "claude")))
	return x
}

// looped is the command line of a loop of the program main. flags are the loop's own.
func looped(run string, flags ...string) []string {
	return append(append([]string{"capgate", "loop", "--run", run}, flags...),
		"--", "claude", "-p", "PROGRAM:main", "--allowedTools", strings.Join(everyTool, ","))
}

// person is a command of a person's who has the client's account.
func (x *setup) person(command []string) *exec.Cmd {
	return x.command(x.Environ(), filepath.Join(x.bin, command[0]), command[1:]...)
}

// ended runs such a command to its end.
func (x *setup) ended(command []string) (stdout, stderr string, exit int) {
	x.t.Helper()
	return x.run(x.Environ(), filepath.Join(x.bin, command[0]), command[1:]...)
}

// requireUsed checks how much of a run is spent, that no turn without a dimension is open, and that its ledger is sound.
func (x *setup) requireUsed(run string, used, limit int) {
	x.t.Helper()
	var shown struct{ Used, Limit int }
	require.NoError(x.t, json.Unmarshal([]byte(x.capgate("run", "show", run, "--json")), &shown))
	require.Equal(x.t, used, shown.Used)
	require.Equal(x.t, limit, shown.Limit)
	require.Contains(x.t, x.capgate("turn", "end", "--run", run), "no turn is open that this could end")
	x.capgate("ledger", "verify")
}

// requireOneConversation checks how many turns of the program main a model was asked for, in one conversation.
func (x *setup) requireOneConversation(turns int) {
	x.t.Helper()
	transcripts, err := filepath.Glob(filepath.Join(x.Home, ".claude", "projects", "*", "*.jsonl"))
	require.NoError(x.t, err)
	require.Len(x.t, transcripts, 1)
	require.Equal(x.t, turns, x.taken())
}

// taken is how many turns of the program main have got as far as to the model.
func (x *setup) taken() int {
	n := 0
	for _, r := range x.Model.Of("main") {
		if r.Turn == 0 {
			n++
		}
	}
	return n
}

// A loop of eight turns is one conversation, in which every turn searches and a ninth is not begun. Granted turns are taken
// by the same command line, and what it says goes to standard error, a line a fact.
func TestLiveLoopOfClaudeToItsCap(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {search, live.Say("one more turn's worth")}})
	x := withClaude(withInstall(ctx, t, s))
	heard := filepath.Join(s.Home, "heard")
	command := looped("night", "--max-conv-turns", "8", "--until", "capgate scope list >>'"+heard+"'; false")
	stdout, stderr, exit := x.ended(command)
	require.Equal(t, 2, exit, stderr)
	require.Equal(t, strings.Repeat("one more turn's worth\n", 8), stdout, "the client's own")
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	require.Len(t, lines, 1+8*2+1, stderr)
	require.Contains(t, lines[0], "run night: 0 of 8 turns used")
	require.Regexp(t, `^capgate: 20\S+ turn 8 of 8 begun \(run night\)$`, lines[15])
	require.Regexp(t, `^capgate: 20\S+ turn 8 of 8 ended \(run night\), 0 left$`, lines[16])
	require.Equal(t, "capgate: turn budget spent (8 of 8, run night); go on with `capgate run grant night --turns N --reason TEXT`, then the same command line", lines[17])
	requireDenials(t, s.Model, "main", "WebSearch", []bool{7: false})
	x.requireOneConversation(8)
	x.requireUsed("night", 8, 8)
	x.requireArmed()
	text, err := os.ReadFile(heard)
	require.NoError(t, err)
	require.Equal(t, 8, strings.Count(string(text), " heard "), "%s", text)

	x.capgate("run", "grant", "night", "--turns", "2", "--reason", "two questions are open")
	_, stderr, exit = x.ended(command)
	require.Equal(t, 2, exit, stderr)
	require.Contains(t, stderr, "spent (10 of 10, run night)")
	requireDenials(t, s.Model, "main", "WebSearch", []bool{9: false})
	x.requireOneConversation(10)
	x.requireUsed("night", 10, 10)
}

// waits is what a turn of a loop does that is to be interrupted: only the numbered one waits, for half a minute at most.
func waits(turn int) live.Step {
	return live.Call("Bash", live.M{"command": fmt.Sprintf("test $CAPGATE_TURN != %d || { touch waiting; sleep 30; }", turn)})
}

func (x *setup) waiting() {
	x.t.Helper()
	x.until("the turn waits", func() bool { _, err := os.Stat(filepath.Join(x.Work, "waiting")); return err == nil })
}

// On a terminal a loop draws how far it has come. ^C there goes to everybody, and the client ends with 0 after it; the turn is
// over and spent. The same command line goes on in the same conversation.
func TestLiveLoopInterruptedInATerminalGoesOn(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {waits(3), search, live.Say("done")}})
	x := withClaude(withInstall(ctx, t, s))
	command := looped("night", "--max-conv-turns", "8")
	terminal, err := s.ClaudeTerminalUnder(ctx, nil, command...)
	unavailable(t, err)
	t.Cleanup(func() { require.NoError(t, terminal.Close()) })
	x.waiting()
	_, err = terminal.WaitFor(`(?s)● night: 0 of 8 turns used · session.*▪ 3/8  \d\d:\d\d  ■■▪□□□□□`)
	require.NoError(t, err)
	require.NoError(t, terminal.SendKeys("C-c"))
	_, err = terminal.WaitFor(`(?s)run night was interrupted \(interrupt\) in turn 3 of 8, with\s+5\s+turns left: the same\s+command\s+line\s+goes\s+on\s+with\s+it.*status 130`)
	require.NoError(t, err)
	x.requireUsed("night", 3, 8)
	x.requireArmed()

	_, stderr, exit := x.ended(command)
	require.Equal(t, 2, exit, stderr)
	require.Contains(t, stderr, "run night: 3 of 8 turns used")
	requireDenials(t, s.Model, "main", "WebSearch", []bool{6: false}) // the third had not got to it
	x.requireOneConversation(8)
	x.requireUsed("night", 8, 8)
}

// A signal to the loop alone is passed on and ends it: the exit status tells of it, whatever the client's was.
func TestLiveLoopPassesSignalsOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		step   live.Step
		flags  []string
		exit   int
	}{
		{"an interrupt in a turn", syscall.SIGINT, waits(1), nil, 130},
		{"a termination in a turn", syscall.SIGTERM, waits(1), nil, 143},
		{"an interrupt between two", syscall.SIGINT, search, []string{"--until", "touch waiting; exec sleep 30"}, 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{"main": {c.step, live.Say("done")}})
			x := withClaude(withInstall(ctx, t, s))
			loop := x.person(looped("night", append(c.flags, "--max-conv-turns", "2")...))
			var stderr bytes.Buffer
			loop.Stderr = &stderr
			require.NoError(t, loop.Start())
			x.waiting()
			require.NoError(t, loop.Process.Signal(c.signal))
			require.Error(t, loop.Wait())
			require.Equal(t, c.exit, loop.ProcessState.ExitCode(), stderr.String())
			require.Contains(t, stderr.String(), "with 1 turn left")
			x.requireUsed("night", 1, 2)
			x.requireArmed()
		})
	}
}

// What ends a loop besides its cap.
func TestLiveLoopEndsWithItsConditionOrItsClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		steps  []live.Step
		flags  []string // of the loop
		more   []string // of the client
		exit   int
		stderr string
		used   int
	}{
		{
			"the condition", []live.Step{live.Call("Bash", live.M{"command": "test $CAPGATE_TURN != 3 || touch DONE"}), live.Say("done")},
			[]string{"--until", "test -e DONE"}, nil, 0, "run night is done after 3 turns: the command of --until succeeded", 3,
		},
		{
			"the client's failure", []live.Step{search, live.Say("done")},
			nil, []string{"--max-turns", "1"}, 1, "the command ended with status 1 in turn 1 of 4", 1,
		},
		{
			"a flag that the client does not know", nil,
			nil, []string{"--no-such-flag"}, 1, "the command ended with status 1 in turn 1 of 4", 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{"main": c.steps})
			x := withClaude(withInstall(ctx, t, s))
			_, stderr, exit := x.ended(append(looped("night", append(c.flags, "--max-conv-turns", "4")...), c.more...))
			require.Equal(t, c.exit, exit, stderr)
			require.Contains(t, stderr, c.stderr)
			x.requireUsed("night", c.used, 4)
			x.requireArmed()
		})
	}
}

func TestLiveLoopASecondOneOfTheRunAndDimensionIsRefused(t *testing.T) {
	t.Parallel()
	second := func(dimension string) live.Step {
		return live.Call("Bash", live.M{"command": "capgate loop --run night --dimension " + dimension + " -- touch " + dimension})
	}
	ctx, s := startLive(t, live.Programs{"main": {second("history"), second("economics"), live.Say("done")}})
	x := withClaude(withInstall(ctx, t, s))
	_, stderr, exit := x.ended(looped("night", "--max-conv-turns", "1", "--max-dimensions", "2", "--dimension", "history"))
	require.Equal(t, 2, exit, stderr)
	tried := s.Model.ResultsOf("main", "Bash")
	require.Len(t, tried, 2)
	require.Regexp(t, `Exit code 1\s+capgate: run night, dimension history: the run is looped already by process \d+ since `, tried[0].Text)
	require.NoFileExists(t, filepath.Join(s.Work, "history"))
	require.FileExists(t, filepath.Join(s.Work, "economics"), tried[1].Text)
	x.requireUsed("night", 2, 2)
}

// Whatever is killed, and when: the same command line, as often as it takes, gets to exactly the run's turns.
func TestLiveLoopThatIsKilledTakesNoTurnTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kill func(t *testing.T, loop int)
	}{
		{"the loop", func(t *testing.T, loop int) {
			t.Helper()
			require.NoError(t, syscall.Kill(loop, syscall.SIGKILL))
		}},
		{"the client", func(t *testing.T, loop int) {
			t.Helper()
			if runtime.GOOS != "linux" {
				t.Skip("the client is found by /proc")
			}
			for _, child := range childrenOf(loop) {
				_ = syscall.Kill(child, syscall.SIGKILL) // it may just have ended
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const turns = 14
			ctx, s := startLive(t, live.Programs{"main": {search, live.Say("done")}})
			x := withInstall(ctx, t, s)
			started := filepath.Join(s.Home, "started") // a line for each client: its turn, and how it was given its session
			script := fmt.Sprintf("#!/bin/sh\necho \"$CAPGATE_TURN $1\" >>'%s'\nexec '%s' \"$@\"\n", started, s.Clients.Claude)
			require.NoError(t, os.WriteFile(filepath.Join(x.bin, "claude"), []byte(script), 0o700))
			command := looped("night", "--max-conv-turns", strconv.Itoa(turns))
			for _, after := range []int{20, 60, 120, 200, 300, 400, 500, 600, 750, 900, 1200} {
				loop := x.person(command)
				require.NoError(t, loop.Start())
				time.Sleep(time.Duration(after) * time.Millisecond)
				c.kill(t, loop.Process.Pid)
				_ = loop.Wait()
			}
			_, stderr, exit := x.ended(command)
			require.Equal(t, 2, exit, stderr)
			x.requireUsed("night", turns, turns)
			x.requireArmed()
			text, err := os.ReadFile(started)
			require.NoError(t, err)
			lines := strings.Fields(strings.ReplaceAll(string(text), " ", ":"))
			slices.Sort(lines)
			require.Equal(t, slices.Compact(slices.Clone(lines)), lines, "no turn was taken twice")
			require.Contains(t, lines, strconv.Itoa(turns)+":--resume")
			require.LessOrEqual(t, x.taken(), turns)
			require.NotZero(t, x.taken())
			for _, r := range s.Model.ResultsOf("main", "WebSearch") {
				require.NotContains(t, r.Text, "spent", "a turn that was begun searches")
			}
		})
	}
}

// childrenOf returns the processes that a process has started.
func childrenOf(pid int) []int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var all []int
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// A client that runs once in scope counts its own turns; when it ends, its session is disarmed.
func TestLiveExecHoldsAClientWhileItRuns(t *testing.T) {
	t.Parallel()
	exec := func(client ...string) []string {
		return append([]string{"capgate", "run", "exec", "--run", liveRun, "--max-conv-turns", "1", "--", "claude"}, client...)
	}
	begin, end := live.Call("Bash", live.M{"command": "capgate turn begin"}), live.Call("Bash", live.M{"command": "capgate turn end"})
	t.Run("headless", func(t *testing.T) {
		t.Parallel()
		ctx, s := startLive(t, live.Programs{"main": {begin, search, end, search, live.Say("done")}, "after": {search, live.Say("done")}})
		x := withClaude(withInstall(ctx, t, s))
		stdout, stderr, exit := x.ended(exec("-p", "PROGRAM:main", "--allowedTools", strings.Join(everyTool, ",")))
		require.Zero(t, exit, stderr)
		require.Equal(t, "done\n", stdout)
		requireDenials(t, s.Model, "main", "WebSearch", []bool{false, true})
		x.requireUsed(liveRun, 1, 1)
		x.requireArmed()
		_, stderr, exit = x.ended(exec("-p", "PROGRAM:after"))
		require.Zero(t, exit, stderr)
		require.Contains(t, stderr, "run "+liveRun+" has no turn left (1 of 1)")
		x.requireDenied("after", liveRun)
		_, stderr, exit = x.ended(exec("--no-such-flag"))
		require.Equal(t, 1, exit, stderr)
		x.requireArmed()
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		wait := live.Call("Bash", live.M{"command": "touch waiting; sleep 30"})
		ctx, s := startLive(t, live.Programs{"main": {wait, live.Say("done")}})
		x := withClaude(withInstall(ctx, t, s))
		c := x.person(exec("-p", "PROGRAM:main", "--allowedTools", "Bash"))
		require.NoError(t, c.Start())
		x.waiting()
		require.NoError(t, c.Process.Signal(syscall.SIGINT))
		require.Error(t, c.Wait())
		require.Equal(t, 130, c.ProcessState.ExitCode(), "the client's own is 0")
		x.requireArmed()
	})
	t.Run("in a terminal, over a /clear", func(t *testing.T) {
		t.Parallel()
		ctx, s := startLive(t, live.Programs{
			"before": {begin, search, end, live.Say("done before")}, "after": {search, live.Say("done after")},
		})
		x := withClaude(withInstall(ctx, t, s))
		terminal, err := s.ClaudeTerminalUnder(ctx, nil, exec("--permission-mode", "default", "--allowedTools", strings.Join(everyTool, ","))...)
		unavailable(t, err)
		t.Cleanup(func() { require.NoError(t, terminal.Close()) })
		w := window{x, terminal}
		w.shows(`(?m)^\W*❯`)
		w.run("before")
		x.requirePassed("before")
		w.command("/clear")
		w.enter()
		x.until("the session is left", func() bool { return len(x.cleared()) == 1 })
		w.run("after")
		x.requireDenied("after", liveRun)
		w.command("/exit")
		w.enter()
		w.shows("status 0")
		x.requireArmed()
	})
}
