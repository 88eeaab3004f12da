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
	// old is a text in the file, if it is there before, and new what an agent first makes of it, so that the client's own checks
	// let it pass. Else it writes a new file.
	old, new string
}

// What nobody but capgate and its operator writes, in any mode.
var oursToGuard = []guarded{
	{"ledger", func(x *setup) string { return filepath.Join(x.state(), "ledger.db") }, "", ""},
	{"its head", func(x *setup) string { return filepath.Join(x.state(), "ledger.head") }, "", ""},
	{"marker", func(x *setup) string { return filepath.Join(x.state(), "trekresearch-loop-scope", "s.json") }, "", ""},
	{"decisions", func(x *setup) string { return filepath.Join(x.state(), "decisions.jsonl") }, `"code":"admit"`, `"XYMARK":1,"code":"admit"`},
	{"off", func(x *setup) string { return filepath.Join(x.state(), "off.json") }, "", ""},
	{"admissions", func(x *setup) string { return filepath.Join(x.state(), "admissions.json") }, `"format": 1`, `"XYMARK": 1, "format": 1`},
	{"spec", func(x *setup) string { return filepath.Join(x.Work, "agents.spec.json") }, `{"subagents"`, `{"XYMARK":1,"subagents"`},
	{"program", func(x *setup) string { return filepath.Join(filepath.Dir(x.hook()), "capgate") }, "", ""},
	{"environment file", func(x *setup) string { return x.envFile() }, "CAPGATE_ENABLED=1", "XYMARK=1\nCAPGATE_ENABLED=1"},
	{"environment file of a project", func(x *setup) string { return filepath.Join(x.Work, ".capgate", "env") }, "", ""},
	{"a name of each process's own", func(*setup) string { return "/proc/self/cwd/proc.txt" }, "", ""},
}

// What a person may let an agent write, if he is asked.
var settingsToGuard = []guarded{
	{"settings of the project", func(x *setup) string { return x.projectSettings() }, "{}", harmless},
	{"local settings", func(x *setup) string { return filepath.Join(x.Work, ".claude", "settings.local.json") }, "", ""},
	{"settings of the user", func(x *setup) string { return x.userSettings() }, `"hooks": {`, `"env": {"XYMARK":"1"}, "hooks": {`},
	{"hooks of a plugin", func(x *setup) string { return filepath.Join(x.Work, "plugin", "hooks", "hooks.json") }, "", ""},
	{"servers", func(x *setup) string { return filepath.Join(x.Work, ".mcp.json") }, "{}", harmless},
	{"a hook script", func(x *setup) string { return filepath.Join(x.Work, ".claude", "hooks", "own.sh") }, "", ""},
}

// A text that says nothing of us holds a mark, which a second step makes a word that counts.
const (
	mark     = "XYMARK"
	harmless = `{"env":{"XYMARK":"1"}}`
	word     = "CAPGATE_DISABLE"
)

// byWrite is how an agent writes the file at once. What is there the client has it read first.
func (g guarded) byWrite(path string) []live.Step {
	return g.read(path, live.Call("Write", live.M{"file_path": path, "content": harmless}))
}

// byEdits is how it edits the file in two steps, of which neither says what both do.
func (g guarded) byEdits(path string) []live.Step {
	first := live.Call("Edit", live.M{"file_path": path, "old_string": g.old, "new_string": g.new})
	if g.old == "" {
		first = live.Call("Edit", live.M{"file_path": path, "old_string": "", "new_string": harmless})
	}
	return g.read(path, first, live.Call("Edit", live.M{"file_path": path, "old_string": mark, "new_string": word}))
}

func (g guarded) read(path string, then ...live.Step) []live.Step {
	if g.old == "" {
		return then
	}
	return append([]live.Step{live.Call("Read", live.M{"file_path": path})}, then...)
}

// guardedSession is an installation with files of every kind, and programs that try to write them.
type guardedSession struct {
	*setup
	each []string // the programs that try one of the settings in one way
}

// startGuarded makes the programs "ours" and "settings", which try all of them one after the other, and one for each file and
// way: "settings-0-write", "settings-0-edits".
func startGuarded(t *testing.T) *guardedSession {
	t.Helper()
	programs := live.Programs{}
	ctx, s := startLive(t, programs)
	writeLive(t, filepath.Join(s.Work, "agents.spec.json"), `{"subagents":{"joke-finder":{}}}`)
	x := withInstall(ctx, t, s, "--spec", filepath.Join(s.Work, "agents.spec.json"))
	x.capgate("admit", "--type", "joke-finder", "--reason", "so that there is a file")
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(x.hook()), "capgate"))) // a program that is there could not be read
	g := &guardedSession{setup: x}
	attempt := func(all string, files []guarded) {
		for i, f := range files {
			path := f.path(x)
			if _, err := os.Stat(path); f.old != "" && err != nil {
				writeLive(t, path, "{}")
			}
			for way, steps := range map[string][]live.Step{"write": f.byWrite(path), "edits": f.byEdits(path)} {
				programs[all] = append(programs[all], steps...)
				name := fmt.Sprintf("%s-%d-%s", all, i, way)
				programs[name] = append(slices.Clone(steps), live.Say(name+": done"))
				g.each = append(g.each, name)
			}
		}
		programs[all] = append(programs[all], live.Say(all+": done"))
	}
	attempt("ours", oursToGuard)
	g.each = nil
	attempt("settings", settingsToGuard)
	slices.Sort(g.each)
	return g
}

func contentOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "(none)"
	}
	return string(text)
}

// requireUnwritten holds that nothing of what the programs write is in the files.
func (g *guardedSession) requireUnwritten(files []guarded) {
	g.t.Helper()
	for _, f := range files {
		require.NotContains(g.t, contentOf(f.path(g.setup)), mark, f.name)
		require.NotContains(g.t, contentOf(f.path(g.setup)), word, f.name)
	}
	require.NoFileExists(g.t, filepath.Join(g.Work, "proc.txt"))
}

// requireDenied holds that the hook denied every first step of a program. The second the client refuses: there is no mark.
func (g *guardedSession) requireDenied(program string, attempts int) {
	g.t.Helper()
	denied := 0
	for _, r := range append(g.Model.ResultsOf(program, "Write"), g.Model.ResultsOf(program, "Edit")...) {
		require.True(g.t, r.IsError, r.Text)
		if strings.Contains(r.Text, "[capgate ") {
			denied++
		}
	}
	require.Equal(g.t, attempts, denied, "%v", g.Model.Results())
}

// in is a run of the client in a permission mode. As root it takes bypassPermissions in a sandbox only.
func in(mode, prompt string) live.ClaudeRun {
	return live.ClaudeRun{
		Prompt: prompt, AllowedTools: []string{"Read", "Write", "Edit", "Agent"},
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
			for program, files := range map[string][]guarded{"ours": oursToGuard, "settings": settingsToGuard} {
				got, err := g.ClaudeHeadless(g.ctx, in(mode, "PROGRAM:"+program))
				require.NoError(t, err)
				require.Contains(t, got.Result, "done")
				g.requireDenied(program, 2*len(files))
				g.requireUnwritten(files)
			}
		})
	}
}

// In a terminal: ours are never written, and of the others each write was seen by a person, who says no here. Where the client
// answers in a person's stead, they are denied.
//
// In plan and in auto mode a check by the client's server comes first, which a stand-in for the model cannot answer: the client then
// has a person decide. What it does with our question after a server has let the call pass is not known.
func TestLiveClaudeGuardHoldsInATerminalInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGuarded(t)
			terminal := g.terminalIn(mode)
			require.False(t, g.refuse(terminal, "ours"), "nobody is asked about ours")
			g.requireDenied("ours", 2*len(oursToGuard))
			g.requireUnwritten(oursToGuard)
			if mode == "bypassPermissions" || mode == "dontAsk" {
				require.False(t, g.refuse(terminal, "settings"), "nobody is asked")
				g.requireDenied("settings", 2*len(settingsToGuard))
				g.requireUnwritten(settingsToGuard)
				return
			}
			for _, program := range g.each {
				require.True(t, g.refuse(terminal, program), "%s: a person is asked", program)
				g.requireUnwritten(settingsToGuard)
			}
		})
	}
}

// A person who says yes is asked again: what is written in two steps is asked about twice.
func TestLiveClaudeGuardAsksAboutEachStep(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"default", "acceptEdits"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			g := startGuarded(t)
			terminal := g.terminalIn(mode)
			for i, f := range settingsToGuard {
				program := fmt.Sprintf("settings-%d-edits", i)
				g.start(terminal, program)
				path := f.path(g.setup)
				g.yes(terminal, program, func() bool { return strings.Contains(contentOf(path), mark) })
				_, err := terminal.WaitFor(`(?s)PROGRAM:` + program + `.*` + word + `.*(` + choice + `)`)
				require.NoError(t, err, f.name)
				g.no(terminal)
				require.NotContains(t, contentOf(path), word, f.name)
			}
		})
	}
}

// choice is what a person can answer to a question: in plan mode, and without the word of a server in auto mode, No comes first.
const choice = `\b1\. Yes|❯ No\n +Yes`

// unchecked is what he is asked first in auto mode, where the check by the client's server cannot be had.
const unchecked = `Enter to stay in auto mode`

// terminalIn starts the client in a terminal and a permission mode.
func (g *guardedSession) terminalIn(mode string) *live.Terminal {
	g.t.Helper()
	terminal, err := g.ClaudeTerminal(g.ctx, in(mode, ""))
	unavailable(g.t, err)
	g.t.Cleanup(func() { require.NoError(g.t, terminal.Close()) })
	if mode == "bypassPermissions" { // it is asked for once more
		_, err = terminal.WaitFor(`❯ No, exit`)
		require.NoError(g.t, err)
		require.NoError(g.t, terminal.SendKeys("Down"))
		_, err = terminal.WaitFor(`❯ Yes, I accept`)
		require.NoError(g.t, err)
		require.NoError(g.t, terminal.SendKeys("Enter"))
	}
	_, err = terminal.WaitFor(`(?m)^❯[\s\x{a0}]*$`)
	require.NoError(g.t, err)
	return terminal
}

// start starts a program, and returns once the model was asked for it.
func (g *guardedSession) start(terminal *live.Terminal, program string) {
	g.t.Helper()
	require.NoError(g.t, terminal.SendKeys("C-u", "PROGRAM:"+program, "Enter"))
	require.Eventually(g.t, func() bool { return len(g.Model.Of(program)) > 0 }, 20*time.Second, 20*time.Millisecond, program)
}

// refuse runs a program, says no to what a person is asked, and reports whether he was asked.
func (g *guardedSession) refuse(terminal *live.Terminal, program string) (asked bool) {
	g.t.Helper()
	g.start(terminal, program)
	found, err := terminal.WaitFor(choice + `|` + unchecked + `|` + program + `: done`)
	require.NoError(g.t, err)
	for found[0] == unchecked { // what has just come takes no key for a moment
		require.NoError(g.t, terminal.SendKeys("Enter"))
		time.Sleep(500 * time.Millisecond)
		found, err = terminal.WaitFor(choice + `|` + unchecked + `|` + program + `: done`)
		require.NoError(g.t, err)
	}
	if strings.HasSuffix(found[0], "done") {
		return false
	}
	g.no(terminal)
	return true
}

// yes answers the first question of a program with yes, until that is done. A question that has just come takes no key for a moment;
// the second one, which has the word, is not answered.
func (g *guardedSession) yes(terminal *live.Terminal, program string, done func() bool) {
	g.t.Helper()
	screen, is := "", regexp.MustCompile(choice)
	for range 20 {
		_, err := terminal.WaitFor(choice)
		require.NoError(g.t, err)
		time.Sleep(200 * time.Millisecond)
		screen, err = terminal.Screen()
		require.NoError(g.t, err)
		screen = screen[max(strings.LastIndex(screen, "PROGRAM:"+program), 0):]
		if is.MatchString(screen) && !strings.Contains(screen, word) {
			require.NoError(g.t, terminal.SendKeys("1"))
		}
		for range 50 {
			if done() {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	require.Fail(g.t, "yes does not write", "the screen:\n%s", screen)
}

// no answers a question with Esc, until it is gone: a key that comes too early is lost.
func (g *guardedSession) no(terminal *live.Terminal) {
	g.t.Helper()
	is := regexp.MustCompile(choice)
	for range 30 {
		require.NoError(g.t, terminal.SendKeys("Escape"))
		for range 20 {
			screen, err := terminal.Screen()
			require.NoError(g.t, err)
			if !is.MatchString(screen) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	require.Fail(g.t, "the question stays")
}

// An agent's definition can give it a permission mode of its own, and such definitions an agent may write. Its writes of settings
// are seen by a person as well, or they are denied.
func TestLiveClaudeGuardHoldsForAnAgentWithAModeOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ session, agent string }{
		{"default", "bypassPermissions"}, {"default", "dontAsk"}, {"default", "acceptEdits"},
		{"bypassPermissions", "default"}, {"bypassPermissions", "acceptEdits"}, {"bypassPermissions", "plan"},
		{"dontAsk", "acceptEdits"}, {"acceptEdits", "bypassPermissions"},
	} {
		t.Run(c.agent+" in "+c.session, func(t *testing.T) {
			t.Parallel()
			programs := live.Programs{"main": {agent("joke-finder", "PROGRAM:finder"), live.Say("main: done")}}
			ctx, s := startLive(t, programs)
			writeLive(t, filepath.Join(s.Work, ".claude", "agents", "joke-finder.md"),
				"---\nname: joke-finder\ndescription: finds jokes\npermissionMode: "+c.agent+"\n---\nYou find jokes.\n")
			g := &guardedSession{setup: withInstall(ctx, t, s, "--subagents", "joke-finder")}
			local := settingsToGuard[1]
			programs["finder"] = append(local.byWrite(local.path(g.setup)), live.Say("finder: done"))
			if !g.refuse(g.terminalIn(c.session), "main") {
				g.requireDenied("finder", 1)
			}
			g.requireUnwritten(settingsToGuard)
		})
	}
}
