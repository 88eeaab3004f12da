//go:build live

package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
	"github.com/capgate/capgate/cmd/capgate/internal/probe"
)

// runProbe runs `capgate probe` as a person of the sandbox would, and returns what it printed, with --json.
func runProbe(ctx context.Context, t *testing.T, s *live.Sandbox, client, bin string) (report probe.Report, stderr string, exit int) {
	t.Helper()
	c := exec.CommandContext(ctx, filepath.Join(freshBuild(t), "capgate"), "probe", "--client", client, "--bin", bin, "--yes", "--json")
	c.Dir = s.Work
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "TMPDIR=" + t.TempDir(), "LANG=C.UTF-8",
		"ANTHROPIC_BASE_URL=" + s.Model.URL(), "ANTHROPIC_API_KEY=sk-test-000",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		"HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
	}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &out, &errs, 5*time.Second
	_ = c.Run()
	require.NotNil(t, c.ProcessState)
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &report), out.String())
		written, err := os.ReadFile(filepath.Join(s.Work, "capgate-probe-"+client+"-"+report.Version+".json"))
		require.NoError(t, err)
		require.JSONEq(t, out.String(), string(written))
		require.NotContains(t, string(written), "transcript")
	}
	return report, errs.String(), c.ProcessState.ExitCode()
}

// answersOf are the answers by question.
func answersOf(r probe.Report) map[string]string {
	answers := map[string]string{}
	for _, a := range r.Answers {
		answers[a.Question] = a.Answer
	}
	return answers
}

func echo(word string) live.M { return live.M{"command": "echo capgate-probe-" + word} }

// The model does what the prompt asks of it: the subagent's prompt is the one that stands in the probe's.
func claudeProbePrograms() live.Programs {
	_, prompt, _ := strings.Cut(probe.ClaudePrompt, "------\n")
	prompt, _, _ = strings.Cut(prompt, "------\n")
	return live.Programs{
		"capgate-probe": {
			live.Call("Agent", live.M{"description": "probe", "prompt": prompt, "subagent_type": "general-purpose"}),
			live.Call("Bash", echo("ask")),
			live.Say("done"),
		},
		"capgate-probe-sub": {
			live.Call("Bash", echo("exit2")), live.Call("Bash", echo("deny")), live.Call("Bash", echo("rewrite")), live.Call("Bash", echo("pass")),
			live.Say("done"),
		},
	}
}

func TestLiveProbeSaysThatClaudeCodeFires(t *testing.T) {
	ctx, s := startLive(t, claudeProbePrograms())
	report, stderr, exit := runProbe(ctx, t, s, "claude", s.Clients.Claude)
	require.Zero(t, exit, stderr)
	require.Empty(t, stderr)
	assert.Equal(t, live.ClaudeVersion, report.Version)
	assert.Equal(t, probe.Fires, report.Result)
	assert.Equal(t, map[string]string{
		probe.QuestionFires: "yes", probe.QuestionExit2: "yes", probe.QuestionDeny: "yes", probe.QuestionRewrite: "yes", probe.QuestionAsk: "yes",
	}, answersOf(report))
	assert.Len(t, report.Denials, 3)
	assert.Contains(t, string(report.Stats), `"completed"`)
	folders, err := filepath.Glob(filepath.Join(s.Home, ".claude", "projects", "*"))
	require.NoError(t, err)
	assert.Empty(t, folders, "nothing of the scratch directory is left")
	for word, want := range map[string]string{"exit2": "as planned", "deny": "as planned", "rewrite": "capgate-probe-rewritten", "pass": "capgate-probe-pass"} {
		assert.Contains(t, resultAfter(s.Model, "capgate-probe-sub", word), want, word)
	}
}

// resultAfter is what the model was told about the n-th call of the probe's subagent.
func resultAfter(model *live.Model, program, word string) string {
	for i, w := range []string{"exit2", "deny", "rewrite", "pass"} {
		if results := model.ResultsOf(program, "Bash"); w == word && i < len(results) {
			return results[i].Text
		}
	}
	return ""
}

// A person's own settings can switch all hooks off: then nothing fires, and the probe says so.
func TestLiveProbeSaysThatClaudeCodeDoesNotFireWithAllHooksDisabled(t *testing.T) {
	ctx, s := startLive(t, claudeProbePrograms())
	require.NoError(t, os.MkdirAll(filepath.Join(s.Home, ".claude"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.Home, ".claude", "settings.json"), []byte(`{"disableAllHooks":true}`), 0o600))
	report, stderr, exit := runProbe(ctx, t, s, "claude", s.Clients.Claude)
	require.Equal(t, cli.StatusUnhealthy, exit, stderr)
	assert.Equal(t, probe.DoesNotFire, report.Result)
	assert.Equal(t, probe.No, answersOf(report)[probe.QuestionFires])
	assert.Equal(t, probe.NotObserved, answersOf(report)[probe.QuestionExit2])
}

// A model that does not do as it was asked is not taken for a client that does not fire.
func TestLiveProbeOfAModelThatDoesNothingObservesNothing(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"capgate-probe": {live.Say("I would rather not")}})
	report, stderr, exit := runProbe(ctx, t, s, "claude", s.Clients.Claude)
	require.Equal(t, cli.StatusUnhealthy, exit, stderr)
	for question, answer := range answersOf(report) {
		assert.Equal(t, probe.NotObserved, answer, question)
	}
}

func TestLiveProbeWithoutALoginHasNoResult(t *testing.T) {
	ctx, s := startLive(t, nil)
	script := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nunset ANTHROPIC_API_KEY\nexec '"+s.Clients.Claude+"' \"$@\"\n"), 0o700))
	_, stderr, exit := runProbe(ctx, t, s, "claude", script)
	require.Equal(t, cli.StatusError, exit)
	assert.Regexp(t, `^capgate: .* ended with an error, so there is no result: Not logged in .*, then run the probe again\n$`, stderr)
}

func TestLiveProbeSaysThatOhMyPiFires(t *testing.T) {
	_, prompt, _ := strings.Cut(probe.OMPPrompt, "------\n")
	prompt, _, _ = strings.Cut(prompt, "------\n")
	spawn := func(name, task string) live.Step {
		return live.Call("task", live.M{"context": "probe", "tasks": []live.M{{"name": name, "agent": "task", "task": task}}})
	}
	ctx, s := startLive(t, live.Programs{
		"capgate-probe": {
			spawn("First", prompt), live.Call("hub", live.M{"op": "wait"}),
			spawn("Second", "[PROGRAM:capgate-probe-spawned] Finish at once, with the word capgate-probe-spawn as your result."), live.Say("done"),
		},
		"capgate-probe-sub":     {live.Call("bash", echo("deny")), live.Call("bash", echo("pass")), live.Call("yield", live.M{"data": "done"})},
		"capgate-probe-spawned": {live.Call("yield", live.M{"data": "capgate-probe-spawn"})},
	})
	script := filepath.Join(t.TempDir(), "omp")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec '"+s.Clients.OMP[0]+"' '"+s.Clients.OMP[1]+"' \"$@\"\n"), 0o700))
	report, stderr, exit := runProbe(ctx, t, s, "omp", script)
	require.Zero(t, exit, stderr)
	assert.Equal(t, live.OMPVersion, report.Version)
	assert.Equal(t, probe.Fires, report.Result)
	assert.Equal(t, map[string]string{probe.QuestionFires: "yes", probe.QuestionDeny: "yes", probe.QuestionSpawn: "yes"}, answersOf(report))
	assert.Empty(t, s.Model.Of("capgate-probe-spawned"), "the second agent was not started")
}
