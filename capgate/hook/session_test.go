package hook

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// armed is an environment with a run of one turn, and fuzzSession armed for it; used says whether the turn is spent.
func armed(t *testing.T, used bool) map[string]string {
	state := t.TempDir()
	l := ledger.NewFile(filepath.Join(state, "ledger.db"), ledger.Options{})
	_, err := l.OpenRun(t.Context(), "r", 1, 1)
	require.NoError(t, err)
	if used {
		_, err = l.RecordTurn(t.Context(), "r", "", "")
		require.NoError(t, err)
	}
	require.NoError(t, scope.Write(state, scope.Marker{Session: fuzzSession, Run: "r", StartedAt: time.Now()}))
	return map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": state, "CAPGATE_DEADLINE_MS": "60000", "CLAUDE_PID": strconv.Itoa(os.Getpid())}
}

// say sends a payload through the hook.
func say(env map[string]string, payload string) outcome {
	return runProcess(env, Process{Stdin: strings.NewReader(payload)})
}

func search(session string) string { return `{"session_id":"` + session + `","tool_name":"WebSearch"}` }

func event(name, session, key, cause string) string {
	return `{"hook_event_name":"` + name + `","session_id":"` + session + `","` + key + `":"` + cause + `"}`
}

func TestSessionStartExportsTheStateDirectoryOnce(t *testing.T) {
	env := armed(t, false)
	file := filepath.Join(t.TempDir(), "env.sh")
	env["CLAUDE_ENV_FILE"] = file
	lines := "export CAPGATE_DATA_DIR='" + env["CAPGATE_DATA_DIR"] + "'\n"
	start := event("SessionStart", fuzzSession, "source", "startup")
	read := func() string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	enabled := env["CAPGATE_ENABLED"]
	delete(env, "CAPGATE_ENABLED")
	require.Equal(t, outcome{}, say(env, start))
	require.Equal(t, lines, read())
	env["CAPGATE_ENABLED"] = enabled
	for range 2 {
		require.Equal(t, outcome{}, say(env, start))
	}
	require.Equal(t, lines+"export CAPGATE_ENABLED='1'\n", read())

	require.NoError(t, os.WriteFile(file, []byte("export PATH=x"), 0o600)) // its last line is not ended
	require.Equal(t, outcome{}, say(env, start))
	require.Equal(t, "export PATH=x\n"+lines+"export CAPGATE_ENABLED='1'\n", read())
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, outcome{}, say(env, start))
	require.Equal(t, lines+"export CAPGATE_ENABLED='1'\n", read())

	require.NoError(t, os.Remove(file))
	for _, payload := range []string{event("SessionEnd", fuzzSession, "reason", "other"), event("Stop", fuzzSession, "a", "b")} {
		require.Equal(t, outcome{}, say(env, payload))
		require.NoFileExists(t, file)
	}
	env["CLAUDE_ENV_FILE"] = filepath.Join(file, "not", "there")
	require.Equal(t, outcome{}, say(env, start), "best effort")
	require.Error(t, exportTo(env["CLAUDE_ENV_FILE"], "A", "1"))
	if _, err := os.Stat("/dev/full"); err == nil {
		require.Error(t, exportTo("/dev/full", "A", "1"))
	}
	require.Equal(t, `'it'\''s'`, shellQuote("it's"))
}

func TestASessionThatStartsIsHeardWhereItIsArmed(t *testing.T) {
	env := armed(t, false)
	state := env["CAPGATE_DATA_DIR"]
	for _, session := range []string{fuzzSession, "another", "../x"} {
		require.Equal(t, outcome{}, say(env, event("SessionStart", session, "source", "resume")))
		require.Equal(t, session == fuzzSession, !scope.Heard(state, session).At.IsZero(), session)
	}
	require.Zero(t, scope.Heard(state, fuzzSession).Passed)
}

// The session that follows a cleared one is held in its place, whoever is the first to say so; one that was not cleared is not.
func TestASessionFollowsTheOneThatWasCleared(t *testing.T) {
	for name, begin := range map[string]string{
		"told at its start": event("SessionStart", "next", "source", "clear"), "told by its first call": search("next"),
	} {
		t.Run(name, func(t *testing.T) {
			env := armed(t, true)
			require.Equal(t, outcome{}, say(env, event("SessionEnd", fuzzSession, "reason", "logout")))
			require.Equal(t, outcome{}, say(env, event("SessionStart", "other", "source", "startup")))
			require.Equal(t, outcome{}, say(env, search("other")))
			require.Equal(t, outcome{}, say(env, event("SessionEnd", fuzzSession, "reason", "clear")))
			require.Equal(t, outcome{}, say(env, event("SessionStart", "resumed", "source", "resume")))
			require.NoFileExists(t, scope.Path(env["CAPGATE_DATA_DIR"], "resumed"))
			if got := say(env, begin); begin == search("next") {
				require.Equal(t, 2, got.exit, "the first call is held, too")
			}
			m, err := scope.Read(env["CAPGATE_DATA_DIR"], "next")
			require.NoError(t, err)
			require.Equal(t, fuzzSession, m.From)
			require.Equal(t, 2, say(env, search("next")).exit)
			require.Equal(t, 2, say(env, search(fuzzSession)).exit)
		})
	}
}

// A call in an armed session is heard, whatever the tool and the verdict; capped ones that pass are counted.
func TestCallsOfAnArmedSessionAreHeardAndCounted(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		used          bool
		more          map[string]string
		heard         bool
		passed        int64
	}{
		{"capped and passed", search(fuzzSession), false, nil, true, 1},
		{"capped and denied", search(fuzzSession), true, nil, true, 0},
		{"capped, within the budget, denied by a gate", strings.Replace(spawn, `"s"`, `"`+fuzzSession+`"`, 1), false, map[string]string{"CAPGATE_ALLOWED_SUBAGENTS": "x"}, true, 0},
		{"not capped", strings.Replace(search(fuzzSession), "WebSearch", "Read", 1), false, nil, true, 0},
		{"not armed", search("another"), false, nil, false, 0},
		{"not armed and not capped", strings.Replace(search("another"), "WebSearch", "Read", 1), false, nil, false, 0},
		{"no session", `{"tool_name":"Read"}`, false, nil, false, 0},
		{"off", search(fuzzSession), false, map[string]string{"CAPGATE_DISABLE_CAP": "1"}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := armed(t, c.used)
			for k, v := range c.more {
				env[k] = v
			}
			say(env, c.payload)
			heard := scope.Heard(env["CAPGATE_DATA_DIR"], fuzzSession)
			require.Equal(t, c.heard, !heard.At.IsZero())
			require.Equal(t, c.passed, heard.Passed)
			if !c.heard {
				require.NoDirExists(t, filepath.Join(env["CAPGATE_DATA_DIR"], scope.HeartbeatDir))
			}
		})
	}
}
