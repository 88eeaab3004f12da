//go:build live

package live_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
	"github.com/capgate/capgate/scope"
)

// Folders for the plugin. Where a shell would trip over the name the client runs the hook all the same, but leaves the
// plugin's commands out of its shell's PATH.
const (
	plain = "a plugin"
	odd   = "it's a plugin"
)

// exportPlugin writes the plugin as capgate does, into a folder of that name.
func exportPlugin(t *testing.T, name string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	out, err := exec.CommandContext(t.Context(), filepath.Join(freshBuild(t), "capgate"), append([]string{"plugin", "export", dir}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

func shell(command string) live.Step { return live.Call("Bash", live.M{"command": command}) }

// The loop in the Bash tool and the plugin's hook find the same state, with nothing set in any settings file.
func TestLivePluginStopsItsOwnLoopAtTheCap(t *testing.T) {
	t.Run(plain, func(t *testing.T) { pluginLoop(t, plain) })
	t.Run(odd+" and the commands on PATH", func(t *testing.T) { pluginLoop(t, odd) })
}

func pluginLoop(t *testing.T, folder string) {
	search := live.Call("WebSearch", live.M{"query": "one more source"})
	ctx, s := startLive(t, live.Programs{"loop": {
		shell("capgate scope open --run storm --max-conv-turns 2 --max-dimensions 1"),
		shell("capgate turn --run storm"),
		shell("capgate turn --run storm"),
		shell("capgate scope list --json"),
		shell("capgate turn --run storm; echo exit status $?"),
		search,
		live.Say("wrote it up"),
	}})
	if folder == odd {
		withCommands(ctx, t, s)
	}
	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{
		Prompt: "PROGRAM:loop", AllowedTools: []string{"Bash", "WebSearch"}, Args: []string{"--plugin-dir", exportPlugin(t, folder)},
	})
	require.NoError(t, err)
	require.Equal(t, "wrote it up", got.Result, got.Stderr)
	said := s.Model.ResultsOf("loop", "Bash")
	require.Len(t, said, 5)
	for _, r := range said[:4] {
		require.False(t, r.IsError, r.Text)
	}
	assert.Contains(t, said[3].Text, got.Session, "the session is armed under the client's own id")
	assert.Contains(t, said[4].Text, "exit status 2")
	denied := oneResult(t, s.Model, "loop", "WebSearch")
	assert.True(t, denied.IsError)
	assert.Contains(t, denied.Text, "turn budget spent (2 of 2, run storm)")

	data := filepath.Join(s.Home, ".claude", "plugins", "data", "capgate-inline")
	assert.FileExists(t, filepath.Join(data, "ledger.db"))
	markers, err := scope.List(data)
	require.NoError(t, err)
	require.Len(t, markers, 1, "the end of the client ends no scope")
	assert.Equal(t, got.Session, markers[0].Session)
}

func TestLivePluginStatusCommand(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"status": {live.Say("told")}})
	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{
		Prompt: "/capgate:status PROGRAM:status", Args: []string{"--plugin-dir", exportPlugin(t, plain)},
	})
	require.NoError(t, err)
	require.False(t, got.IsError, got.Result)
	require.NotEmpty(t, s.Model.Requests())
	transcripts, err := filepath.Glob(filepath.Join(s.Home, ".claude", "projects", "*", got.Session+".jsonl"))
	require.NoError(t, err)
	require.Len(t, transcripts, 1)
	text, err := os.ReadFile(transcripts[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), `state   `+filepath.Join(s.Home, ".claude", "plugins", "data", "capgate-inline"))
	assert.Contains(t, string(text), "no session is armed")
}

// The programs are gone, as after a half-removed plugin: the call must not go through.
func TestLivePluginWithoutItsHookBlocks(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"main": {shell("echo through"), live.Say("done")}})
	dir := exportPlugin(t, odd)
	require.NoError(t, os.Remove(filepath.Join(dir, "bin", "capgate-hook")))
	_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: []string{"Bash"}, Args: []string{"--plugin-dir", dir}})
	require.NoError(t, err)
	assert.True(t, oneResult(t, s.Model, "main", "Bash").IsError)
}

// The client's own validator takes both forms of an export, and installs the plugin from the marketplace.
func TestLivePluginIsValidAndInstallsFromItsMarketplace(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"main": {shell("capgate scope open --run storm --max-conv-turns 1 --max-dimensions 1 && capgate turn --run storm"),
		live.Call("WebSearch", live.M{"query": "one more source"}), live.Say("done")}})
	claude := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(ctx, s.Clients.Claude, args...)
		c.Dir = s.Work
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "HTTPS_PROXY=http://127.0.0.1:9"}
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
	}
	claude("plugin", "validate", exportPlugin(t, odd))
	market := exportPlugin(t, plain, "--marketplace")
	claude("plugin", "validate", market)
	claude("plugin", "marketplace", "add", market)
	claude("plugin", "install", "capgate@capgate")
	_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: []string{"Bash", "WebSearch"}})
	require.NoError(t, err)
	denied := oneResult(t, s.Model, "main", "WebSearch")
	assert.True(t, denied.IsError)
	assert.Contains(t, denied.Text, "turn budget spent (1 of 1, run storm)")
	assert.FileExists(t, filepath.Join(s.Home, ".claude", "plugins", "data", "capgate-capgate", "ledger.db"))
}
