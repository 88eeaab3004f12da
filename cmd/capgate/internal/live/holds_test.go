//go:build live

package live_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// What was built and installed from can be deleted, as by `make clean`: sessions work on, and the cap holds.
func TestLiveClaudeInstalledFromACloneThatIsDeleted(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main":  {live.Call("Read", live.M{"file_path": "here"}), search, live.Say("done")},
		"other": {live.Call("Bash", live.M{"command": "touch ran"}), search, live.Say("done")},
	})
	x := withInstall(ctx, t, s)
	writeLive(t, filepath.Join(s.Work, "here"), "text")
	session := x.armSpent()
	require.NoError(t, os.RemoveAll(x.bin))
	x.claude(session)
	require.False(t, oneResult(t, s.Model, "main", "Read").IsError)
	require.Contains(t, oneResult(t, s.Model, "main", "WebSearch").Text, spent)
	_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:other", AllowedTools: everyTool})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(s.Work, "ran"))
	require.False(t, oneResult(t, s.Model, "other", "WebSearch").IsError)
}

// A colleague without capgate pulls a project in which it is installed, and works as if it were not; who has it is held, by the
// very same files.
func TestLiveAColleagueWithoutCapgateWorksInTheProject(t *testing.T) {
	t.Parallel()
	for name, has := range map[string]bool{"without": false, "with": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{"main": {live.Call("Bash", live.M{"command": "touch ran"}), search, live.Say("done")}})
			x := withInstall(ctx, t, s, "--scope", "project", "--subagents", "a")
			require.NoError(t, os.RemoveAll(x.bin))
			if !has {
				require.NoError(t, os.RemoveAll(filepath.Join(x.Home, ".local")))
			}
			got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: everyTool})
			require.NoError(t, err)
			require.Equal(t, "done", got.Result)
			require.Empty(t, got.Stderr, "nor does he see anything of it")
			require.False(t, oneResult(t, s.Model, "main", "WebSearch").IsError)
			bash := oneResult(t, s.Model, "main", "Bash")
			require.Equal(t, has, bash.IsError, bash.Text)
		})
	}
}

// The same in Oh My Pi.
func TestLiveOMPAColleagueWithoutCapgateWorksInTheProject(t *testing.T) {
	t.Parallel()
	for name, has := range map[string]bool{"without": false, "with": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{"main": {live.Call("bash", live.M{"command": "touch ran"}), live.Say("done")}})
			x := withInstall(ctx, t, s, "--client", "omp", "--scope", "project", "--subagents", "a")
			require.NoError(t, os.RemoveAll(x.bin))
			if !has {
				require.NoError(t, os.RemoveAll(filepath.Join(x.Home, ".local")))
			}
			x.ompPrompt(x.ompRPC(), "main")
			bash := oneResult(t, s.Model, "main", "bash")
			require.Equal(t, has, bash.IsError, bash.Text)
		})
	}
}

// A newer program that is installed over a session that runs breaks none of its calls.
func TestLiveClaudeAnUpgradeBreaksNoCall(t *testing.T) {
	t.Parallel()
	var steps []live.Step
	const calls = 12
	for range calls {
		steps = append(steps, search)
	}
	ctx, s := startLive(t, live.Programs{"main": append(steps, live.Say("done"))})
	x := withInstall(ctx, t, s)
	session := x.arm()
	ended := make(chan struct{})
	upgraded := make(chan int)
	go func() {
		n := 0
		defer func() { upgraded <- n }()
		for {
			select {
			case <-ended:
				return
			case <-time.After(20 * time.Millisecond):
			}
			program := filepath.Join(x.bin, "capgate-hook")
			text, err := os.ReadFile(program)
			if err != nil || os.Remove(program) != nil || os.WriteFile(program, append(text, 'x'), 0o700) != nil { // another version
				return
			}
			if _, _, exit := x.run(nil, filepath.Join(x.bin, "capgate"), "install"); exit != 0 {
				return
			}
			n++
		}
	}()
	x.claude(session)
	close(ended)
	require.Greater(t, <-upgraded, 2)
	results := s.Model.ResultsOf("main", "WebSearch")
	require.Len(t, results, calls)
	for _, r := range results {
		require.False(t, r.IsError, r.Text)
	}
	require.Empty(t, x.decisions())
}
