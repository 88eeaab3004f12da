//go:build live

package live_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// requireHearing checks that everything that shows the state of a session says the same of it.
func (x *setup) requireHearing(session, word, status, doctor string) {
	x.t.Helper()
	require.Regexp(x.t, `(?m)^`+session+` .*hook: `+word+` +`+status, x.capgate("status"))
	require.Regexp(x.t, `(?m)^`+session+` +armed +`+word+` `, x.capgate("scope", "list"))
	found, _, _ := x.run(nil, filepath.Join(x.bin, "capgate"), "doctor")
	require.Contains(x.t, found, doctor)
}

// A loop that counts no turns is a bound that never comes. Whoever looks is told, and so is the next turn.
func TestLiveASessionWhoseSearchesAreNotCountedIsNamed(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{
		"main":  {search, search, search, live.Say("done")},
		"again": {search, live.Call("Bash", live.M{"command": "capgate turn end --run " + liveRun}), live.Say("done")},
	})
	x := withInstall(ctx, t, s)
	session := x.arm()
	x.claude(session)
	requireDenials(t, s.Model, "main", "WebSearch", []bool{2: false})
	x.requireHearing(session, "uncounted", "3 searches passed and no turn was counted",
		"session "+session+": 3 searches passed and no turn was counted since it was armed (uncounted)")
	require.Contains(t, x.capgate("turn", "begin", "--run", liveRun), "uncounted: session "+session+" has searched before its first turn was counted")
	x.headless("again", "--resume", session)
	x.requirePassed("again")
	require.NotContains(t, oneResult(t, s.Model, "again", "Bash").Text, "uncounted")
	x.requireHearing(session, `heard`, ``, "1 session armed")
}

// Turns that no hook hears of are only half of the bound: the client searches on at the cap.
func TestLiveASessionWithoutItsHookIsNamed(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {beginTurn, search, endTurn, search, live.Say("done")}})
	x := withInstall(ctx, t, s)
	x.edit(x.userSettings(), func(settings live.M) { delete(settings, "hooks") })
	session := x.arm()
	x.claude(session)
	requireDenials(t, s.Model, "main", "WebSearch", []bool{1: false})
	shell := s.Model.ResultsOf("main", "Bash")
	require.Len(t, shell, 2)
	require.NotContains(t, shell[0].Text, "silent", "the first turn is not over")
	require.Contains(t, shell[1].Text, "hook: silent for session "+session)
	x.requireHearing(session, "silent", "turns are counted, but the hook judges nothing", "its hook was not heard since it was armed (hook: silent)")
}
