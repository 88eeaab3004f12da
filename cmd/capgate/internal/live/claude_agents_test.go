//go:build live

package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// Hooks of type "agent" start an agent that the client gives an id and no type. It can do nothing unless its type,
// hook-agent, is declared. Such a hook stands in settings, or in a skill that the model starts.
func TestLiveClaudeTheAgentOfAHookCanDoNothingUndeclared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, declared string
		main           []live.Step
		bySkill        bool
	}{
		{"in settings", "joke-finder", []live.Step{live.Say("done")}, false},
		{"in settings, declared", "joke-finder,hook-agent", []live.Step{live.Say("done")}, false},
		{"in a skill", "joke-finder", []live.Step{live.Call("Skill", live.M{"skill": "hooked"}), live.Call("Read", live.M{"file_path": "there"}), live.Say("done")}, true},
		{"in a skill, declared", "joke-finder,hook-agent", []live.Step{live.Call("Skill", live.M{"skill": "hooked"}), live.Call("Read", live.M{"file_path": "there"}), live.Say("done")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   c.main,
				"hooked": {live.Call("Bash", live.M{"command": "touch ran"}), live.Call("StructuredOutput", live.M{"ok": true}), live.Say("hooked done")},
			})
			writeLive(t, filepath.Join(s.Work, ".claude", "skills", "hooked", "SKILL.md"), "---\nname: hooked\ndescription: brings a hook\n"+
				"hooks:\n  PostToolUse:\n    - matcher: Read\n      hooks:\n        - type: agent\n          prompt: \"PROGRAM:hooked\"\n---\nA skill.\n")
			writeLive(t, filepath.Join(s.Work, "there"), "text")
			writeFinder(t, s)
			x := withInstall(ctx, t, s, "--subagents", c.declared)
			run := live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: append(everyTool, "Read")}
			if !c.bySkill {
				run.Settings = live.M{"hooks": live.M{"Stop": []live.M{{"hooks": []live.M{{"type": "agent", "prompt": "PROGRAM:hooked"}}}}}}
			}
			got, err := s.ClaudeHeadless(ctx, run)
			require.NoError(t, err)
			require.Equal(t, "done", got.Result)
			result := oneResult(t, s.Model, "hooked", "Bash")
			require.Equal(t, c.declared == "joke-finder", result.IsError, result.Text)
			if c.declared == "joke-finder" {
				require.Contains(t, result.Text, `not to "hook-agent"`)
				require.NoFileExists(t, filepath.Join(s.Work, "ran"))
				records := x.decisions()
				require.NotEmpty(t, records)
				require.Equal(t, "caller", records[0].Code)
				return
			}
			require.FileExists(t, filepath.Join(s.Work, "ran"))
		})
	}
}

// A model server that gives out the same tool_use id again starts nothing for free: not with another prompt, and not with the
// same a few seconds later.
func TestLiveClaudeARepeatedIDIsAnotherStart(t *testing.T) {
	t.Parallel()
	start := func(prompt string) live.Step {
		use := agent("joke-finder", prompt).Calls[0]
		use.ID = "call_0"
		return live.Calls(use)
	}
	ctx, s := startLive(t, live.Programs{
		"main": {start("PROGRAM:slow"), start("PROGRAM:slow"), start("PROGRAM:other"), live.Say("done")},
		"slow": {live.Call("Bash", live.M{"command": "sleep 4"}), live.Say("slow done")},
	})
	writeFinder(t, s)
	x := withInstall(ctx, t, s, "--subagents", "joke-finder", "--admission", "ask")
	x.capgate("admit", "--type", "joke-finder", "--reason", "once")
	x.claude(newUUID())
	require.Len(t, s.Model.Of("slow"), 2, "it ran once, to its end")
	require.Empty(t, s.Model.Of("other"))
	admissions, err := admission.List(x.state())
	require.NoError(t, err)
	require.Len(t, admissions[0].Spent, 1)
	var codes []string
	// Not by the results: the client mends a conversation with the same id twice, and the model sees one of them.
	for _, d := range x.decisions() {
		codes = append(codes, d.Code)
	}
	require.ElementsMatch(t, []string{"admit", "foreground", "admission-no-ui", "admission-no-ui"}, codes)
}

// In agent teams an agent's calls carry its name as their type: a declared agent with another name could do nothing, and any
// agent with the name of a declared one could do what that may. So with teams on an agent gets no name.
func TestLiveClaudeInTeamsNoAgentGetsAName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value   string
		install []string
		denied  bool
	}{
		{"1", []string{"--subagents", "joke-finder"}, true},
		{"true", []string{"--subagents", "joke-finder"}, true},
		{"yes", []string{"--admission", "ask"}, true},
		{"0", []string{"--subagents", "joke-finder"}, false},
	} {
		t.Run(c.value, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main": {
					agent("joke-finder", "PROGRAM:finder", live.M{"name": "mate"}), live.Say("all done"),
				},
				"finder": {live.Call("Bash", live.M{"command": "echo a shell"}), live.Say("finder done")},
			})
			writeFinder(t, s)
			x := withInstall(ctx, t, s, c.install...)
			run := inTerminal
			record := filepath.Join(s.Home, "events")
			run.Settings = recorder(record, "PreToolUse")
			run.Env = []string{"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=" + c.value}
			terminal, err := s.ClaudeTerminal(ctx, run)
			unavailable(t, err)
			t.Cleanup(func() { require.NoError(t, terminal.Close()) })
			_, err = terminal.WaitFor("all done")
			require.NoError(t, err)
			result := oneResult(t, s.Model, "main", "Agent")
			require.Equal(t, c.denied, result.IsError, result.Text)
			if c.denied {
				require.Contains(t, result.Text, `Agent teams are on in this session, where an agent that is given a name ("mate")`)
				require.Empty(t, s.Model.Of("finder"))
				require.Equal(t, "named-spawn", x.decisions()[0].Code)
				return
			}
			require.Contains(t, result.Text, "finder done")
		})
	}
}

// What the client takes for on: there the calls of an agent with a name are of that type.
func TestLiveClaudeHowTeamsAreSwitchedOn(t *testing.T) {
	t.Parallel()
	for value, on := range map[string]bool{"1": true, "true": true, "TRUE": true, "yes": true, "on": true, " 1": true, "0": false, "false": false, "2": false} {
		t.Run(fmt.Sprintf("%q", value), func(t *testing.T) {
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("joke-finder", "PROGRAM:finder", live.M{"name": "mate"}), live.Say("all done")},
				"finder": {live.Call("Bash", live.M{"command": "echo a shell"}), live.Say("finder done")},
			})
			writeFinder(t, s)
			run := inTerminal
			record := filepath.Join(s.Home, "events")
			run.Settings = recorder(record, "PostToolUse")
			run.Env = []string{"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=" + value}
			terminal, err := s.ClaudeTerminal(ctx, run)
			unavailable(t, err)
			t.Cleanup(func() { require.NoError(t, terminal.Close()) })
			_, err = terminal.WaitFor("all done")
			require.NoError(t, err)
			kind := ""
			require.Eventually(t, func() bool {
				raw, err := os.ReadFile(record)
				if err != nil || !strings.HasSuffix(string(raw), "\n") {
					return false
				}
				for _, e := range recordedBy(t, record) {
					if e.Tool == "Bash" {
						kind = e.Type
					}
				}
				return kind != ""
			}, 30*time.Second, 50*time.Millisecond)
			require.Equal(t, map[bool]string{true: "mate", false: "joke-finder"}[on], kind)
		})
	}
}
