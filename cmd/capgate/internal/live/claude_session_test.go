//go:build live

package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
	"github.com/capgate/capgate/scope"
)

// TestLiveClaudeASessionThatGoesOnIsStillHeld: a client that ends has ended nothing.
func TestLiveClaudeASessionThatGoesOnIsStillHeld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how  string
		args func(session string) []string
	}{
		{"resumed by its id", func(session string) []string { return []string{"--resume", session} }},
		{"continued", func(string) []string { return []string{"--continue"} }},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":  {live.Call("Bash", live.M{"command": "capgate scope list --json"}), live.Say("done main")},
				"again": {search, live.Say("done again")},
			})
			x := withInstall(ctx, t, s)
			session := x.armSpent()
			x.claude(session)
			require.Contains(t, oneResult(t, s.Model, "main", "Bash").Text, session, "while it runs")
			require.Contains(t, x.capgate("scope", "list"), session)
			require.Equal(t, session, x.headless("again", c.args(session)...).Session)
			x.requireDenied("again", liveRun)
			x.requireArmed(session)
		})
	}
}

// requireDenied checks that the program's only search was denied, because the turns of its run of one turn are spent.
func (x *setup) requireDenied(program, run string) {
	x.t.Helper()
	result := oneResult(x.t, x.Model, program, "WebSearch")
	require.True(x.t, result.IsError, result.Text)
	require.Contains(x.t, result.Text, "turn budget spent (1 of 1, run "+run+")")
}

func (x *setup) requirePassed(program string) {
	x.t.Helper()
	result := oneResult(x.t, x.Model, program, "WebSearch")
	require.False(x.t, result.IsError, result.Text)
}

// requireArmed checks which sessions have a marker: these, and no others.
func (x *setup) requireArmed(sessions ...string) {
	x.t.Helper()
	listed, err := scope.List(x.state())
	require.NoError(x.t, err)
	var armed []string
	for _, m := range listed {
		armed = append(armed, m.Session)
	}
	require.ElementsMatch(x.t, sessions, armed)
}

// headless runs one program of a session, which must end by itself.
func (x *setup) headless(program string, args ...string) live.ClaudeResult {
	x.t.Helper()
	got, err := x.ClaudeHeadless(x.ctx, live.ClaudeRun{Prompt: "PROGRAM:" + program, AllowedTools: everyTool, Args: args})
	require.NoError(x.t, err)
	require.Zero(x.t, got.Exit, got.Stderr)
	return got
}

// window is a client in a terminal, whose programs say "done NAME" in the end.
type window struct {
	x *setup
	*live.Terminal
}

// open starts a client in a terminal with a program.
func (x *setup) open(program string, args ...string) window {
	x.t.Helper()
	terminal, err := x.ClaudeTerminal(x.ctx, live.ClaudeRun{
		Prompt: "PROGRAM:" + program, AllowedTools: everyTool, Args: append([]string{"--permission-mode", "default"}, args...),
	})
	unavailable(x.t, err)
	x.t.Cleanup(func() { require.NoError(x.t, terminal.Close()) })
	w := window{x, terminal}
	w.shows("done " + program)
	return w
}

func (w window) shows(pattern string) {
	w.x.t.Helper()
	_, err := w.WaitFor(pattern)
	require.NoError(w.x.t, err)
}

// run runs another program to its end.
func (w window) run(program string) {
	w.x.t.Helper()
	require.NoError(w.x.t, w.SendKeys("PROGRAM:"+program, "Enter"))
	w.shows("done " + program)
}

// command types a command of the client's; Enter is for the caller.
func (w window) command(text string) {
	w.x.t.Helper()
	require.NoError(w.x.t, w.SendKeys(text))
	w.shows("❯." + strings.ReplaceAll(regexp.QuoteMeta(text), " ", ".+")) // the client has spaces of its own
}

func (w window) enter() {
	w.x.t.Helper()
	require.NoError(w.x.t, w.SendKeys("Enter"))
}

// until polls a condition that another process makes true.
func (x *setup) until(what string, holds func() bool) {
	x.t.Helper()
	for !holds() {
		select {
		case <-x.ctx.Done():
			require.Fail(x.t, "it did not come to this in time: "+what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestLiveClaudeASecondProcessOfASessionEndsAndTheFirstIsStillHeld(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"first": {live.Say("done first")}, "second": {live.Say("done second")}, "after": {search, live.Say("done after")},
	})
	x := withInstall(ctx, t, s)
	session := x.armSpent()
	w := x.open("first", "--session-id", session)
	require.Equal(t, session, x.headless("second", "--resume", session).Session)
	w.run("after")
	x.requireDenied("after", liveRun)
}

func TestLiveClaudeASessionThatIsLeftForAnotherIsHeldWhenItIsResumed(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"other": {live.Say("done other")}, "main": {live.Say("done main")},
		"there": {search, live.Say("done there")}, "back": {search, live.Say("done back")},
	})
	x := withInstall(ctx, t, s)
	other := x.headless("other").Session
	session := x.armSpent()
	w := x.open("main", "--session-id", session)
	for _, to := range []struct{ session, shows, program string }{{other, "done other", "there"}, {session, "done main", "back"}} {
		w.command("/resume " + to.session)
		w.enter()
		w.shows(to.shows)
		w.run(to.program)
	}
	x.requirePassed("there")
	x.requireDenied("back", liveRun)
	x.requireArmed(session)
}

// In a terminal /clear begins a session under a new id. The loop goes on in it, and so does its bound, also where the client
// does not say that the session has started. Disarming the new one disarms both.
func TestLiveClaudeClearGoesOnInTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		told bool // of the session's start
	}{{"the client tells of the new session", true}, {"its first call does", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"before": {live.Say("done before")},
				"after": {
					search, live.Call("Bash", live.M{"command": `echo "id=$CLAUDE_CODE_SESSION_ID state=$CAPGATE_DATA_DIR"`}), live.Say("done after"),
				},
				"free": {live.Call("Bash", live.M{"command": "capgate scope close"}), search, live.Say("done free")},
			})
			x := withInstall(ctx, t, s)
			if !c.told {
				x.edit(x.userSettings(), func(settings live.M) { delete(settings["hooks"].(live.M), "SessionStart") })
			}
			session := x.armSpent()
			w := x.open("before", "--session-id", session)
			w.command("/clear")
			w.enter()
			x.until("the session is left", func() bool { return len(x.cleared()) == 1 })
			w.run("after")
			x.requireDenied("after", liveRun)
			decisions := x.decisions()
			require.Len(t, decisions, 1)
			next := decisions[0].Session
			require.NotEqual(t, session, next)
			x.requireArmed(session, next)
			shell := oneResult(t, s.Model, "after", "Bash").Text
			require.Contains(t, shell, "id="+next)
			if c.told {
				require.Contains(t, shell, "state="+x.state())
			}
			w.run("free")
			x.requirePassed("free")
			x.requireArmed()
		})
	}
}

// cleared is what the hook has noted of clients that left a session.
func (x *setup) cleared() []string {
	x.t.Helper()
	notes, err := filepath.Glob(filepath.Join(x.state(), scope.ClearedDir, "*.json"))
	require.NoError(x.t, err)
	return notes
}

// TestLiveClaudeTwoClientsThatClearAtOnceGoOnInTheirOwnRuns: which session followed which is told by the client's process.
func TestLiveClaudeTwoClientsThatClearAtOnceGoOnInTheirOwnRuns(t *testing.T) {
	t.Parallel()
	runs := []string{"dawn", "dusk"}
	programs := live.Programs{}
	for _, run := range runs {
		programs[run] = []live.Step{live.Say("done " + run)}
		programs["after-"+run] = []live.Step{search, live.Say("done after-" + run)}
	}
	ctx, s := startLive(t, programs)
	x := withInstall(ctx, t, s)
	var windows []window
	for _, run := range runs {
		session := x.armFor(run)
		x.capgate("turn", "--run", run)
		w := x.open(run, "--session-id", session)
		w.command("/clear")
		windows = append(windows, w)
	}
	for _, w := range windows {
		w.enter()
	}
	x.until("both sessions are left", func() bool { return len(x.cleared()) == len(runs) })
	for i, run := range runs {
		windows[i].run("after-" + run)
		x.requireDenied("after-"+run, run)
	}
}

// An agent in the background outlives /clear. It was started in the old session; what it calls belongs to the new one.
func TestLiveClaudeAnAgentThatOutlivesClearIsStillHeld(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main": {agent("general-purpose", "PROGRAM:leaf", live.M{"run_in_background": true}), live.Say("done main")},
		"leaf": {
			live.Call("Bash", live.M{"command": "touch waiting; until test -e go; do sleep 0.1; done"}), search, live.Say("leaf done"),
		},
	})
	x := withInstall(ctx, t, s)
	session := x.arm()
	w := x.open("main", "--session-id", session)
	x.capgate("turn", "--run", liveRun) // not before: no agent starts at the cap
	x.until("the agent waits", func() bool { _, err := os.Stat(filepath.Join(s.Work, "waiting")); return err == nil })
	w.command("/clear")
	w.enter()
	x.until("the session is left", func() bool { return len(x.cleared()) == 1 })
	writeLive(t, filepath.Join(s.Work, "go"), "")
	x.until("the agent has searched", func() bool { return len(s.Model.ResultsOf("leaf", "WebSearch")) == 1 })
	x.requireDenied("leaf", liveRun)
}

func TestLiveClaudeACompactedSessionIsStillHeld(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"before": {live.Say("done before")}, "after": {search, live.Say("done after")}})
	x := withInstall(ctx, t, s)
	session := x.armSpent()
	w := x.open("before", "--session-id", session)
	w.command("/compact")
	w.enter()
	w.shows(`(?i)compacted`)
	w.run("after")
	x.requireDenied("after", liveRun)
	x.requireArmed(session)
}

// A run that goes on keeps its session in scope, however long it lives. One whose loop has died does not.
func TestLiveClaudeARunHoldsItsSessionWhileItsTurnsAreCounted(t *testing.T) {
	t.Parallel()
	const ttl = 3                            // seconds
	wait := "for i in 1 2; do sleep 1; done" // less than it lives, and a sleep that is not refused for its length
	turn := live.Call("Bash", live.M{"command": wait + "; capgate turn --run " + liveRun})
	for _, c := range []struct {
		name  string
		turns int
		steps []live.Step
		held  bool
	}{
		{"four times as long as a marker lives", 6, []live.Step{turn, turn, turn, turn, turn, turn, search, live.Say("done")}, true},
		{"its loop has died", 1, []live.Step{live.Call("Bash", live.M{"command": wait + "; " + wait}), search, live.Say("done")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{"main": c.steps})
			x := withInstall(ctx, t, s)
			x.set(fmt.Sprintf("CAPGATE_SCOPE_TTL_MS=%d", ttl*1000))
			session := newUUID()
			x.capgate("scope", "open", "--session", session, "--run", liveRun, "--max-conv-turns", fmt.Sprint(c.turns), "--max-dimensions", "1")
			if !c.held {
				x.capgate("turn", "--run", liveRun)
			}
			began := time.Now()
			x.claude(session)
			result := oneResult(t, s.Model, "main", "WebSearch")
			require.Equal(t, c.held, result.IsError, result.Text)
			if c.held {
				require.Greater(t, time.Since(began), 4*ttl*time.Second)
				require.Contains(t, result.Text, "turn budget spent")
				x.requireArmed(session)
			} else {
				x.requireArmed()
			}
		})
	}
}

// A hook that is told its directory by an argument, as a plugin's is, hands it on to the loop's shell.
func TestLiveClaudeTheShellIsToldTheStateDirectory(t *testing.T) {
	t.Parallel()
	args := func(args ...string) func(settings live.M) {
		return func(settings live.M) {
			for _, event := range hookEvents {
				for _, hook := range ours(settings, event) {
					hook["args"] = args
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		edit func(x *setup)
	}{
		{"installed", func(*setup) {}},
		{"a file that names none: the default", func(x *setup) {
			require.NoError(x.t, os.WriteFile(x.envFile(), []byte("CAPGATE_ENABLED=1\n"), 0o600))
		}},
		{"by an argument", func(x *setup) {
			x.edit(x.userSettings(), args("--env", "CAPGATE_ENABLED=1", "--env", "CAPGATE_DATA_DIR="+x.state()))
		}},
		{"nowhere", func(x *setup) { x.edit(x.userSettings(), args("--env", "CAPGATE_ENABLED=1")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main": {live.Call("Bash", live.M{"command": `echo "state=$CAPGATE_DATA_DIR."`}), search, live.Say("done")},
			})
			x := withInstall(ctx, t, s)
			c.edit(x)
			x.claude(x.armSpent())
			want := "state=" + x.state() + "."
			if c.name == "nowhere" {
				want = "state=."
			}
			require.Contains(t, oneResult(t, s.Model, "main", "Bash").Text, want)
			result := oneResult(t, s.Model, "main", "WebSearch")
			require.True(t, result.IsError, "%s", result.Text) // nowhere: what cannot be counted is denied
			require.Equal(t, c.name != "nowhere", strings.Contains(result.Text, spent), result.Text)
		})
	}
}

// Two copies are one hook of the client's where their command is the same, and two where it is not. Either way an
// admission is used once.
func TestLiveClaudeTwoInstalledCopiesCountOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		copies int // that run
	}{{"of the same command", 1}, {"of another command", 2}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main": {
					agent("joke-finder", "PROGRAM:finder"), agent("joke-finder", "PROGRAM:finder"), agent("joke-finder", "PROGRAM:finder"),
					agent("general-purpose", "PROGRAM:finder"), live.Say("done"),
				},
				"finder": {live.Say("finder done")},
			})
			writeFinder(t, s)
			args := []string{"install", "--subagents", "joke-finder", "--admission", "ask"}
			x := withInstall(ctx, t, s, args[1:]...)
			_, errs, exit := x.run(nil, filepath.Join(x.bin, "capgate"), append(args, "--scope", "project")...)
			require.Zero(t, exit, errs)
			if c.copies == 1 { // as of a person who has copied his own settings into the project
				text, err := os.ReadFile(x.userSettings())
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(x.projectSettings(), text, 0o600))
			}
			for _, file := range []string{x.userSettings(), x.projectSettings()} { // with it, the parameter is unknown
				x.edit(file, func(settings live.M) { delete(settings["env"].(live.M), claude.NoBackground) })
			}
			x.capgate("admit", "--type", "joke-finder", "--uses", "2", "--reason", "nightly run")
			record := filepath.Join(s.Home, "events")
			_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{
				Prompt: "PROGRAM:main", AllowedTools: everyTool, Settings: recorder(record, "PostToolUse"),
			})
			require.NoError(t, err)
			starts := s.Model.ResultsOf("main", "Agent")
			require.Len(t, starts, 4)
			for i, failed := range []bool{false, false, true, true} {
				require.Equal(t, failed, starts[i].IsError, starts[i].Text)
			}
			admissions, err := admission.List(x.state())
			require.NoError(t, err)
			require.Len(t, admissions, 1)
			require.Len(t, admissions[0].Spent, 2)
			for _, e := range recordedBy(t, record) {
				require.JSONEq(t, `{"description":"probe","prompt":"PROGRAM:finder","subagent_type":"joke-finder","run_in_background":false}`, string(e.Input))
			}
			logged := map[string]int{} // per call
			for _, d := range x.decisions() {
				if d.Code != "admit" {
					logged[d.ToolUseID]++
				}
			}
			for _, start := range starts {
				require.Equal(t, c.copies, logged[start.UseID], "one decision of each copy that runs")
			}
		})
	}
}
