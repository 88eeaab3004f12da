//go:build live

package live_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// The calls of a loop's shell that begin and end a turn.
var (
	beginTurn = live.Call("Bash", live.M{"command": "capgate turn begin --run " + liveRun})
	endTurn   = live.Call("Bash", live.M{"command": "capgate turn end --run " + liveRun})
)

// The run's only turn searches to its end, and not a call after it. A loop that records its turns has to search before it
// does, because the last one is over in the same word.
func TestLiveClaudeTheLastTurnSearchesToItsEnd(t *testing.T) {
	t.Parallel()
	foreground := live.M{"run_in_background": false}
	for _, c := range []struct {
		name     string
		programs live.Programs
		denied   map[string][]bool // by program, each search
	}{
		{
			"begun and ended, on the main thread",
			live.Programs{"main": {beginTurn, search, search, endTurn, search, live.Say("done")}},
			map[string][]bool{"main": {false, false, true}},
		},
		{
			"begun and ended, in a subagent that is started in the turn",
			live.Programs{
				"main": {beginTurn, agent("general-purpose", "PROGRAM:leaf", foreground), search, live.Say("done")},
				"leaf": {search, endTurn, search, live.Say("leaf done")},
			},
			map[string][]bool{"main": {true}, "leaf": {false, true}},
		},
		{
			"ended by the next one, which is refused",
			live.Programs{"main": {beginTurn, search, beginTurn, search, live.Say("done")}},
			map[string][]bool{"main": {false, true}},
		},
		{
			"recorded after it was taken",
			live.Programs{"main": {search, spend, search, live.Say("done")}},
			map[string][]bool{"main": {false, true}},
		},
		{
			"recorded before it is taken",
			live.Programs{"main": {spend, search, live.Say("done")}},
			map[string][]bool{"main": {true}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, c.programs)
			x := withInstall(ctx, t, s)
			x.claude(x.arm())
			for program, denied := range c.denied {
				requireDenials(t, s.Model, program, "WebSearch", denied)
			}
		})
	}
}

// Where turns are begun, the eighth of eight searches like the first.
func TestLiveClaudeEachOfEightTurnsSearches(t *testing.T) {
	t.Parallel()
	turn := live.Call("Bash", live.M{"command": "capgate turn begin --run eight || exit"})
	var steps []live.Step
	for range 8 {
		steps = append(steps, turn, search)
	}
	steps = append(steps, turn, search, live.Say("done"))
	ctx, s := startLive(t, live.Programs{"main": steps})
	x := withInstall(ctx, t, s)
	session := newUUID()
	x.capgate("scope", "open", "--session", session, "--run", "eight", "--max-conv-turns", "8", "--max-dimensions", "1")
	x.claude(session)
	begun := s.Model.ResultsOf("main", "Bash")
	require.Len(t, begun, 9)
	require.Contains(t, begun[7].Text, "turn 8 of 8 begun")
	require.Contains(t, begun[8].Text, "Exit code 2")
	requireDenials(t, s.Model, "main", "WebSearch", []bool{7: false, 8: true})
}

// requireDenials checks which of a program's calls of a tool were denied at the cap, in their order.
func requireDenials(t *testing.T, model *live.Model, program, tool string, denied []bool) {
	t.Helper()
	results := model.ResultsOf(program, tool)
	require.Len(t, results, len(denied), "%v", results)
	for i, want := range denied {
		require.Equal(t, want, results[i].IsError, "call %d: %s", i, results[i].Text)
		if want {
			require.Contains(t, results[i].Text, "turn budget spent")
		}
	}
}
