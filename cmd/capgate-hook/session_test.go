package main

import (
	"os"
	"os/exec"
	"path/filepath"
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

func TestSessionEndDisarmsTheSession(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").arm("other", "r")
	w.requirePass(w.hook(call(session, "WebSearch")))
	_, heard := scope.Heard(w.state, session)
	require.True(t, heard)
	for range 2 {
		w.requirePass(w.hook(payload(t, "SessionEnd.json")))
	}
	require.NoFileExists(t, scope.Path(w.state, session))
	require.FileExists(t, scope.Path(w.state, "other"))
	_, heard = scope.Heard(w.state, session)
	require.False(t, heard)
}

// A call in scope is heard, whatever the verdict; one outside is not.
func TestHeartbeat(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r")
	marker, err := scope.Read(w.state, session)
	require.NoError(t, err)
	require.True(t, marker.Silent(w.state), "armed, not heard yet")
	w.hook(call("another", "WebSearch"))
	w.hook(call("another", "Read"))
	require.True(t, marker.Silent(w.state))
	_, heard := scope.Heard(w.state, "another")
	require.False(t, heard)
	w.hook(call(session, "Read"))
	require.False(t, marker.Silent(w.state), "any tool of the session")
	w.hook(call(session, "WebSearch"))
	first, _ := scope.Heard(w.state, session)
	w.turns("r", 1)
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	second, _ := scope.Heard(w.state, session)
	require.True(t, second.After(first))
	time.Sleep(10 * time.Millisecond)
	w.arm(session, "r")
	marker, err = scope.Read(w.state, session)
	require.NoError(t, err)
	require.True(t, marker.Silent(w.state), "armed anew, not heard since")
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
