//go:build live

package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// modes are the permission modes of Claude Code.
var modes = []string{"default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions"}

// guarded is a file that decides what bounds the session.
type guarded struct {
	name string
	path func(x *setup) string
	// old and new say that the file is there before, and how an agent edits it: so that the client's own checks of its
	// settings let it pass. Else it writes a new one.
	old, new string
}

// What nobody but capgate and its operator writes, in any mode.
var oursToGuard = []guarded{
	{"ledger", func(x *setup) string { return filepath.Join(x.state(), "ledger.db") }, "", ""},
	{"marker", func(x *setup) string { return filepath.Join(x.state(), "trekresearch-loop-scope", "s.json") }, "", ""},
	{"off", func(x *setup) string { return filepath.Join(x.state(), "off.json") }, "", ""},
	{"admissions", func(x *setup) string { return filepath.Join(x.state(), "admissions.json") }, `"format": 1`, `"format": 2`},
	{"spec", func(x *setup) string { return filepath.Join(x.Work, "agents.spec.json") }, `"joke-finder"`, `"any"`},
	{"program", func(x *setup) string { return filepath.Join(x.bin, "capgate") }, "", ""},
	{"environment file", func(x *setup) string { return x.envFile() }, "CAPGATE_ENABLED=1", "CAPGATE_ENABLED=0"},
	{"environment file of a project", func(x *setup) string { return filepath.Join(x.Work, ".capgate", "env") }, "", ""},
	{"a name of each process's own", func(*setup) string { return "/proc/self/cwd/proc.txt" }, "", ""},
}

// What a person may let an agent write, if he is asked.
var settingsToGuard = []guarded{
	{"settings of the project", func(x *setup) string { return x.projectSettings() }, "{}", `{"env":{"CAPGATE_DISABLE":"1"}}`},
	{"local settings", func(x *setup) string { return filepath.Join(x.Work, ".claude", "settings.local.json") }, "", ""},
	{"settings of the user", func(x *setup) string { return x.userSettings() }, `"PreToolUse"`, `"Notification"`},
	{"hooks of a plugin", func(x *setup) string { return filepath.Join(x.Work, "plugin", "hooks", "hooks.json") }, "", ""},
	{"servers", func(x *setup) string { return filepath.Join(x.Work, ".mcp.json") }, "{}", `{"mcpServers":{}}`},
	{"a hook script", func(x *setup) string { return filepath.Join(x.Work, ".claude", "hooks", "own.sh") }, "", ""},
}

// The text that is written says nothing of us: an edit makes it so afterwards.
const (
	harmless = `{"env":{"CAPGATE_XY":"1"}}`
	mark     = "XY"
)

// attempt is how an agent goes about it.
func (g guarded) attempt(path string) []live.Step {
	if g.old != "" {
		return []live.Step{
			live.Call("Read", live.M{"file_path": path}),
			live.Call("Edit", live.M{"file_path": path, "old_string": g.old, "new_string": g.new}),
		}
	}
	return []live.Step{live.Call("Write", live.M{"file_path": path, "content": harmless})}
}

// guardedSession is an installation with files of every kind, and programs that try to write them: "ours" all of ours, one
// after the other, and "settings-N" each of the others.
type guardedSession struct {
	*setup
	before map[string]string
}

func startGuarded(t *testing.T) guardedSession {
	t.Helper()
	programs := live.Programs{}
	ctx, s := startLive(t, programs)
	writeLive(t, filepath.Join(s.Work, "agents.spec.json"), `{"subagents":{"joke-finder":{}}}`)
	x := withInstall(ctx, t, s, "--spec", filepath.Join(s.Work, "agents.spec.json"))
	x.capgate("admit", "--type", "joke-finder", "--reason", "so that there is a file")
	require.NoError(t, os.Remove(filepath.Join(x.bin, "capgate"))) // a file that is there the client has an agent read first
	g := guardedSession{x, map[string]string{}}
	for _, f := range slices.Concat(oursToGuard, settingsToGuard) {
		path := f.path(x)
		if _, err := os.Stat(path); f.old != "" && err != nil {
			writeLive(t, path, "{}")
		}
	}
	g.remember()
	var all []live.Step
	for _, f := range oursToGuard {
		all = append(all, f.attempt(f.path(x))...)
	}
	programs["ours"] = append(all, live.Say("ours are done"))
	all = nil
	for i, f := range settingsToGuard {
		steps := f.attempt(f.path(x))
		all = append(all, steps...)
		programs[fmt.Sprint("settings-", i)] = append(steps, live.Say(fmt.Sprintf("settings-%d is done", i)))
	}
	programs["settings"] = append(all, live.Say("settings are done"))
	local := settingsToGuard[1].path(x)
	programs["steps"] = []live.Step{
		live.Call("Write", live.M{"file_path": local, "content": harmless}),
		live.Call("Edit", live.M{"file_path": local, "old_string": mark, "new_string": "DISABLE", "replace_all": true}),
		live.Say("steps are done"),
	}
	return g
}

// remember notes the files as they are: the client writes its own settings, too, when it starts.
func (g guardedSession) remember() {
	for _, f := range slices.Concat(oursToGuard, settingsToGuard) {
		g.before[f.name] = contentOf(f.path(g.setup))
	}
}

func contentOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "(none)"
	}
	return string(text)
}

// requireUnwritten holds that the files are as they were.
func (g guardedSession) requireUnwritten(files ...guarded) {
	g.t.Helper()
	for _, f := range files {
		require.Equal(g.t, g.before[f.name], contentOf(f.path(g.setup)), f.name)
	}
	require.NoFileExists(g.t, filepath.Join(g.Work, "proc.txt"))
}

// in is a run of the client in a permission mode. As root it takes bypassPermissions in a sandbox only.
func in(mode, prompt string) live.ClaudeRun {
	return live.ClaudeRun{
		Prompt: prompt, AllowedTools: []string{"Read", "Write", "Edit"},
		Args: []string{"--permission-mode", mode}, Env: []string{"IS_SANDBOX=1"},
	}
}

// Headless nobody can be asked: in every mode none of the files is written, whatever the allowed tools say.
func TestLiveClaudeGuardHoldsHeadlessInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGuarded(t)
			for _, program := range []string{"ours", "settings"} {
				got, err := g.ClaudeHeadless(g.ctx, in(mode, "PROGRAM:"+program))
				require.NoError(t, err)
				require.Contains(t, got.Result, "done")
				denied := append(g.Model.ResultsOf(program, "Write"), g.Model.ResultsOf(program, "Edit")...)
				require.NotEmpty(t, denied)
				for _, r := range denied {
					require.True(t, r.IsError, r.Text)
					require.Contains(t, r.Text, "[capgate ", "by us, with a reason that says what to do")
				}
			}
			g.requireUnwritten(slices.Concat(oursToGuard, settingsToGuard)...)
			// In two steps, of which neither says what both do: the first is denied already.
			_, err := g.ClaudeHeadless(g.ctx, in(mode, "PROGRAM:steps"))
			require.NoError(t, err)
			g.requireUnwritten(settingsToGuard...)
		})
	}
}

// In a terminal: ours are never written, and of the others each write was seen by a person, who says no here.
func TestLiveClaudeGuardHoldsInATerminalInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGuarded(t)
			terminal := g.terminalIn(mode)
			g.remember()
			g.prompt(terminal, "ours")
			g.requireUnwritten(oursToGuard...)
			asked := 0
			for i, f := range settingsToGuard {
				if g.prompt(terminal, fmt.Sprint("settings-", i)) {
					asked++
				}
				g.requireUnwritten(f)
			}
			if mode == "default" || mode == "acceptEdits" {
				require.Equal(t, len(settingsToGuard), asked, "a person is asked about each")
			}
			if mode == "bypassPermissions" || mode == "dontAsk" {
				require.Zero(t, asked)
			}
		})
	}
}

// A person who says yes is asked again: what is written in two steps is asked about twice.
func TestLiveClaudeGuardAsksAboutEachStep(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	terminal := g.terminalIn("default")
	require.NoError(t, terminal.SendKeys("PROGRAM:steps", "Enter"))
	_, err := terminal.WaitFor(yesOrNo)
	require.NoError(t, err)
	require.NoError(t, terminal.SendKeys("1"))
	local := settingsToGuard[1].path(g.setup)
	require.Eventually(t, func() bool { return contentOf(local) == harmless }, 20*time.Second, 20*time.Millisecond, "yes writes")
	_, err = terminal.WaitFor(yesOrNo)
	require.NoError(t, err)
	require.NoError(t, terminal.SendKeys("Escape"))
	time.Sleep(time.Second)
	require.Equal(t, harmless, contentOf(local))
}

// yesOrNo is what a person sees of a question: ours, the client's own where it asks about its own files in the place of ours,
// and in auto mode that a check by a server cannot be had, so that he has to say himself.
const yesOrNo = `❯ (\d\. )?(Yes|No)\b|Enter to stay in auto mode`

// terminalIn starts the client in a terminal and a permission mode.
func (g guardedSession) terminalIn(mode string) *live.Terminal {
	g.t.Helper()
	run := in(mode, "")
	terminal, err := g.ClaudeTerminal(g.ctx, run)
	unavailable(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, terminal.Close()) })
	if mode == "bypassPermissions" { // it is asked for once more
		_, err = terminal.WaitFor(`Yes, I accept|(?m)^❯`)
		require.NoError(g.t, err)
		if screen, _ := terminal.Screen(); strings.Contains(screen, "Yes, I accept") {
			require.NoError(g.t, terminal.SendKeys("Down"))
			_, err = terminal.WaitFor(`❯ Yes, I accept`)
			require.NoError(g.t, err)
			require.NoError(g.t, terminal.SendKeys("Enter"))
		}
	}
	_, err = terminal.WaitFor(`(?m)^❯`)
	require.NoError(g.t, err)
	return terminal
}

// prompt runs a program, says no to whatever a person is asked, and reports whether he was asked.
func (g guardedSession) prompt(terminal *live.Terminal, program string) (asked bool) {
	g.t.Helper()
	require.NoError(g.t, terminal.SendKeys("PROGRAM:"+program, "Enter"))
	found, err := terminal.WaitFor(yesOrNo + `|` + program + ` (is|are) done`)
	require.NoError(g.t, err)
	if strings.HasSuffix(found[0], "done") {
		return false
	}
	require.Eventually(g.t, func() bool { // a key that comes too early is lost
		screen, err := terminal.Screen()
		if err != nil || !regexp.MustCompile(yesOrNo).MatchString(screen) {
			return err == nil
		}
		require.NoError(g.t, terminal.SendKeys("Escape"))
		return false
	}, 30*time.Second, time.Second)
	return true
}
