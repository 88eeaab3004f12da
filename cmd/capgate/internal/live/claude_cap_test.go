//go:build live

package live_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// Calls of the main thread and of agents.
var search = live.Call("WebSearch", live.M{"query": "anything"})

// agent starts an agent. kind "" leaves the type out, more adds to the input.
func agent(kind, prompt string, more ...live.M) live.Step {
	input := live.M{"description": "probe", "prompt": prompt}
	if kind != "" {
		input["subagent_type"] = kind
	}
	for _, m := range more {
		for k, v := range m {
			input[k] = v
		}
	}
	return live.Call("Agent", input)
}

// workflow starts an agent from a script.
func workflow(prompt string) live.Step {
	return live.Call("Workflow", live.M{"script": "export const meta = { name: 'x', description: 'd', phases: [{title: 'p'}] }\n" +
		"phase('p')\nreturn await agent('" + prompt + "', {label: 'a1'})"})
}

// forkedSkill is a call of the skill that writeSkill writes.
var forkedSkill = live.Call("Skill", live.M{"skill": "forked"})

// writeSkill writes a skill that runs as an agent of its own, of the client's default type general-purpose.
func writeSkill(t *testing.T, s *live.Sandbox, prompt string) {
	t.Helper()
	writeLive(t, filepath.Join(s.Work, ".claude", "skills", "forked", "SKILL.md"),
		"---\nname: forked\ndescription: runs as an agent\ncontext: fork\n---\n"+prompt+"\n")
}

// writeLive writes a file and the folders above it.
func writeLive(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// everyTool is what --allowedTools lets through, so that only capgate stands in the way.
var everyTool = []string{"Agent", "Bash", "Skill", "WebSearch", "Workflow", "Write"}

// claude runs the program main in a session, which must end by itself.
func (x *setup) claude(session string, args ...string) live.ClaudeResult {
	x.t.Helper()
	got, err := x.ClaudeHeadless(x.ctx, live.ClaudeRun{
		Prompt: "PROGRAM:main", AllowedTools: everyTool, Args: append([]string{"--session-id", session}, args...),
	})
	require.NoError(x.t, err)
	require.Zero(x.t, got.Exit, got.Stderr)
	require.False(x.t, got.IsError, got.Stdout)
	require.Equal(x.t, session, got.Session, "the session can be armed before it starts")
	return got
}

// The run's last turn is spent within the agent, because at the cap none could be started any more. Every way to start
// one ends at the same reason, and the main thread's next search does, too.
func TestLiveClaudeTheCapHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		where     string
		start     live.Step
		agentType string
	}{
		{"in a foreground subagent", agent("general-purpose", "PROGRAM:leaf", live.M{"run_in_background": false}), "general-purpose"},
		{"in a background subagent", agent("general-purpose", "PROGRAM:leaf", live.M{"run_in_background": true}), "general-purpose"},
		{"in an agent of a workflow", workflow("PROGRAM:leaf"), "workflow-subagent"},
		{"in a forked skill", forkedSkill, "general-purpose"},
	} {
		t.Run(c.where, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main": {c.start, live.Say("started")},
				"leaf": {search, spend, search, live.Say("leaf done")},
			})
			writeSkill(t, s, "PROGRAM:leaf")
			x := withInstall(ctx, t, s)
			session := x.arm()
			x.claude(session)
			searches := s.Model.ResultsOf("leaf", "WebSearch")
			require.Len(t, searches, 2)
			require.False(t, searches[0].IsError, "within the budget: %s", searches[0].Text)
			require.True(t, searches[1].IsError)
			require.Contains(t, searches[1].Text, spent)
			require.Contains(t, oneResult(t, s.Model, "leaf", "Bash").Text, "turn 1 of 1")
			last := s.Model.Of("leaf")
			require.Equal(t, 3, last[len(last)-1].Turn, "the agent goes on after the denial")

			denied := x.decisions()
			require.Len(t, denied, 1)
			require.Equal(t, searches[1].UseID, denied[0].ToolUseID)
			require.Equal(t, c.agentType, denied[0].AgentType)
			require.NotEmpty(t, denied[0].AgentID)
			require.Equal(t, session, denied[0].Session, "an agent's calls have the id of the session")
		})
	}
	t.Run("on the main thread", func(t *testing.T) {
		t.Parallel()
		ctx, s := startLive(t, live.Programs{
			"main": {
				search, agent("general-purpose", "PROGRAM:leaf"), workflow("PROGRAM:leaf"), live.Call("Task", live.M{"description": "d", "prompt": "PROGRAM:leaf"}),
				live.Call("Write", live.M{"file_path": "result.md", "content": "found"}),
				live.Say("wrote it up"),
			},
			"leaf": {live.Say("never")},
		})
		x := withInstall(ctx, t, s)
		got := x.claude(x.armSpent())
		require.Equal(t, "wrote it up", got.Result)
		for _, tool := range []string{"WebSearch", "Agent", "Workflow", "Task"} {
			result := oneResult(t, s.Model, "main", tool)
			require.True(t, result.IsError)
			require.Contains(t, result.Text, spent)
		}
		require.Empty(t, s.Model.Of("leaf"))
		require.False(t, oneResult(t, s.Model, "main", "Write").IsError)
		require.FileExists(t, filepath.Join(s.Work, "result.md"), "what was found can be written up")
		var denials []string
		for _, d := range got.PermissionDenials {
			denials = append(denials, d.Tool)
		}
		// The client's own result calls the tool Agent by its old name.
		require.Equal(t, []string{"WebSearch", "Task", "Workflow", "Task"}, denials)
	})
}

func TestLiveClaudeAnotherSessionIsNotInScopeAndAGrantLetsTheArmedOneGoOn(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main": {
			search,
			live.Call("Bash", live.M{"command": "cat granted"}), // waits for the operator
			search, spend, search,
			live.Say("done"),
		},
		"other": {search, live.Say("done")},
	})
	x := withInstall(ctx, t, s)
	session := x.armSpent()
	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:other", AllowedTools: everyTool})
	require.NoError(t, err)
	require.NotEqual(t, session, got.Session)
	require.False(t, oneResult(t, s.Model, "other", "WebSearch").IsError)
	require.Empty(t, x.decisions())
	require.Contains(t, x.capgate("scope", "list"), session, "the end of another session disarms nobody")

	fifo := filepath.Join(s.Work, "granted")
	out, err := x.command(nil, "mkfifo", fifo).CombinedOutput()
	require.NoError(t, err, "%s", out)
	grant := x.command(nil, filepath.Join(x.bin, "capgate"), "run", "grant", liveRun, "--turns", "1", "--reason", "one more source")
	granted := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // when the shell reads it, after the first search
		if err == nil {
			err = errors.Join(grant.Run(), f.Close())
		}
		granted <- err
	}()
	x.claude(session)
	select {
	case err := <-granted:
		require.NoError(t, err)
	case <-ctx.Done():
		require.Fail(t, "the shell did not ask for the grant")
	}
	searches := s.Model.ResultsOf("main", "WebSearch")
	require.Len(t, searches, 3)
	require.Contains(t, searches[0].Text, spent)
	require.False(t, searches[1].IsError, searches[1].Text)
	require.Contains(t, searches[2].Text, "turn budget spent (2 of 2, run "+liveRun+")")
}

// Switches act through the env block of the installed settings.
func TestLiveClaudeSwitchesOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variable                  string
		inSettings                bool // of the client, and not in the environment file
		searchDenied, shellDenied bool
	}{
		{"CAPGATE_DISABLE", false, false, false},
		{"CAPGATE_DISABLE_CAP", false, false, true},
		{"CAPGATE_DISABLE_GATES", false, true, false},
		{"CAPGATE_ENABLED", false, true, true}, // no kill switch: it is 1 already
		{"CAPGATE_DISABLE", true, false, false},
		{"VOYAGE_DISABLE_CAP_HOOK", true, false, true},
	} {
		t.Run(fmt.Sprint(c.variable, c.inSettings), func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{"main": {search, live.Call("Bash", live.M{"command": "echo a shell"}), live.Say("done")}})
			x := withInstall(ctx, t, s, "--subagents", "joke-finder")
			if c.inSettings {
				x.edit(x.userSettings(), func(settings live.M) { settings["env"].(live.M)[c.variable] = "1" })
			} else {
				x.set(c.variable + "=1")
			}
			x.claude(x.armSpent())
			found := oneResult(t, s.Model, "main", "WebSearch")
			require.Equal(t, c.searchDenied, found.IsError, found.Text)
			shell := oneResult(t, s.Model, "main", "Bash")
			require.Equal(t, c.shellDenied, shell.IsError, shell.Text)
		})
	}
}
