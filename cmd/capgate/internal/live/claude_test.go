//go:build live

package live_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// The contract of our deny, shown with a hook that does nothing else: exit status 2 keeps the tool from running, the
// model reads stderr, and the session goes on.
func TestLiveClaudeExitStatus2BlocksAndTheModelReadsTheReason(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"main": {
		live.Call("WebSearch", live.M{"query": "anything"}),
		live.Say("wrote it up"),
	}})
	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{
		Prompt:       "PROGRAM:main",
		AllowedTools: []string{"WebSearch"},
		Settings: live.M{"hooks": live.M{"PreToolUse": []live.M{{"hooks": []live.M{{
			"type": "command", "command": "cat >/dev/null; echo 'no more searches' >&2; exit 2",
		}}}}}},
	})
	require.NoError(t, err)
	require.Zero(t, got.Exit, got.Stderr)
	require.Equal(t, "wrote it up", got.Result)
	result := oneResult(t, s.Model, "main", "WebSearch")
	require.True(t, result.IsError)
	require.Contains(t, result.Text, "no more searches")
	require.Len(t, s.Model.Of("main"), 2, "the search itself would have asked the model, too")
}

// A human's answer to our ask is given in a terminal; here it is only shown that one can be driven.
func TestLiveClaudeTerminal(t *testing.T) {
	ctx, s := startLive(t, live.Programs{"main": {live.Say("hello from the model")}})
	terminal, err := s.ClaudeTerminal(ctx, live.ClaudeRun{})
	unavailable(t, err)
	t.Cleanup(func() { require.NoError(t, terminal.Close()) })
	_, err = terminal.WaitFor(`(?m)^\W*❯`)
	require.NoError(t, err)
	require.NoError(t, terminal.SendKeys("PROGRAM:main", "Enter"))
	_, err = terminal.WaitFor("hello from the model")
	require.NoError(t, err)
}
