//go:build live

package live_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// The client ends nothing either: who goes on with its session, over RPC or headless, is still held.
func TestLiveOMPASessionThatGoesOnIsStillHeld(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main":     {live.Calls(ompSearch), live.Say("done")},
		"again":    {live.Calls(ompSearch), live.Say("done")},
		"headless": {live.Calls(ompSearch), live.Say("done")},
	})
	x := withInstall(ctx, t, s, "--client", "omp")
	client := x.ompRPC()
	session := client.Session
	x.capgate("scope", "open", "--session", session, "--run", liveRun, "--max-conv-turns", "1", "--max-dimensions", "1")
	x.ompPrompt(client, "main")
	x.capgate("turn", "--run", liveRun)
	require.NoError(t, client.Close())
	x.requireArmed(session)

	client, err := s.OMPRPC(ctx, live.OMPRun{Args: []string{"--continue"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.Equal(t, session, client.Session)
	x.ompPrompt(client, "again")
	_, err = s.OMPHeadless(ctx, live.OMPRun{Prompt: "PROGRAM:headless", Args: []string{"--resume", session}})
	require.NoError(t, err)
	requireDenials(t, s.Model, "main", "web_search", []bool{false})
	for _, program := range []string{"again", "headless"} { // the second beside the first
		requireDenials(t, s.Model, program, "web_search", []bool{true})
	}
	x.requireArmed(session)
}

// The run's only turn searches to its end in the main agent and in a subagent, and not a call after it.
func TestLiveOMPTheLastTurnSearchesToItsEnd(t *testing.T) {
	t.Parallel()
	shell := func(command string) live.Step { return live.Call("bash", live.M{"command": command}) }
	ctx, s := startLive(t, live.Programs{
		"main": {
			shell("capgate turn begin --run " + liveRun),
			live.Calls(ompSearch), live.Calls(one("task", "PROGRAM:leaf")), ompWait, live.Calls(ompSearch), live.Say("done"),
		},
		"leaf": {live.Calls(ompSearch), shell("capgate turn end --run " + liveRun), live.Calls(ompSearch), finish},
	})
	x := withInstall(ctx, t, s, "--client", "omp")
	client := x.ompRPC()
	x.capgate("scope", "open", "--session", client.Session, "--run", liveRun, "--max-conv-turns", "1", "--max-dimensions", "1")
	x.ompPrompt(client, "main")
	requireDenials(t, s.Model, "main", "web_search", []bool{false, true})
	requireDenials(t, s.Model, "leaf", "web_search", []bool{false, true})
}
