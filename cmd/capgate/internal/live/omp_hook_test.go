//go:build live

package live_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// gated writes the extension around the real hook.
func gated(t *testing.T, s *live.Sandbox, env map[string]string) string {
	t.Helper()
	return writeExtension(t, s, filepath.Join(freshBuild(t), "capgate-hook"), env)
}

func TestLiveOMPOnlyDeclaredTypesStartAndTheShellIsForThem(t *testing.T) {
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Call("task", live.M{"context": "c", "tasks": []live.M{{"agent": "task", "task": "t"}, {"agent": "scout", "task": "t"}}}),
			live.Call("bash", live.M{"command": "echo shell"}),
			live.Call("task", live.M{"context": "c", "tasks": []live.M{{"name": "Alpha", "task": "PROGRAM:leaf"}}}),
			live.Call("hub", live.M{"op": "wait"}),
			live.Say("done"),
		},
		"leaf": {live.Call("bash", live.M{"command": "echo shell"}), finish},
	})
	got, err := s.OMPHeadless(ctx, live.OMPRun{
		Prompt: "PROGRAM:main", Extension: gated(t, s, map[string]string{"CAPGATE_ALLOWED_SUBAGENTS": "task"}),
	})
	require.NoError(t, err)
	require.Contains(t, got.Stdout, "done")
	spawns := s.Model.ResultsOf("main", "task")
	require.Len(t, spawns, 2)
	require.True(t, spawns[0].IsError)
	require.Contains(t, spawns[0].Text, `Delegation is only available for "task" in this session, not "scout" - do the task directly with your own tools instead of spawning another agent for it.`)
	require.False(t, spawns[1].IsError, spawns[1].Text)
	require.True(t, oneResult(t, s.Model, "main", "bash").IsError)
	require.Contains(t, oneResult(t, s.Model, "main", "bash").Text, "Bash is only available to dedicated subagents")
	leaf := oneResult(t, s.Model, "leaf", "bash")
	require.False(t, leaf.IsError, leaf.Text)
	require.Contains(t, leaf.Text, "shell")
}

// An agent that eval code starts goes past the gate on types; what it then does, does not.
func TestLiveOMPAnAgentStartedByCodeCannotDoAnything(t *testing.T) {
	ctx, s := startLive(t, live.Programs{
		"main": {live.Call("eval", live.M{"language": "js", "code": "return await (await agent('PROGRAM:leaf', {agent: 'scout'})).wait()"}), live.Say("done")},
		"leaf": {live.Call("grep", live.M{"pattern": "x"}), finish},
	})
	_, err := s.OMPHeadless(ctx, live.OMPRun{
		Prompt: "PROGRAM:main", Extension: gated(t, s, map[string]string{"CAPGATE_ALLOWED_SUBAGENTS": "task"}),
		Args: []string{"--max-time", "20"},
	})
	require.NoError(t, err)
	result := oneResult(t, s.Model, "leaf", "grep")
	require.True(t, result.IsError)
	require.Contains(t, result.Text, `not to "scout"`)
}

// Where spawns are denied and no list says which types there may be, an agent that eval code starts can do nothing, unless an
// operator admitted one of its type and that was used in this session.
func TestLiveOMPWithoutAListAnAgentStartedByCodeWorksWhereItsTypeWasAdmitted(t *testing.T) {
	byCode := live.Call("eval", live.M{"language": "js", "code": "return await (await agent('PROGRAM:leaf', {agent: 'scout'})).wait()"})
	for _, admitted := range []bool{false, true} {
		t.Run(map[bool]string{false: "not admitted", true: "admitted"}[admitted], func(t *testing.T) {
			bin, state := freshBuild(t), filepath.Join(t.TempDir(), "state")
			ctx, s := startLive(t, live.Programs{
				"main": {
					live.Calls(one("scout", "PROGRAM:first")), live.Call("hub", live.M{"op": "wait"}), byCode, live.Say("done"),
				},
				"first": {finish},
				"leaf":  {live.Call("grep", live.M{"pattern": "x"}), finish},
			})
			if admitted {
				admit := exec.CommandContext(ctx, filepath.Join(bin, "capgate"), "admit", "--type", "scout", "--reason", "a test")
				admit.Env = append(s.Environ(), "CAPGATE_DATA_DIR="+state)
				out, err := admit.CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			_, err := s.OMPHeadless(ctx, live.OMPRun{
				Prompt: "PROGRAM:main", Args: []string{"--max-time", "30"},
				Extension: gated(t, s, map[string]string{"CAPGATE_ADMISSION": "deny", "CAPGATE_DATA_DIR": state}),
			})
			require.NoError(t, err)
			require.Equal(t, !admitted, oneResult(t, s.Model, "main", "task").IsError)
			result := oneResult(t, s.Model, "leaf", "grep")
			if admitted {
				require.NotContains(t, result.Text, "capgate")
				return
			}
			require.True(t, result.IsError)
			require.Contains(t, result.Text, `no operator has admitted one of type "scout"`)
		})
	}
}

func TestLiveOMPAdmissionAsksOnceForTheBatch(t *testing.T) {
	ctx, s := startLive(t, live.Programs{
		"refused": {batch("PROGRAM:leaf"), live.Say("done")},
		"granted": {batch("PROGRAM:leaf"), live.Call("hub", live.M{"op": "wait"}), live.Say("done")},
		"leaf":    {batch("PROGRAM:leaf"), finish},
	})
	client, err := s.OMPRPC(ctx, live.OMPRun{Extension: gated(t, s, map[string]string{"CAPGATE_ADMISSION": "ask"})})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	for _, program := range []string{"refused", "granted"} {
		require.NoError(t, client.Prompt("PROGRAM:"+program))
		dialog, err := client.Dialog()
		require.NoError(t, err)
		require.Equal(t, "Approve subagent spawn?", dialog.Title)
		require.Equal(t, "Spawn 2 subagents?\n\n- Alpha [task]: PROGRAM:leaf\n\n- Beta [task]: PROGRAM:leaf\n\nSubagents add latency and cost. Approve only when delegation materially helps.", dialog.Message)
		require.NoError(t, client.Answer(dialog, program == "granted"))
		require.NoError(t, client.Settled())
		require.Equal(t, program == "refused", oneResult(t, s.Model, program, "task").IsError)
	}
	require.Contains(t, oneResult(t, s.Model, "refused", "task").Text, "User did not approve the subagent spawn.")
	inside := s.Model.ResultsOf("leaf", "task")
	require.NotEmpty(t, inside)
	for _, r := range inside {
		require.True(t, r.IsError, "a subagent has no dialog")
		require.Contains(t, r.Text, "Spawning subagents requires explicit user approval in an interactive OMP session.")
	}
}

func TestLiveOMPAdmissionWithoutAUIDenies(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"main": {batch("PROGRAM:leaf"), live.Say("done")}})
	got, err := s.OMPHeadless(ctx, live.OMPRun{
		Prompt: "PROGRAM:main", Extension: gated(t, s, map[string]string{"CAPGATE_ADMISSION": "ask"}),
	})
	require.NoError(t, err)
	require.Contains(t, got.Stdout, "done")
	result := oneResult(t, s.Model, "main", "task")
	require.True(t, result.IsError)
	require.Contains(t, result.Text, "Spawning subagents requires explicit user approval in an interactive OMP session.")
	require.Empty(t, s.Model.Of("leaf"))
}

func TestLiveOMPTheCapHoldsInTheMainAgentAndInSubagentsAndInNoOtherSession(t *testing.T) {
	bin, state := freshBuild(t), filepath.Join(t.TempDir(), "state")
	capgate := filepath.Join(bin, "capgate")
	search := live.Use{Tool: "web_search", Input: live.M{"query": "q"}}
	page := live.Use{Tool: "read", Input: live.M{"path": "http://127.0.0.1:9/page"}}
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Calls(search, live.Use{Tool: "task", Input: live.M{"context": "c", "tasks": []live.M{{"name": "Alpha", "task": "PROGRAM:leaf"}}}}),
			live.Call("hub", live.M{"op": "wait"}),
			live.Calls(search, page, live.Use{Tool: "write", Input: live.M{"path": "result.md", "content": "found"}}),
			batch("PROGRAM:leaf"),
			live.Say("done"),
		},
		"leaf": {
			live.Calls(search),
			live.Call("bash", live.M{"command": "'" + capgate + "' turn --run storm"}), // the run's last turn
			live.Calls(search, page),
			finish,
		},
		"other": {live.Calls(search), live.Say("done")},
	})
	env := map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": state}
	s.Env = []string{"CAPGATE_DATA_DIR=" + state}
	run := live.OMPRun{Extension: writeExtension(t, s, filepath.Join(bin, "capgate-hook"), env)}
	client, err := s.OMPRPC(ctx, run)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	open := exec.CommandContext(ctx, capgate, "scope", "open", "--session", client.Session, "--run", "storm", "--max-conv-turns", "1", "--max-dimensions", "1")
	open.Env = append(os.Environ(), "CAPGATE_DATA_DIR="+state)
	out, err := open.CombinedOutput()
	require.NoError(t, err, "%s", out)

	require.NoError(t, client.Prompt("PROGRAM:main"))
	require.NoError(t, client.Settled())
	for _, program := range []string{"main", "leaf"} {
		searches := s.Model.ResultsOf(program, "web_search")
		require.Len(t, searches, 2)
		require.False(t, searches[0].IsError, "within the budget: %s", searches[0].Text)
		for _, denied := range []live.Result{searches[1], oneResult(t, s.Model, program, "read")} {
			require.True(t, denied.IsError)
			require.Contains(t, denied.Text, "turn budget spent (1 of 1, run storm)")
		}
	}
	require.Contains(t, oneResult(t, s.Model, "leaf", "bash").Text, "1 of 1")
	spawns := s.Model.ResultsOf("main", "task")
	require.Len(t, spawns, 2)
	require.False(t, spawns[0].IsError, spawns[0].Text)
	require.Contains(t, spawns[1].Text, "turn budget spent (1 of 1, run storm)")
	require.FileExists(t, filepath.Join(s.Work, "result.md"), "what was found can be written up")

	run.Prompt = "PROGRAM:other"
	_, err = s.OMPHeadless(ctx, run)
	require.NoError(t, err)
	require.False(t, oneResult(t, s.Model, "other", "web_search").IsError, "another session is not in scope")
}
