//go:build live

package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

func TestLiveClaudeTheEndOfAHeadlessRunDisarmsItsSession(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {live.Call("Bash", live.M{"command": "capgate scope list --json"}), live.Say("done")}})
	x := withInstall(ctx, t, s)
	session := x.arm()
	x.claude(session)
	require.Contains(t, oneResult(t, s.Model, "main", "Bash").Text, session, "while it runs")
	require.NotContains(t, x.capgate("scope", "list"), session)
	require.Contains(t, x.capgate("run", "show", liveRun), "0 of 1", "the run is still there")
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

// In a terminal /clear begins a session under a new id, which nobody has armed.
func TestLiveClaudeClearDisarmsTheSession(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"before": {search, live.Say("done before")},
		"after":  {search, live.Call("Bash", live.M{"command": `echo "id=$CLAUDE_CODE_SESSION_ID state=$CAPGATE_DATA_DIR"`}), live.Say("done after")},
	})
	x := withInstall(ctx, t, s)
	session := x.armSpent()
	record := filepath.Join(s.Home, "events")
	terminal, err := s.ClaudeTerminal(ctx, live.ClaudeRun{
		Prompt: "PROGRAM:before", AllowedTools: everyTool, Settings: recorder(record, "SessionStart", "SessionEnd"),
		Args: []string{"--permission-mode", "default", "--session-id", session},
	})
	unavailable(t, err)
	t.Cleanup(func() { require.NoError(t, terminal.Close()) })
	_, err = terminal.WaitFor("done before")
	require.NoError(t, err)
	require.Contains(t, oneResult(t, s.Model, "before", "WebSearch").Text, spent)
	require.Contains(t, x.capgate("scope", "list"), session)

	require.NoError(t, terminal.SendKeys("/clear"))
	_, err = terminal.WaitFor(`❯ /clear`)
	require.NoError(t, err)
	require.NoError(t, terminal.SendKeys("Enter"))
	x.until("the session is disarmed", func() bool { return !strings.Contains(x.capgate("scope", "list"), session) })
	var next string
	x.until("the next session has started", func() bool {
		for _, e := range recordedBy(t, record) {
			if e.Name == "SessionStart" && e.Source == "clear" {
				next = e.Session
			}
		}
		return next != ""
	})
	require.NotEqual(t, session, next)
	require.NoError(t, terminal.SendKeys("PROGRAM:after", "Enter"))
	_, err = terminal.WaitFor("done after")
	require.NoError(t, err)
	require.False(t, oneResult(t, s.Model, "after", "WebSearch").IsError)
	require.Contains(t, oneResult(t, s.Model, "after", "Bash").Text, "id="+next+" state="+x.state())
}

// A hook that is told its directory by an argument, as a plugin's is, hands it on to the loop's shell.
func TestLiveClaudeTheShellIsToldTheStateDirectory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(settings live.M, state string)
	}{
		{"installed", func(live.M, string) {}},
		{"not in the env block", func(settings live.M, state string) {
			delete(settings["env"].(live.M), "CAPGATE_DATA_DIR")
			for _, event := range hookEvents {
				for _, hook := range ours(settings, event) {
					hook["args"] = []string{"--env", "CAPGATE_DATA_DIR=" + state}
				}
			}
		}},
		{"nowhere", func(settings live.M, _ string) { delete(settings["env"].(live.M), "CAPGATE_DATA_DIR") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main": {live.Call("Bash", live.M{"command": `echo "state=$CAPGATE_DATA_DIR."`}), search, live.Say("done")},
			})
			x := withInstall(ctx, t, s)
			x.edit(x.userSettings(), func(settings live.M) { c.edit(settings, x.state()) })
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
			capgate := filepath.Join(x.bin, "capgate")
			if c.copies == 2 {
				other := filepath.Join(s.Home, "other")
				require.NoError(t, os.Mkdir(other, 0o700))
				for _, name := range []string{"capgate", "capgate-hook"} {
					require.NoError(t, os.Link(filepath.Join(x.bin, name), filepath.Join(other, name)))
				}
				capgate = filepath.Join(other, "capgate")
			}
			_, errs, exit := x.run(nil, capgate, append(args, "--scope", "project")...)
			require.Zero(t, exit, errs)
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
