package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/scope"
)

func TestSessionStartTellsTheShellTheStateDirectory(t *testing.T) {
	w := newWorld(t)
	w.state = filepath.Join(t.TempDir(), "it's a 'state'")
	file := filepath.Join(t.TempDir(), "env.sh")
	w.env["CAPGATE_DATA_DIR"], w.env["CLAUDE_ENV_FILE"] = w.state, file
	require.NoError(t, os.WriteFile(file, []byte("export A=1\n"), 0o600))
	for range 2 { // once for each copy that is installed
		w.requirePass(w.hook(payload(t, "SessionStart.json")))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "CAPGATE_DATA_DIR"))
	out, err := exec.Command("sh", "-c", `. "$0"; printf %s "$A $CAPGATE_DATA_DIR"`, file).Output()
	require.NoError(t, err)
	require.Equal(t, "1 "+w.state, string(out))

	w.env["CLAUDE_ENV_FILE"] = filepath.Join(t.TempDir(), "no", "such", "file")
	w.requirePass(w.hook(payload(t, "SessionStart.json")))
}

// A client's process that ends ends nothing: the session may be resumed, or be open in another process.
func TestTheEndOfAClientEndsNothing(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	for _, reason := range []string{"other", "resume", "logout", "prompt_input_exit", "clear", ""} {
		w.requirePass(w.hook(event("SessionEnd", session, "reason", reason)))
		w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	}
	for _, source := range []string{"startup", "resume", "compact", "fork", ""} {
		w.requirePass(w.hook(event("SessionStart", session, "source", source)))
		w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	}
	w.requirePass(w.hook(event("SessionStart", "a-fork", "source", "fork")))
	w.requirePass(w.hook(call("a-fork", "WebSearch")))
}

// event is a session event as the client tells it.
func event(name, session, key, value string) string {
	return `{"session_id":"` + session + `","hook_event_name":"` + name + `","` + key + `":"` + value + `"}`
}

// Where a person clears the conversation the run goes on in the new session, without anybody doing anything.
func TestAClearedConversationStaysInScope(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	w.env["CLAUDE_PID"] = strconv.Itoa(os.Getpid())
	const next = "5f1d2c3b-8a90-4e17-9c42-000000000001"
	w.requirePass(w.hook(call(next, "WebSearch")))
	for range 2 { // once for each copy that is installed
		w.requirePass(w.hook(event("SessionEnd", session, "reason", "clear")))
	}
	// A background agent's calls carry the new id before the client has told of the new session, or the old one after.
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	w.requireDeny(w.hook(call(next, "WebSearch")), capgate.CodeBudgetSpent)
	for range 2 {
		w.requirePass(w.hook(event("SessionStart", next, "source", "clear")))
	}
	w.requireDeny(w.hook(call(next, "WebSearch")), capgate.CodeBudgetSpent)
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	w.requirePass(w.hook(call("5f1d2c3b-8a90-4e17-9c42-000000000002", "WebSearch")))

	// The call that came first has armed the new session, should its start never be told.
	m, err := scope.Read(w.state, next)
	require.NoError(t, err)
	require.Equal(t, session, m.From)
}

// Which session follows which is told by the client's process alone: another one's sessions are not held.
func TestAnotherClientsSessionDoesNotFollow(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	w.env["CLAUDE_PID"] = strconv.Itoa(os.Getpid())
	w.requirePass(w.hook(event("SessionEnd", session, "reason", "clear")))
	w.env["CLAUDE_PID"] = "1"
	w.requirePass(w.hook(event("SessionStart", "another", "source", "clear")))
	w.requirePass(w.hook(call("another", "WebSearch")))
	delete(w.env, "CLAUDE_PID")
	w.requirePass(w.hook(call("another", "WebSearch")))
	w.env["CLAUDE_PID"] = "no number"
	w.requirePass(w.hook(call("another", "WebSearch")))
}

// Session events do not depend on what the hook judges: a loop counts, and a session follows another, all the same.
func TestSessionEventsWorkWhateverIsSwitchedOff(t *testing.T) {
	for _, off := range []string{"CAPGATE_DISABLE=1", "CAPGATE_DISABLE_CAP=1", "VOYAGE_DISABLE_CAP_HOOK=1", "CAPGATE_ENABLED="} {
		t.Run(off, func(t *testing.T) {
			w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
			name, value, _ := strings.Cut(off, "=")
			on := w.env[name]
			file := filepath.Join(t.TempDir(), "env.sh")
			w.env[name], w.env["CLAUDE_ENV_FILE"], w.env["CLAUDE_PID"] = value, file, strconv.Itoa(os.Getpid())
			w.requirePass(w.hook(event("SessionEnd", session, "reason", "clear")))
			w.requirePass(w.hook(event("SessionStart", "next", "source", "clear")))
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), w.state)
			w.env[name] = on
			w.requireDeny(w.hook(call("next", "WebSearch")), capgate.CodeBudgetSpent)
		})
	}
}

// A run that goes on keeps its sessions in scope for longer than a marker holds; one whose loop died does not.
func TestATurnRenewsItsSessions(t *testing.T) {
	w := newWorld(t).open("r", 2, 1)
	w.env["CAPGATE_SCOPE_TTL_MS"] = "60000"
	old := time.Now().Add(-4 * time.Minute)
	w.marker(session, `{"runId":"r","startedAt":"`+old.Format(time.RFC3339Nano)+`"}`, old)
	w.turns("r", 2)
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)

	// The ledger cannot answer: the marker's own time counts alone, and a crashed run must not deny for ever.
	require.NoError(t, os.WriteFile(filepath.Join(w.state, "ledger.db"), []byte("damaged"), 0o600))
	w.requirePass(w.hook(call(session, "WebSearch")))
	require.NoFileExists(t, scope.Path(w.state, session))
}

// A call in scope is heard, whatever the verdict; one outside is not. Capped calls that pass are counted.
func TestHeartbeat(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r")
	heard := func() scope.Heartbeat { return scope.Heard(w.state, session) }
	require.Zero(t, heard())
	w.hook(call("another", "WebSearch"))
	w.hook(call("another", "Read"))
	require.Zero(t, scope.Heard(w.state, "another"))
	require.Zero(t, heard())
	w.hook(event("SessionStart", session, "source", "resume"))
	require.False(t, heard().At.IsZero(), "a turn without a call of a tool is heard, too")
	w.hook(call(session, "Read"))
	require.Zero(t, heard().Passed, "any tool of the session is heard, and a capped one counted")
	for range 3 {
		w.requirePass(w.hook(call(session, "WebSearch")))
	}
	first := heard()
	require.EqualValues(t, 3, first.Passed)
	w.turns("r", 1)
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	require.True(t, heard().At.After(first.At))
	require.EqualValues(t, 3, heard().Passed, "a denied call did not pass")
}

// What a plugin cannot set in the environment its hook gets as defaults; the environment wins.
func TestDefaultsOnTheCommandLine(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	delete(w.env, "CAPGATE_ENABLED")
	w.args = []string{"--env", "CAPGATE_ENABLED=1"}
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	w.env["CAPGATE_ENABLED"] = "0"
	w.requirePass(w.hook(call(session, "WebSearch")))
}
