//go:build live

package live_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/doctor"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// ours returns the installed entries of an event.
func ours(settings live.M, event string) []live.M {
	var found []live.M
	for _, group := range settings["hooks"].(live.M)[event].([]any) {
		for _, hook := range group.(live.M)["hooks"].([]any) {
			found = append(found, hook.(live.M))
		}
	}
	return found
}

// As it is installed, a hook that gives no answer blocks the calls that it is there to judge and no other, and the session goes on.
// In an unarmed session, so that only that can be the reason.
func TestLiveClaudeAHookThatFailsBlocksWhatItJudges(t *testing.T) {
	t.Parallel()
	capped := []string{"WebSearch"}
	for _, c := range []struct {
		name, hook string // the hook is replaced by this shell code, or removed
		install    []string
		blocked    []string
	}{
		{"killed", "kill -KILL $$", nil, capped},
		{"hung", "exec sleep 60", nil, capped},
		{"crashed", "exit 1", nil, capped},
		{"missing", "", nil, capped},
		{"missing, with admission", "", []string{"--admission", "ask"}, []string{"WebSearch", "Write"}},
		{"missing, with a list", "", []string{"--subagents", "a"}, []string{"Bash", "Read", "Write", "WebSearch"}},
		{"missing, in a project", "", []string{"--scope", "project", "--subagents", "a"}, nil},
		{"crashed, in a project", "exit 1", []string{"--scope", "project"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			programs := live.Programs{}
			ctx, s := startLive(t, programs)
			programs["main"] = []live.Step{
				live.Call("Bash", live.M{"command": "touch ran"}), live.Call("Read", live.M{"file_path": filepath.Join(s.Work, "here")}),
				live.Call("Write", live.M{"file_path": filepath.Join(s.Work, "result.md"), "content": "found"}), search, live.Say("done"),
			}
			writeLive(t, filepath.Join(s.Work, "here"), "text")
			x := withInstall(ctx, t, s, c.install...)
			settings := x.userSettings()
			if slices.Contains(c.install, "project") {
				settings = x.projectSettings()
				require.NoError(t, os.Remove(filepath.Join(x.bin, "capgate-hook"))) // which is on PATH
			}
			x.edit(settings, func(settings live.M) {
				for _, event := range hookEvents {
					for _, hook := range ours(settings, event) {
						require.EqualValues(t, hookTimeout, hook["timeout"])
						hook["timeout"] = 1 // seconds, for the hook that hangs
					}
				}
			})
			require.NoError(t, os.Remove(x.hook()))
			if c.hook != "" {
				require.NoError(t, os.WriteFile(x.hook(), []byte("#!/bin/sh\n"+c.hook+"\n"), 0o700))
			}
			got := x.claude(newUUID())
			require.Equal(t, "done", got.Result, "the session goes on")
			for _, tool := range []string{"Bash", "Read", "Write", "WebSearch"} {
				result := oneResult(t, s.Model, "main", tool)
				require.Equal(t, slices.Contains(c.blocked, tool), result.IsError, "%s: %s", tool, result.Text)
				if result.IsError { // the client's own words
					require.Contains(t, result.Text, `blocking because onFailure is "block"`)
				}
			}
		})
	}
}

// What the hook cannot count, it denies: here the ledger is gone.
func TestLiveClaudeWithoutItsLedgerAnArmedSessionIsDenied(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {search, live.Say("done")}, "other": {search, live.Say("done")}})
	x := withInstall(ctx, t, s)
	session := x.arm()
	require.NoError(t, os.Remove(filepath.Join(x.state(), "ledger.db")))
	x.claude(session)
	require.True(t, oneResult(t, s.Model, "main", "WebSearch").IsError)
	require.Equal(t, "ledger-unreadable", x.decisions()[0].Code)
	_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:other", AllowedTools: everyTool})
	require.NoError(t, err)
	require.False(t, oneResult(t, s.Model, "other", "WebSearch").IsError)
}

// doctor diagnoses the sandbox with the real client.
func (x *setup) doctor() (d doctor.Diagnosis, exit int) {
	x.t.Helper()
	out, errs, exit := x.run(nil, filepath.Join(x.bin, "capgate"), "doctor", "--json", "--bin", x.Clients.Claude)
	require.NoError(x.t, json.Unmarshal([]byte(out), &d), "%s %s", out, errs)
	return d, exit
}

func TestLiveClaudeTheDoctorAgreesWithTheClient(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {search, live.Say("done")}})
	x := withInstall(ctx, t, s)
	d, exit := x.doctor()
	require.Equal(t, cli.StatusDone, exit)
	require.True(t, d.Healthy, "%+v", d.Findings)
	require.Contains(t, d.Findings, doctor.Finding{Check: "client", Level: doctor.OK, Found: "Claude Code " + live.ClaudeVersion})
	session := x.armSpent()
	x.claude(session)
	require.Contains(t, oneResult(t, s.Model, "main", "WebSearch").Text, spent)
	d, exit = x.doctor()
	require.Equal(t, cli.StatusDone, exit, "also after a run: %+v", d.Findings)
	require.True(t, d.Healthy)
}

func TestLiveClaudeWithHooksDisabledNothingIsJudgedAndTheDoctorSaysSo(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {search, live.Say("done")}})
	x := withInstall(ctx, t, s)
	x.edit(x.userSettings(), func(settings live.M) { settings["disableAllHooks"] = true })
	session := x.armSpent()
	x.claude(session)
	require.False(t, oneResult(t, s.Model, "main", "WebSearch").IsError)
	d, exit := x.doctor()
	require.Equal(t, cli.StatusUnhealthy, exit)
	var found []string
	for _, f := range d.Findings {
		if f.Level == doctor.Fail {
			found = append(found, f.Check)
		}
	}
	require.Contains(t, found, "settings", "%+v", d.Findings)
	// Nobody has disarmed the session, because SessionEnd was not heard either.
	require.Contains(t, x.capgate("scope", "list"), session)
}
