//go:build live

package live_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
	"github.com/capgate/capgate/cmd/capgate/internal/look"
	"github.com/capgate/capgate/scope"
)

// The main job, whole: the model itself arms its session, takes its turns until it is refused one, cannot search any
// more, writes up what it has and disarms. Of capgate it is told nothing but the commands.
func TestLiveLoopToItsCapAndToAResult(t *testing.T) {
	t.Parallel()
	bash := func(command string) live.Step { return live.Call("Bash", live.M{"command": command}) }
	turn := bash("capgate turn --run storm --dimension history")
	ctx, s := startLive(t, live.Programs{"main": {
		bash("capgate scope open --run storm --max-conv-turns 2 --max-dimensions 1"),
		search, // turn 1: searched, then recorded
		bash("capgate status --json"),
		turn,
		search,
		turn,
		bash("capgate status --json"),
		turn, // refused
		search,
		live.Call("Write", live.M{"file_path": "result.md", "content": "two turns' worth"}),
		bash("capgate scope close"),
		search, // of a session that is in no loop any more
		live.Say("wrote it up"),
	}})
	x := withInstall(ctx, t, s)
	session := newUUID()
	got := x.claude(session)
	require.Equal(t, "wrote it up", got.Result)

	shell := s.Model.ResultsOf("main", "Bash")
	require.Len(t, shell, 7)
	require.Contains(t, shell[0].Text, "0 of 2 turns used")
	for i, want := range map[int]string{2: "turn 1 of 2 (run storm, dimension history)", 3: "turn 2 of 2 (run storm, dimension history)"} {
		require.False(t, shell[i].IsError, shell[i].Text)
		require.Contains(t, shell[i].Text, want)
	}
	for i, want := range map[int]struct {
		used int64
		hook scope.Hearing
	}{1: {0, scope.Uncounted}, 4: {2, scope.Hears}} { // who records a turn after it is taken has not counted it before
		var status look.Report
		require.NoError(t, json.Unmarshal([]byte(shell[i].Text), &status), shell[i].Text)
		require.True(t, status.Cap, "the shell has the hook's environment")
		require.Len(t, status.Sessions, 1)
		got := status.Sessions[0]
		require.Equal(t, session, got.Session)
		require.Equal(t, want.hook, got.Hook)
		require.Equal(t, want.used, got.Used)
		require.Empty(t, got.Problem)
	}
	require.True(t, shell[5].IsError)
	require.Contains(t, shell[5].Text, "Exit code 2", "refused, not broken")
	require.Contains(t, shell[5].Text, "2 of 2")
	require.False(t, shell[6].IsError, shell[6].Text)

	searches := s.Model.ResultsOf("main", "WebSearch")
	require.Len(t, searches, 4)
	for i, denied := range []bool{false, false, true, false} {
		require.Equal(t, denied, searches[i].IsError, searches[i].Text)
	}
	require.Contains(t, searches[2].Text, "turn budget spent (2 of 2, run storm)")
	text, err := os.ReadFile(filepath.Join(s.Work, "result.md"))
	require.NoError(t, err)
	require.Equal(t, "two turns' worth", string(text))

	var run struct {
		Used, Limit int
		Dimensions  map[string]int
	}
	require.NoError(t, json.Unmarshal([]byte(x.capgate("run", "show", "storm", "--json")), &run))
	require.Equal(t, 2, run.Used)
	require.Equal(t, 2, run.Limit)
	require.Equal(t, map[string]int{"history": 2}, run.Dimensions)
	x.capgate("ledger", "verify")
	decisions := x.decisions()
	require.Len(t, decisions, 1)
	require.Contains(t, x.capgate("explain", decisions[0].ID), "storm", "the id in the reason can be looked up")
}
