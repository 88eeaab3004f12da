package hook

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/client/omp"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

const fuzzSession = "5f1d2c3b-8a90-4e17-9c42-0d6b7a1e9f55"

// mustDeny is the reference tables once more, written on encoding/json and for one environment: a spent run for
// fuzzSession, and an allow list of joke-finder. It says whether the payload must be denied.
func mustDeny(payload []byte) bool {
	var p map[string]any
	if json.Unmarshal(bytes.TrimPrefix(payload, []byte("\ufeff")), &p) != nil || p == nil {
		// The gates are on. What came before the fault may say that it is another event, though.
		return !bytes.Contains(payload, []byte("hook")) && !bytes.Contains(payload, []byte(`\u`))
	}
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	if event, ok := p["hook_event_name"]; ok && event != "PreToolUse" {
		return false
	}
	tool, agent := text(p, "tool_name"), text(p, "agent_id")
	input, _ := p["tool_input"].(map[string]any)
	switch tool {
	case "Agent", "Task":
		if text(input, "subagent_type") != "joke-finder" {
			return true
		}
	case "Workflow":
		return true
	case "Bash", "PowerShell", "Monitor", "bash":
		if agent == "" {
			return true
		}
	case "task":
		return true // no payload of Claude Code's; denied for want of a declared type, or not looked at here
	}
	if kind := text(p, "agent_type"); agent != "" && kind != "" && kind != "joke-finder" {
		return true
	}
	return text(p, "session_id") == fuzzSession && slices.Contains([]string{"WebSearch", "WebFetch", "Agent", "Task", "Workflow"}, tool)
}

// FuzzHook: whatever comes on stdin, the answer is exit status 0 or 2, stdout is empty or one JSON object that allows
// nothing, a denial has a reason and nothing on stdout, and what the reference denies is never let through.
func FuzzHook(f *testing.F) {
	files, err := filepath.Glob("../../testdata/payloads/claude-code-2.1.332/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		payload, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(payload)
	}
	for _, seed := range []string{
		"", "{", "null", `{"tool_name":"Agent","tool_input":{"subagent_type":"joke-finder"},"session_id":"other"}`,
		`{"tool_name":"Agent","tool_input":{"subagent_type":"joke-finder","subagent_type":"fork"}}`,
		`{"tool_name":"Bash","agent_id":"","agent_type":"joke-finder"}`,
		"\ufeff" + `{"session_id":"` + fuzzSession + `","tool_name":"WebSearch"}`,
	} {
		f.Add([]byte(seed))
	}
	state := f.TempDir()
	ctx := f.Context()
	l := ledger.NewFile(filepath.Join(state, "ledger.db"), ledger.Options{})
	_, err = l.OpenRun(ctx, "r", 1, 1)
	require.NoError(f, err)
	_, err = l.RecordTurn(ctx, "r", "", "")
	require.NoError(f, err)
	require.NoError(f, scope.Write(state, scope.Marker{Session: fuzzSession, Run: "r", StartedAt: time.Now()}))
	env := map[string]string{
		"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": state, "CAPGATE_ALLOWED_SUBAGENTS": "joke-finder", "CAPGATE_DEADLINE_MS": "60000",
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if bytes.Contains(payload, []byte("SessionEnd")) {
			return // would disarm the session
		}
		got := runProcess(env, Process{Stdin: bytes.NewReader(payload)})
		switch got.exit {
		case 2:
			require.Empty(t, got.stdout)
			require.Regexp(t, `\[capgate [0-9A-Z]{26}\]\n$`, got.stderr)
			require.Equal(t, 1, strings.Count(got.stderr, "\n"))
		case 0:
			require.Empty(t, got.stderr)
			if got.stdout != "" {
				var answer map[string]map[string]any
				require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer))
				require.NotEqual(t, "allow", answer["hookSpecificOutput"]["permissionDecision"])
			}
		default:
			t.Fatalf("exit status %d", got.exit)
		}
		if strings.Count(string(payload), "[")+strings.Count(string(payload), "{") < 9000 && mustDeny(payload) {
			require.Equal(t, 2, got.exit, "%s", payload)
		}
	})
}

// switches are an environment's variables, one way to set them a bit.
var switches = []struct{ name, value string }{
	{"CAPGATE_ENABLED", "1"},
	{"CAPGATE_ALLOWED_SUBAGENTS", "joke-finder"},
	{"CAPGATE_ADMISSION", "ask"},
	{"CAPGATE_ADMISSION", "deny"},
	{"CLAUDE_CODE_SESSION_ATTENDED", "1"},
	{"CAPGATE_SPEC", "spec.json"},
	{"CAPGATE_DISABLE_CAP", "1"},
	{"CAPGATE_DISABLE_GATES", "1"},
}

// FuzzAnyHook: whatever comes on stdin, from either client, whatever is switched on, there is no fault of our own, the exit status is
// 0 or 2, stdout holds nothing or one JSON object and nothing else, and where the call is blocked there is a reason.
func FuzzAnyHook(f *testing.F) {
	for i, tool := range []string{"Agent", "Workflow", "Write", "MultiEdit", "WebSearch", "Bash", "task", "edit", "ast_edit", "grep", "bash"} {
		for _, input := range []string{
			`{}`, `{"subagent_type":"joke-finder","prompt":"\ud800"}`, `{"tasks":[{"agent":"joke-finder"},{}],"agent":"x"}`,
			`{"path":"[a#b]","paths":["http://x",["@file://%41"]],"edits":[{"rename":"~x"}],"input":"*** Add File: b\nMV c"}`,
			`{"file_path":"../*/{/a}/../..","content":"CAPGATE_","run_in_background":true,"run_in_background":1}`,
		} {
			payload := `{"session_id":"` + fuzzSession + `","tool_name":"` + tool + `","cwd":"/","has_ui":true,"tool_input":` + input + `}`
			f.Add([]byte(payload), i%2 == 0, uint8(0x0f+16*i))
			f.Add([]byte(payload[:len(payload)-3]), i%2 == 1, uint8(0x17))
		}
	}
	state := f.TempDir()
	spec := filepath.Join(state, "spec.json")
	require.NoError(f, os.WriteFile(spec, []byte(`{"subagents":{"joke-finder":{}},"admission":"ask"}`), 0o600))
	l := ledger.NewFile(filepath.Join(state, "ledger.db"), ledger.Options{})
	_, err := l.OpenRun(f.Context(), "r", 1, 1)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, payload []byte, isOMP bool, on uint8) {
		require.NoError(t, scope.Write(state, scope.Marker{Session: fuzzSession, Run: "r", StartedAt: time.Now()}))
		env := map[string]string{"CAPGATE_DATA_DIR": state, "CAPGATE_DEADLINE_MS": "60000"}
		for i, s := range switches {
			if on&(1<<i) == 0 {
				continue
			}
			if env[s.name] = s.value; s.name == "CAPGATE_SPEC" {
				env[s.name] = spec
			}
		}
		p := Process{Stdin: bytes.NewReader(payload)}
		if isOMP {
			p.Client = omp.Client{}
		}
		got := runProcess(env, p)
		require.Contains(t, []int{0, 2}, got.exit)
		require.NotContains(t, got.stdout+got.stderr, "internal fault")
		require.Equal(t, got.exit == 2, got.stderr != "")
		if got.stdout == "" {
			return
		}
		require.Equal(t, 0, got.exit)
		require.NoError(t, gates.Members([]byte(got.stdout), func(string, []byte) {}), got.stdout)
		if isOMP {
			var answer struct{ Outcome, Reason, Title string }
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer))
			require.True(t, answer.Outcome == "pass" || answer.Outcome == "deny" && answer.Reason != "" || answer.Outcome == "ask" && answer.Title != "", got.stdout)
		}
	})
}
