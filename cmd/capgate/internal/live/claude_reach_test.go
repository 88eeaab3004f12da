//go:build live

package live_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/live"
)

// repository makes the working folder one of git, with a first commit of what is in it where committed is set.
func (x *setup) repository(committed bool) {
	x.t.Helper()
	script := "git init -q && git config user.email a@example.org && git config user.name a && touch first && git add first && git commit -qm first"
	if committed {
		script += " && git add -A && git commit -qm settings"
	}
	c := exec.CommandContext(x.ctx, "sh", "-c", script)
	c.Dir, c.Env = x.Work, x.Environ()
	out, err := c.CombinedOutput()
	require.NoError(x.t, err, "%s", out)
}

// Which sessions run the hook depends on where it is installed and on what the client loads there (docs/coverage.md).
func TestLiveClaudeWhichSessionsLoadTheHook(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git in PATH")
	}
	for _, c := range []struct {
		name, scope string
		committed   bool
		args        []string
		held        bool
	}{
		{"of the user, its own source", "user", false, []string{"--setting-sources", "user"}, true},
		{"of the user, another source", "user", false, []string{"--setting-sources", "project"}, false},
		{"of the project, its own source", "project", false, []string{"--setting-sources", "project"}, true},
		{"of the project, another source", "project", false, []string{"--setting-sources", "user"}, false},
		{"of the user, in a worktree", "user", false, []string{"--worktree", "tree"}, true},
		{"of the project, not committed, in a worktree", "project", false, []string{"--worktree", "tree"}, false},
		{"of the project, committed, in a worktree", "project", true, []string{"--worktree", "tree"}, true},
		{"local, in a worktree", "local", false, []string{"--worktree", "tree"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, s := startLive(t, live.Programs{
				"main":  {agent("general-purpose", "PROGRAM:never"), live.Say("done")},
				"never": {live.Say("ran")},
			})
			x := withInstall(ctx, t, s, "--scope", c.scope, "--subagents", "joke-finder")
			x.repository(c.committed)
			_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: everyTool, Args: c.args})
			require.NoError(t, err)
			result := oneResult(t, s.Model, "main", "Agent")
			require.Equal(t, c.held, strings.Contains(result.Text, "Delegation is only available"), result.Text)
		})
	}
}

// An agent in a worktree of its own is one of its session: what it may start is judged there, too, wherever the hook stands.
func TestLiveClaudeAnAgentInAWorktreeIsHeld(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git in PATH")
	}
	for _, scope := range []string{"user", "local"} {
		t.Run(scope, func(t *testing.T) {
			ctx, s := startLive(t, live.Programs{
				"main":   {agent("joke-finder", "PROGRAM:finder", live.M{"isolation": "worktree"}), live.Say("done")},
				"finder": {live.Call("Bash", live.M{"command": "pwd"}), agent("general-purpose", "PROGRAM:never"), live.Say("finder done")},
			})
			writeLive(t, filepath.Join(s.Work, ".claude", "agents", "joke-finder.md"), "---\nname: joke-finder\ndescription: finds jokes\ntools: Bash, Agent\n---\nFind.\n")
			x := withInstall(ctx, t, s, "--scope", scope, "--subagents", "joke-finder")
			x.repository(false)
			record := filepath.Join(s.Home, "events")
			_, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:main", AllowedTools: everyTool, Settings: recorder(record, "PreToolUse")})
			require.NoError(t, err)
			shell := oneResult(t, s.Model, "finder", "Bash")
			require.Contains(t, shell.Text, "worktree", "it works elsewhere")
			require.Contains(t, oneResult(t, s.Model, "finder", "Agent").Text, "Delegation is only available")
			sessions := map[string]bool{}
			for _, e := range recordedBy(t, record) {
				sessions[e.Session] = true
			}
			require.Len(t, sessions, 1)
		})
	}
}

// A fork is another session, which nobody has armed.
func TestLiveClaudeAForkIsNotHeldByTheCap(t *testing.T) {
	t.Parallel()
	ctx, s := startLive(t, live.Programs{"main": {search, live.Say("done")}, "fork": {search, live.Say("done")}})
	x := withInstall(ctx, t, s)
	session := x.armSpent()
	x.claude(session)
	require.True(t, oneResult(t, s.Model, "main", "WebSearch").IsError)
	got, err := s.ClaudeHeadless(ctx, live.ClaudeRun{Prompt: "PROGRAM:fork", AllowedTools: everyTool, Args: []string{"--resume", session, "--fork-session"}})
	require.NoError(t, err)
	require.NotEqual(t, session, got.Session)
	require.False(t, oneResult(t, s.Model, "fork", "WebSearch").IsError)
}
