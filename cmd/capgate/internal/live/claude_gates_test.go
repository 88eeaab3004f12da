//go:build live

package live_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
	"github.com/capgate/capgate/gates"
)

// writeFinder declares a subagent with a shell to the client.
func writeFinder(t *testing.T, s *live.Sandbox) {
	t.Helper()
	writeLive(t, filepath.Join(s.Work, ".claude", "agents", "joke-finder.md"),
		"---\nname: joke-finder\ndescription: finds jokes\ntools: Bash, Read\n---\nYou find jokes.\n")
}

// event is a hook payload that a recorder recorded.
type event struct {
	Name     string          `json:"hook_event_name"`
	Session  string          `json:"session_id"`
	Tool     string          `json:"tool_name"`
	UseID    string          `json:"tool_use_id"`
	Type     string          `json:"agent_type"`
	Input    json.RawMessage `json:"tool_input"`
	Response struct {
		Status string `json:"status"`
	} `json:"tool_response"`
	Source string `json:"source"`
	Reason string `json:"reason"`
}

// recorder is settings for one run (--settings; hooks of all settings run) that write the events' payloads to a file.
func recorder(file string, events ...string) live.M {
	hooks := live.M{}
	for _, e := range events {
		hooks[e] = []live.M{{"hooks": []live.M{{
			"type": "command", "command": `p=$(cat); printf '%s\n' "$p" >>'` + file + `'`,
		}}}}
	}
	return live.M{"hooks": hooks}
}

func recordedBy(t *testing.T, file string) []event {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []event
	for line := range strings.Lines(string(raw)) {
		var e event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		all = append(all, e)
	}
	return all
}

func noDelegationTo(kind string) string {
	return `Delegation is only available for "joke-finder" in this session, not ` + kind +
		` - do the task directly with your own tools instead of spawning another agent for it.`
}

const noShell = "Bash is only available to dedicated subagents, not the main agent directly — use the Agent tool to delegate to one of them instead."

func TestLiveClaudeOnlyDeclaredAgentsStartAndTheShellIsForThem(t *testing.T) {
	t.Parallel()
	shell := live.Call("Bash", live.M{"command": "echo a shell"})
	ctx, s := startLive(t, live.Programs{
		"main": {
			agent("general-purpose", "PROGRAM:never"), agent("", "PROGRAM:never"), agent("Joke-Finder", "PROGRAM:never"),
			workflow("PROGRAM:never"), shell, forkedSkill, agent("joke-finder", "PROGRAM:finder"),
			live.Say("done"),
		},
		"never":  {live.Say("never")},
		"forked": {shell, live.Call("Read", live.M{"file_path": "x"}), live.Say("forked done")},
		"finder": {shell, live.Say("finder done")},
	})
	writeFinder(t, s)
	writeSkill(t, s, "PROGRAM:forked")
	x := withInstall(ctx, t, s, "--subagents", "joke-finder")
	got := x.claude(newUUID())
	require.Equal(t, "done", got.Result)

	starts := s.Model.ResultsOf("main", "Agent")
	require.Len(t, starts, 4)
	for i, kind := range []string{`"general-purpose"`, `"(unset)"`, `"Joke-Finder"`} {
		require.True(t, starts[i].IsError)
		require.Contains(t, starts[i].Text, noDelegationTo(kind))
	}
	require.False(t, starts[3].IsError, starts[3].Text)
	require.Contains(t, starts[3].Text, "finder done")
	require.Contains(t, oneResult(t, s.Model, "main", "Workflow").Text, noDelegationTo(`"workflow-subagent"`))
	require.Empty(t, s.Model.Of("never"))

	main := oneResult(t, s.Model, "main", "Bash")
	require.True(t, main.IsError)
	require.Contains(t, main.Text, noShell)
	finder := oneResult(t, s.Model, "finder", "Bash")
	require.False(t, finder.IsError, finder.Text)
	require.Contains(t, finder.Text, "a shell")

	// The skill starts as an agent without a call that says so, and gets no tool.
	require.False(t, oneResult(t, s.Model, "main", "Skill").IsError)
	for _, tool := range []string{"Bash", "Read"} {
		result := oneResult(t, s.Model, "forked", tool)
		require.True(t, result.IsError)
		require.Contains(t, result.Text, `not to "general-purpose"`)
	}
	var stats struct {
		ByType map[string]int `json:"by_type"`
	}
	require.NoError(t, json.Unmarshal(got.SubagentStats, &stats))
	require.Equal(t, map[string]int{"joke-finder": 1}, stats.ByType, "the client does not count the skill")
}

// Headless, a rewritten input is honoured: the agent that the model wanted in the background runs in the foreground, and
// its parent waits. The variable that install sets for that in interactive sessions is taken out here.
func TestLiveClaudeTheForegroundIsKeptHeadless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, status string
		more         live.M // of the call
		settings     live.M // of the env block
	}{
		{"the background asked for", "completed", live.M{"run_in_background": true}, nil},
		{"nothing asked for", "completed", nil, nil},
		{"without the gates", "async_launched", nil, live.M{"CAPGATE_DISABLE_GATES": "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("joke-finder", "PROGRAM:finder", c.more), live.Say("done")},
				"finder": {live.Call("Bash", live.M{"command": "echo a shell"}), live.Say("finder done")},
			})
			writeFinder(t, s)
			x := withInstall(ctx, t, s, "--subagents", "joke-finder")
			x.edit(x.userSettings(), func(settings live.M) {
				env := settings["env"].(live.M)
				delete(env, claude.NoBackground)
				for k, v := range c.settings {
					env[k] = v
				}
			})
			record := filepath.Join(s.Home, "events")
			_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{
				Prompt: "PROGRAM:main", AllowedTools: everyTool, Settings: recorder(record, "PostToolUse"),
			})
			require.NoError(t, err)
			var starts []event
			for _, e := range recordedBy(t, record) {
				if e.Tool == "Agent" {
					starts = append(starts, e)
				}
			}
			require.Len(t, starts, 1)
			require.Equal(t, c.status, starts[0].Response.Status)
			result := oneResult(t, s.Model, "main", "Agent")
			require.Equal(t, c.status == "completed", strings.Contains(result.Text, "finder done"), "the parent waits: %s", result.Text)
			if c.status == "completed" {
				require.JSONEq(t, `{"description":"probe","prompt":"PROGRAM:finder","subagent_type":"joke-finder","run_in_background":false}`, string(starts[0].Input))
			}
		})
	}
}

// inTerminal runs the program main in a terminal. Not in the client's interactive default, auto mode: there it has calls
// checked by a server that is not ours, and asks a human when it cannot reach that.
var inTerminal = live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: everyTool, Args: []string{"--permission-mode", "default"}}

// In a terminal the client ignores that input; the variable, which install sets, holds.
func TestLiveClaudeTheForegroundIsKeptInATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		variable   any
		background bool
	}{{"installed", "1", false}, {"without the variable", nil, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("joke-finder", "PROGRAM:finder"), live.Say("all done")},
				"finder": {live.Call("Bash", live.M{"command": "echo a shell"}), live.Say("finder done")},
			})
			writeFinder(t, s)
			x := withInstall(ctx, t, s, "--subagents", "joke-finder")
			x.edit(x.userSettings(), func(settings live.M) {
				if env := settings["env"].(live.M); c.variable == nil {
					delete(env, claude.NoBackground)
				} else {
					require.Equal(t, c.variable, env[claude.NoBackground])
				}
			})
			terminal, err := s.ClaudeTerminal(ctx, inTerminal)
			unavailable(t, err)
			t.Cleanup(func() { require.NoError(t, terminal.Close()) })
			_, err = terminal.WaitFor("all done")
			require.NoError(t, err)
			screen, err := terminal.Screen()
			require.NoError(t, err)
			result := oneResult(t, s.Model, "main", "Agent")
			require.False(t, result.IsError, result.Text)
			require.Equal(t, c.background, strings.Contains(screen, "Backgrounded agent"), screen)
			require.Equal(t, c.background, strings.Contains(result.Text, "Async agent launched"), result.Text)
			require.Equal(t, !c.background, strings.Contains(result.Text, "finder done"), result.Text)
		})
	}
}

const noConsent = "Starting subagents needs a human's approval, and nobody can be asked in this session."

// Headless there is nobody to ask. What an operator has admitted before passes, as often as admitted.
func TestLiveClaudeAdmissionHeadless(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"refused": {agent("joke-finder", "PROGRAM:finder"), live.Say("done")},
		"main":    {agent("joke-finder", "PROGRAM:finder"), agent("joke-finder", "PROGRAM:finder"), live.Say("done")},
		"finder":  {live.Say("finder done")},
	})
	writeFinder(t, s)
	x := withInstall(ctx, t, s, "--subagents", "joke-finder", "--admission", "ask")
	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:refused", AllowedTools: everyTool})
	require.NoError(t, err)
	require.Equal(t, "done", got.Result)
	refused := oneResult(t, s.Model, "refused", "Agent")
	require.True(t, refused.IsError)
	require.Contains(t, refused.Text, noConsent)
	require.Len(t, got.PermissionDenials, 1)
	require.Empty(t, s.Model.Of("finder"))

	x.capgate("admit", "--type", "joke-finder", "--reason", "nightly run")
	x.claude(newUUID())
	starts := s.Model.ResultsOf("main", "Agent")
	require.Len(t, starts, 2)
	require.False(t, starts[0].IsError, starts[0].Text)
	require.Contains(t, starts[0].Text, "finder done")
	require.True(t, starts[1].IsError, "admitted once")
	require.Contains(t, starts[1].Text, noConsent)
	require.Len(t, s.Model.Of("finder"), 1)
	admissions, err := admission.List(x.state())
	require.NoError(t, err)
	require.Len(t, admissions, 1)
	require.Len(t, admissions[0].Spent, 1)
	require.Equal(t, starts[0].UseID, admissions[0].Spent[0].ToolUseID)
}

func TestLiveClaudeAdmissionInATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, option string
		runs         int // of the agent
	}{
		{"yes", `1\. Yes`, 2}, // it is preselected
		// The client offers to remember the answer. A hook that asks is asked for all the same, each time.
		{"yes, and don't ask again", `2\. Yes, and don't ask again`, 2},
		{"no", `3\. No`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("joke-finder", "PROGRAM:finder\nfirst"), agent("joke-finder", "PROGRAM:finder\nsecond"), live.Say("all done")},
				"finder": {live.Say("finder done")},
			})
			writeFinder(t, s)
			withInstall(ctx, t, s, "--subagents", "joke-finder", "--admission", "ask")
			terminal, err := s.ClaudeTerminal(ctx, inTerminal)
			unavailable(t, err)
			t.Cleanup(func() { require.NoError(t, terminal.Close()) })
			for _, task := range []string{"first", "second"} {
				// The message keeps its line breaks; of the task's text they are none of ours.
				_, err = terminal.WaitFor(`(?m)│ Spawn 1 subagent\? *\n *│ *\n *│ - probe \[joke-finder\]: PROGRAM:finder ` + task +
					` *\n *│ *\n *│ Subagents add latency and cost\. Approve only when delegation materially helps\.(?s:.*)❯ 1\. Yes`)
				require.NoError(t, err)
				chosen, err := terminal.WaitFor(`❯ (\d)`)
				require.NoError(t, err)
				for n := 1; !strings.HasPrefix(c.option, chosen[1]); n++ { // one key at a time: two at once may count as one
					require.NoError(t, terminal.SendKeys("Down"))
					chosen, err = terminal.WaitFor(fmt.Sprintf(`❯ (%d)`, n+1))
					require.NoError(t, err)
				}
				_, err = terminal.WaitFor("❯ " + c.option)
				require.NoError(t, err)
				require.NoError(t, terminal.SendKeys("Enter"))
				if c.runs == 0 {
					break
				}
			}
			if c.runs == 0 {
				_, err = terminal.WaitFor("What should Claude do instead")
				require.NoError(t, err)
				require.Empty(t, s.Model.ResultsOf("main", "Agent"), "the turn ends: the model is told nothing")
			} else {
				_, err = terminal.WaitFor("all done")
				require.NoError(t, err)
				for _, start := range s.Model.ResultsOf("main", "Agent") {
					require.Contains(t, start.Text, "finder done")
				}
			}
			require.Len(t, s.Model.Of("finder"), c.runs)
		})
	}
}

// What the client takes for a yes: our gate must not deny for nothing, nor rest on what the client does not hear.
func TestLiveClaudeReadsTheBackgroundVariable(t *testing.T) {
	t.Parallel()
	for value, off := range map[string]bool{
		"1": true, "true": true, "TRUE": true, "yes": true, "on": true, " 1 ": true,
		"0": false, "false": false, "2": false, "y": false, "": false,
	} {
		t.Run("="+value, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("joke-finder", "PROGRAM:finder", live.M{"run_in_background": true}), live.Say("done")},
				"finder": {live.Say("finder done")},
			})
			writeFinder(t, s)
			_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{
				Prompt: "PROGRAM:main", AllowedTools: everyTool, Settings: live.M{"env": live.M{claude.NoBackground: value}},
			})
			require.NoError(t, err)
			result := oneResult(t, s.Model, "main", "Agent")
			require.Equal(t, off, strings.Contains(result.Text, "finder done"), "the parent waits: %s", result.Text)
			require.Equal(t, off, !claude.Background(func(string) (string, bool) { return value, true }))
		})
	}
}

// A subagent starts with what there is of its tools. Only where there is nothing of them is it refused.
func TestLiveClaudeASubagentStartsWithSomeOfItsTools(t *testing.T) {
	t.Parallel()
	for tools, starts := range map[string]bool{"Bash, Nonexistent": true, "Nonexistent": false, "Bash(git:*)": true} {
		t.Run(tools, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("partly", "PROGRAM:finder"), live.Say("done")},
				"finder": {live.Say("finder done")},
			})
			writeLive(t, filepath.Join(s.Work, ".claude", "agents", "partly.md"), "---\nname: partly\ndescription: d\ntools: "+tools+"\n---\nFind.\n")
			_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{
				Prompt: "PROGRAM:main", AllowedTools: everyTool, Settings: live.M{"env": live.M{claude.NoBackground: "1"}},
			})
			require.NoError(t, err)
			result := oneResult(t, s.Model, "main", "Agent")
			require.Equal(t, starts, len(s.Model.Of("finder")) > 0, result.Text)
			require.Equal(t, !starts, result.IsError, result.Text)
		})
	}
}

// Of what a workflow's input names the client runs the script at a path before the script, and so the question shows it.
func TestLiveClaudeAWorkflowRunsWhatTheQuestionNamesFirst(t *testing.T) {
	t.Parallel()
	script := func(program string) string {
		return "export const meta = { name: 'x', description: 'd', phases: [{title: 'p'}] }\nphase('p')\nreturn await agent('PROGRAM:" + program + "')"
	}
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Call("Workflow", live.M{"scriptPath": "flow.js", "script": script("by-script")}),
			live.Call("Bash", live.M{"command": "sleep 2"}), live.Say("done"),
		},
		"by-path": {live.Say("by path")}, "by-script": {live.Say("by script")},
	})
	writeLive(t, filepath.Join(s.Work, "flow.js"), script("by-path"))
	_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: everyTool})
	require.NoError(t, err)
	require.NotEmpty(t, s.Model.Of("by-path"), oneResult(t, s.Model, "main", "Workflow").Text)
	require.Empty(t, s.Model.Of("by-script"))
	question := gates.AdmissionText(gates.Spawns(gates.Call{Tool: "Workflow", Input: []byte(`{"script":"s","scriptPath":"/p.js"}`)}))
	require.Contains(t, question, "runs the script at /p.js; not run, but named as well: s")
}
