//go:build live

package live_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// ompRPC starts the client with the extension that is installed, and none that it is told of.
func (x *setup) ompRPC() *live.OMPRPC {
	x.t.Helper()
	client, err := x.OMPRPC(x.ctx, live.OMPRun{})
	require.NoError(x.t, err)
	x.t.Cleanup(func() { require.NoError(x.t, client.Close()) })
	return client
}

func (x *setup) ompPrompt(client *live.OMPRPC, program string) {
	x.t.Helper()
	require.NoError(x.t, client.Prompt("PROGRAM:"+program))
	require.NoError(x.t, client.Settled())
}

// one spawns one agent.
func one(kind, prompt string) live.Use {
	return live.Use{Tool: "task", Input: live.M{"context": "c", "tasks": []live.M{{"name": "Alpha", "agent": kind, "task": prompt}}}}
}

var (
	ompSearch = live.Use{Tool: "web_search", Input: live.M{"query": "q"}}
	ompWait   = live.Call("hub", live.M{"op": "wait"})
)

func TestLiveOMPInstalledTheCapHolds(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Calls(ompSearch, one("task", "PROGRAM:leaf")), ompWait,
			live.Calls(ompSearch, live.Use{Tool: "write", Input: live.M{"path": "result.md", "content": "found"}}),
			live.Say("done"),
		},
		"leaf": {
			live.Calls(ompSearch),
			live.Call("bash", live.M{"command": "capgate turn --run " + liveRun}), // the run's last turn
			live.Calls(ompSearch), finish,
		},
	})
	x := withInstall(ctx, t, s, "--client", "omp")
	client := x.ompRPC()
	x.capgate("scope", "open", "--session", client.Session, "--run", liveRun, "--max-conv-turns", "1", "--max-dimensions", "1")
	x.ompPrompt(client, "main")
	for _, program := range []string{"main", "leaf"} {
		searches := s.Model.ResultsOf(program, "web_search")
		require.Len(t, searches, 2)
		require.False(t, searches[0].IsError, "within the budget: %s", searches[0].Text)
		require.True(t, searches[1].IsError)
		require.Contains(t, searches[1].Text, spent)
	}
	require.FileExists(t, filepath.Join(s.Work, "result.md"), "what was found can be written up")
	decisions := x.decisions()
	require.Len(t, decisions, 2)
	require.NotEmpty(t, decisions[0].AgentID)
	require.Empty(t, decisions[1].AgentID)
}

func TestLiveOMPInstalledTheGatesHold(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Calls(one("scout", "PROGRAM:leaf")),
			live.Call("bash", live.M{"command": "echo a shell"}),
			live.Calls(one("task", "PROGRAM:leaf")), ompWait, live.Say("done"),
		},
		"refused": {live.Calls(one("task", "PROGRAM:never")), live.Say("done")},
		"never":   {finish},
		"leaf":    {live.Call("bash", live.M{"command": "echo a shell"}), finish},
	})
	x := withInstall(ctx, t, s, "--client", "omp", "--subagents", "task", "--admission", "ask")
	client := x.ompRPC()
	for _, program := range []string{"refused", "main"} {
		require.NoError(t, client.Prompt("PROGRAM:"+program))
		dialog, err := client.Dialog()
		require.NoError(t, err)
		require.Equal(t, "Approve subagent spawn?", dialog.Title)
		require.NoError(t, client.Answer(dialog, program == "main"))
		require.NoError(t, client.Settled())
	}
	require.Contains(t, oneResult(t, s.Model, "refused", "task").Text, "User did not approve the subagent spawn.")
	require.Empty(t, s.Model.Of("never"))
	starts := s.Model.ResultsOf("main", "task")
	require.Len(t, starts, 2)
	require.True(t, starts[0].IsError, "without a dialog: it was denied first")
	require.Contains(t, starts[0].Text, `Delegation is only available for "task" in this session, not "scout"`)
	require.False(t, starts[1].IsError, starts[1].Text)
	shell := oneResult(t, s.Model, "main", "bash")
	require.True(t, shell.IsError)
	require.Contains(t, shell.Text, strings.Replace(noShell, "the Agent tool", "the task tool", 1))
	leaf := oneResult(t, s.Model, "leaf", "bash")
	require.False(t, leaf.IsError, leaf.Text)
}

// tree is every path below a folder.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return paths
}

func TestLiveOMPUninstalledNothingIsLeft(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {live.Call("bash", live.M{"command": "echo a shell"}), live.Say("done")}})
	x := withInstall(ctx, t, s, "--client", "omp", "--subagents", "scout")
	agent := filepath.Join(s.Home, ".omp", "agent")
	require.FileExists(t, filepath.Join(agent, "extensions", "capgate.ts"))
	run := func() live.Result {
		before := len(s.Model.ResultsOf("main", "bash"))
		_, err := s.OMPHeadless(ctx, live.OMPRun{Prompt: "PROGRAM:main"})
		require.NoError(t, err)
		results := s.Model.ResultsOf("main", "bash")
		require.Len(t, results, before+1)
		return results[before]
	}
	require.Contains(t, run().Text, strings.Replace(noShell, "the Agent tool", "the task tool", 1))
	x.capgate("uninstall", "--client", "omp")
	for _, path := range tree(t, filepath.Join(s.Home, ".omp")) {
		text, err := os.ReadFile(path)
		require.NotContains(t, path, "capgate")
		if err == nil && filepath.Ext(path) == ".ts" {
			require.NotContains(t, string(text), "capgate", path)
		}
	}
	require.NoDirExists(t, filepath.Join(agent, "extensions"), "install made it")
	result := run()
	require.False(t, result.IsError, result.Text)

	// In a home that no client has used a purge leaves nothing at all but the system's own folders.
	fresh := filepath.Join(filepath.Dir(s.Home), "unused")
	require.NoError(t, os.Mkdir(fresh, 0o700))
	for _, command := range [][]string{{"install"}, {"uninstall", "--purge"}} {
		_, errs, exit := x.run([]string{"HOME=" + fresh}, filepath.Join(x.bin, "capgate"), append(command, "--client", "omp")...)
		require.Zero(t, exit, errs)
	}
	require.Equal(t, []string{fresh, filepath.Join(fresh, ".local"), filepath.Join(fresh, ".local", "share"), filepath.Join(fresh, ".local", "state")}, tree(t, fresh))
}

// A loop in the client's own shell finds the session to arm and the state of the hook: the extension hands both on.
func TestLiveOMPTheShellKnowsSessionAndState(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main": {
			live.Call("bash", live.M{"command": "capgate scope open --run " + liveRun + " --max-conv-turns 1 --max-dimensions 1 && capgate turn --run " + liveRun}),
			live.Calls(ompSearch),
			live.Say("done"),
		},
	})
	x := withInstall(ctx, t, s, "--client", "omp")
	client := x.ompRPC()
	x.ompPrompt(client, "main")
	shell := oneResult(t, s.Model, "main", "bash")
	require.False(t, shell.IsError, shell.Text)
	require.Contains(t, shell.Text, "session "+client.Session+" is armed")
	search := oneResult(t, s.Model, "main", "web_search")
	require.True(t, search.IsError)
	require.Contains(t, search.Text, spent)
}
