//go:build live

package live_test

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// As it is installed, a hook that gives no answer blocks the call, and the session goes on. In an unarmed session, so
// that only that can be the reason.
func TestLiveClaudeAHookThatFailsBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, hook string // the hook is replaced by this shell code, or removed
		onFailure  bool
	}{
		{"killed", "kill -KILL $$", true},
		{"hung", "exec sleep 60", true},
		{"crashed", "exit 1", true},
		{"missing", "", true},
		{"missing, and onFailure taken out", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, s := startLive(t, live.Programs{"main": {live.Call("Bash", live.M{"command": "touch ran"}), search, live.Say("done")}})
			x := withInstall(ctx, t, s)
			x.edit(x.userSettings(), func(settings live.M) {
				for _, event := range hookEvents {
					for _, hook := range ours(settings, event) {
						require.Equal(t, filepath.Join(x.bin, "capgate-hook"), hook["command"])
						require.EqualValues(t, hookTimeout, hook["timeout"])
						hook["timeout"] = 1 // seconds, for the hook that hangs
						if !c.onFailure {
							delete(hook, "onFailure")
						}
					}
				}
			})
			hook := filepath.Join(x.bin, "capgate-hook")
			require.NoError(t, os.Remove(hook))
			if c.hook != "" {
				require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\n"+c.hook+"\n"), 0o700))
			}
			got := x.claude(newUUID())
			require.Equal(t, "done", got.Result, "the session goes on")
			for _, tool := range []string{"Bash", "WebSearch"} {
				result := oneResult(t, s.Model, "main", tool)
				require.Equal(t, c.onFailure, result.IsError, result.Text)
				if c.onFailure { // the client's own words
					require.Contains(t, result.Text, `blocking because onFailure is "block"`)
				}
			}
			if c.onFailure {
				require.NoFileExists(t, filepath.Join(s.Work, "ran"))
			} else {
				require.FileExists(t, filepath.Join(s.Work, "ran"), "why install writes it")
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
