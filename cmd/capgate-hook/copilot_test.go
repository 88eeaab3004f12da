package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// The sessions of the recorded calls: a session, its subagent, and that one's.
const (
	copilotMain = "7d5a91a0-f8a0-4b90-8da4-b4e4e877d1c4"
	copilotSub  = "f9e95598-8fcf-47c5-a90c-59aca8fe2c83"
	copilotDeep = "9a8e11cb-57a7-46d7-a5cc-2cc6b7812ea1"
)

func copilotCall(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../testdata/payloads/copilot-1.0.102", name+".json"))
	require.NoError(t, err)
	return string(text)
}

// requireCopilotDeny is a denial as Copilot CLI keeps its reason: JSON, and no exit status.
func (w *world) requireCopilotDeny(r result, code, reason string) {
	w.t.Helper()
	require.Equal(w.t, 0, r.exit, r.stderr)
	require.Empty(w.t, r.stderr)
	var said struct {
		HookSpecificOutput struct{ HookEventName, PermissionDecision, PermissionDecisionReason string }
	}
	require.NoError(w.t, json.Unmarshal([]byte(r.stdout), &said), r.stdout)
	require.Equal(w.t, "PreToolUse", said.HookSpecificOutput.HookEventName)
	require.Equal(w.t, "deny", said.HookSpecificOutput.PermissionDecision)
	require.Contains(w.t, said.HookSpecificOutput.PermissionDecisionReason, reason)
	require.Equal(w.t, code, w.code())
}

// Copilot CLI runs a project's entry of Claude Code's settings with a payload of its own meaning.
func TestCopilotThroughAnEntryOfClaudeCode(t *testing.T) {
	t.Run("the declared type may start, another may not", func(t *testing.T) {
		w := newWorld(t).open("r", 1, 1).envFile("CAPGATE_ALLOWED_SUBAGENTS=general-purpose")
		for _, name := range []string{"depth0-PreToolUse-Agent", "depth1-PreToolUse-Agent", "PreToolUse-Agent-main"} {
			w.requirePass(w.hook(copilotCall(t, name)))
		}
		w.envFile("CAPGATE_ALLOWED_SUBAGENTS=scout")
		w.requireCopilotDeny(w.hook(copilotCall(t, "depth0-PreToolUse-Agent")), gates.CodeType, `not "general-purpose"`)
	})
	t.Run("the shell is for subagents that are declared", func(t *testing.T) {
		w := newWorld(t).open("r", 1, 1).envFile("CAPGATE_ALLOWED_SUBAGENTS=general-purpose")
		inside := copilotCall(t, "depth1-PreToolUse-Bash")
		w.requirePass(w.hook(inside))
		w.envFile("CAPGATE_ALLOWED_SUBAGENTS=scout")
		w.requireCopilotDeny(w.hook(inside), gates.CodeCaller, "general-purpose")
		main := strings.NewReplacer(copilotSub, copilotMain, `"agent_id"`, `"x"`, `"agent_type"`, `"y"`, `"parent_agent_id"`, `"z"`).Replace(inside)
		w.requireCopilotDeny(w.hook(main), gates.CodeBash, "Bash is only available")
	})
	t.Run("the cap holds at any depth, in the sessions that subagents have", func(t *testing.T) {
		w := newWorld(t).open("r", 1, 1).arm(copilotMain, "r").envFile("CAPGATE_ENABLED=1")
		agents := []string{"depth0-PreToolUse-Agent", "depth1-PreToolUse-Agent", "depth2-PreToolUse-Agent"}
		for _, name := range agents {
			w.requirePass(w.hook(copilotCall(t, name)))
		}
		w.turns("r", 1)
		for _, name := range agents {
			w.requireCopilotDeny(w.hook(copilotCall(t, name)), capgate.CodeBudgetSpent, "turn budget spent (1 of 1, run r)")
		}
		search := strings.Replace(copilotCall(t, "depth2-PreToolUse-Bash"), `"Bash"`, `"WebFetch"`, 1)
		w.requireCopilotDeny(w.hook(search), capgate.CodeBudgetSpent, "turn budget spent")
		related, err := scope.Related(w.state, copilotMain)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{copilotMain, copilotSub, copilotDeep}, related, "they are disarmed as one")
		stranger := strings.NewReplacer(copilotMain, "somebody-else", copilotSub, "another-child").Replace(copilotCall(t, "depth1-PreToolUse-Agent"))
		w.requirePass(w.hook(stranger))
	})
	t.Run("a subagent is linked by its start alone, whatever is capped", func(t *testing.T) {
		w := newWorld(t).open("r", 1, 1).arm(copilotMain, "r").envFile("CAPGATE_ENABLED=1", "CAPGATE_CAP_TOOLS=WebFetch")
		w.requirePass(w.hook(copilotCall(t, "depth1-PreToolUse-Agent")))
		w.turns("r", 1)
		search := strings.Replace(copilotCall(t, "depth2-PreToolUse-Bash"), `"Bash"`, `"WebFetch"`, 1)
		w.requireCopilotDeny(w.hook(search), capgate.CodeBudgetSpent, "turn budget spent")
	})
	t.Run("a question is a question", func(t *testing.T) {
		w := newWorld(t).envFile("CAPGATE_ADMISSION=ask")
		r := w.hook(copilotCall(t, "depth0-PreToolUse-Agent"))
		require.Equal(t, 0, r.exit)
		require.Contains(t, r.stdout, `"permissionDecision":"ask","permissionDecisionReason":"Spawn 1 subagent?\n\n- n [general-purpose]: PROGRAM:c2`)
	})
	t.Run("halted", func(t *testing.T) {
		w := newWorld(t).open("r", 1, 1).envFile("CAPGATE_ENABLED=1")
		require.NoError(t, os.WriteFile(filepath.Join(w.state, "halt.json"), []byte(`{"reason":"why"}`), 0o600))
		w.requireCopilotDeny(w.hook(copilotCall(t, "depth1-PreToolUse-Bash")), capgate.CodeHalted, "halted every tool call (why)")
	})
}
