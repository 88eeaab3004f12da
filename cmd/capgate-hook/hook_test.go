package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

const (
	recorded = "../../testdata/payloads/claude-code-2.1.332"
	session  = "5f1d2c3b-8a90-4e17-9c42-0d6b7a1e9f55" // of the recorded calls
)

// binary is the hook as users run it, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "capgate-hook")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary = filepath.Join(dir, "capgate-hook.exe")
		build := exec.Command("go", "build", "-trimpath", "-buildmode=exe", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(string(out))
		}
		return m.Run()
	}())
}

// world is a state directory with one armed session.
type world struct {
	t      *testing.T
	state  string
	ledger *ledger.File
	env    map[string]string
	args   []string
}

func newWorld(t *testing.T) *world {
	state := filepath.Join(t.TempDir(), "state")
	return &world{
		t: t, state: state, ledger: ledger.NewFile(filepath.Join(state, "ledger.db"), ledger.Options{}),
		env: map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": state, "CAPGATE_DEADLINE_MS": "10000"},
	}
}

func (w *world) open(run string, conv, dims int64) *world {
	_, err := w.ledger.OpenRun(w.t.Context(), run, conv, dims)
	require.NoError(w.t, err)
	return w
}

func (w *world) arm(session, run string) *world {
	head, err := w.ledger.Head(w.t.Context())
	require.NoError(w.t, err)
	require.NoError(w.t, scope.Write(w.state, scope.Marker{Session: session, Run: run, StartedAt: time.Now(), Anchor: (*scope.Anchor)(&head)}))
	return w
}

func (w *world) turns(run string, n int) *world {
	for range n {
		_, err := w.ledger.RecordTurn(w.t.Context(), run, "", "")
		require.NoError(w.t, err)
	}
	return w
}

// marker writes a marker's bytes as a loop's own snippet would.
func (w *world) marker(session, text string, modified time.Time) *world {
	path := scope.Path(w.state, session)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(w.t, os.Chtimes(path, modified, modified))
	return w
}

type result struct {
	exit           int
	stdout, stderr string
	took           time.Duration
}

func (w *world) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, w.args...)
	for k, v := range w.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

func (w *world) hook(payload string) result {
	w.t.Helper()
	return w.hookReading(strings.NewReader(payload))
}

func (w *world) hookReading(stdin io.Reader) result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := w.command(ctx)
	cmd.Stdin = stdin
	cmd.WaitDelay = time.Second
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	began := time.Now()
	runErr := cmd.Run()
	if runErr != nil && cmd.ProcessState == nil {
		require.NoError(w.t, runErr)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), err.String(), time.Since(began)}
}

func call(session, tool string) string {
	return fmt.Sprintf(`{"session_id":%q,"hook_event_name":"PreToolUse","tool_name":%q,"tool_input":{},"tool_use_id":"toolu_1"}`, session, tool)
}

func payload(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join(recorded, name))
	require.NoError(t, err)
	return string(text)
}

// code is the code of the newest logged decision, "" where none was logged.
func (w *world) code() string {
	last, err := decisionlog.Last(w.state, 1)
	require.NoError(w.t, err)
	if len(last) == 0 {
		return ""
	}
	return last[0].Code
}

func (w *world) requireDeny(r result, code string) {
	w.t.Helper()
	require.Equal(w.t, 2, r.exit, r.stderr)
	require.Empty(w.t, r.stdout)
	require.Regexp(w.t, `^\S.* \[capgate [0-9A-HJKMNP-TV-Z]{26}\]\n$`, r.stderr)
	require.LessOrEqual(w.t, len(r.stderr), capgate.MaxReason+1)
	if _, err := os.Stat(w.state); err == nil && code != capgate.CodeNoStateDir {
		require.Equal(w.t, code, w.code())
	}
}

func (w *world) requirePass(r result) {
	w.t.Helper()
	require.Equal(w.t, result{took: r.took}, r)
}

// Each row of the decision table through the built binary. Every world holds a spent budget unless the row needs
// otherwise, so that a row that no longer holds shows as another verdict.
func TestEachRowOfTheTable(t *testing.T) {
	spent := func(t *testing.T) *world {
		return newWorld(t).open("storm-42", 2, 1).arm(session, "storm-42").turns("storm-42", 2)
	}
	search := payload(t, "PreToolUse-WebSearch-general-purpose.json")
	for _, c := range []struct {
		code    string
		name    string
		payload string
		set     func(*testing.T, *world)
	}{
		{capgate.CodeKillSwitch, "the cap's", search, func(_ *testing.T, w *world) { w.env["CAPGATE_DISABLE_CAP"] = "1" }},
		{capgate.CodeKillSwitch, "by its old name", search, func(_ *testing.T, w *world) { w.env["VOYAGE_DISABLE_CAP_HOOK"] = "1" }},
		{capgate.CodeKillSwitch, "for everything", search, func(_ *testing.T, w *world) { w.env["CAPGATE_DISABLE"] = "1" }},
		{capgate.CodeNotEnabled, "unset", search, func(_ *testing.T, w *world) { delete(w.env, "CAPGATE_ENABLED") }},
		{capgate.CodeNotEnabled, "true", search, func(_ *testing.T, w *world) { w.env["CAPGATE_ENABLED"] = "true" }},
		{capgate.CodeNotEnabled, "with a space", search, func(_ *testing.T, w *world) { w.env["CAPGATE_ENABLED"] = " 1" }},
		{capgate.CodeNotEnabled, "0", search, func(_ *testing.T, w *world) { w.env["CAPGATE_ENABLED"] = "0" }},
		{capgate.CodeUnparsable, "empty", "", nil},
		{capgate.CodeUnparsable, "cut off", search[:len(search)-3], func(_ *testing.T, w *world) { delete(w.env, "CAPGATE_DATA_DIR") }},
		{capgate.CodeUnparsable, "a list", "[" + search + "]", nil},
		{capgate.CodeToolNotCapped, "the recorded Write", payload(t, "PreToolUse-Write-main.json"), nil},
		{capgate.CodeToolNotCapped, "not in the operator's list", search, func(_ *testing.T, w *world) { w.env["CAPGATE_CAP_TOOLS"] = "WebFetch, Bash" }},
		{capgate.CodeNoSession, "none", `{"tool_name":"WebSearch"}`, func(_ *testing.T, w *world) { delete(w.env, "CAPGATE_DATA_DIR") }},
		{capgate.CodeNoSession, "empty", call("", "WebSearch"), nil},
		{capgate.CodeNoSession, "null", call("null", "WebSearch"), nil},
		{capgate.CodeNoSession, "a path", call("../x", "WebSearch"), nil},
		{capgate.CodeNoSession, "4 kB", call(strings.Repeat("a", 4096), "WebSearch"), nil},
		{capgate.CodeNoStateDir, "unset", search, func(_ *testing.T, w *world) { delete(w.env, "CAPGATE_DATA_DIR") }},
		{capgate.CodeNoStateDir, "empty", search, func(_ *testing.T, w *world) { w.env["CAPGATE_DATA_DIR"] = "" }},
		{capgate.CodeNoStateDir, "relative", search, func(_ *testing.T, w *world) { w.env["CAPGATE_DATA_DIR"] = "state" }},
		{capgate.CodeNoStateDir, "a file", search, func(_ *testing.T, w *world) { w.env["CAPGATE_DATA_DIR"] = filepath.Join(w.state, "ledger.db") }},
		{capgate.CodeNoMarker, "another session", call("other", "WebSearch"), nil},
		{capgate.CodeNoMarker, "a state directory that is not there yet", search, func(_ *testing.T, w *world) { w.env["CAPGATE_DATA_DIR"] = w.state + "-later" }},
		{capgate.CodeMarkerExpired, "by its own time", search, func(t *testing.T, w *world) {
			longAgo(t, w)
			w.marker(session, `{"runId":"storm-42","startedAt":"`+time.Now().Add(-7*time.Hour).Format(time.RFC3339)+`"}`, time.Now())
		}},
		{capgate.CodeMarkerExpired, "by its own time, where the ledger cannot answer", search, func(t *testing.T, w *world) {
			require.NoError(t, os.Remove(filepath.Join(w.state, "ledger.db")))
			w.marker(session, `{"runId":"storm-42","startedAt":"`+time.Now().Add(-7*time.Hour).Format(time.RFC3339)+`"}`, time.Now())
		}},
		{capgate.CodeMarkerExpired, "by its mtime, unreadable", search, func(_ *testing.T, w *world) {
			w.marker(session, `{`, time.Now().Add(-7*time.Hour))
		}},
		{capgate.CodeMarkerExpired, "by a short TTL", search, func(_ *testing.T, w *world) {
			w.env["CAPGATE_SCOPE_TTL_MS"] = "1"
			time.Sleep(5 * time.Millisecond)
		}},
		{capgate.CodeMarkerExpired, "startedAt far in the future and an old mtime", search, func(t *testing.T, w *world) {
			longAgo(t, w)
			w.marker(session, `{"runId":"storm-42","startedAt":"2199-01-01T00:00:00Z"}`, time.Now().Add(-7*time.Hour))
		}},
		{capgate.CodeMarkerUnreadable, "no JSON", search, func(_ *testing.T, w *world) { w.marker(session, `{`, time.Now()) }},
		{capgate.CodeMarkerUnreadable, "no run", search, func(_ *testing.T, w *world) { w.marker(session, `{}`, time.Now()) }},
		{capgate.CodeMarkerUnreadable, "too large", search, func(_ *testing.T, w *world) {
			w.marker(session, `{"runId":"storm-42","x":"`+strings.Repeat("x", scope.MaxBytes)+`"}`, time.Now())
		}},
		{capgate.CodeLedgerUnreadable, "missing", search, func(t *testing.T, w *world) { require.NoError(t, os.Remove(filepath.Join(w.state, "ledger.db"))) }},
		{capgate.CodeLedgerUnreadable, "empty", search, func(t *testing.T, w *world) {
			require.NoError(t, os.Truncate(filepath.Join(w.state, "ledger.db"), 0))
		}},
		{capgate.CodeLedgerUnreadable, "cut in half", search, func(t *testing.T, w *world) {
			require.NoError(t, os.Truncate(filepath.Join(w.state, "ledger.db"), 16<<10))
		}},
		{capgate.CodeLedgerUnreadable, "replaced by a fresh one", search, func(t *testing.T, w *world) {
			require.NoError(t, os.Remove(filepath.Join(w.state, "ledger.db")))
			w.open("storm-42", 2, 1)
		}},
		{capgate.CodeLedgerUnreadable, "a relative path", search, func(_ *testing.T, w *world) { w.env["CAPGATE_LEDGER"] = "ledger.db" }},
		{capgate.CodeLedgerUnreadable, "a store this build has not", search, func(_ *testing.T, w *world) { w.env["CAPGATE_LEDGER"] = "etcd://127.0.0.1:2379" }},
		{capgate.CodeRunUnknown, "never opened", search, func(_ *testing.T, w *world) { w.arm(session, "storm-43") }},
		{capgate.CodeBudgetSpent, "the recorded search at the cap", search, nil},
		{capgate.CodeBudgetSpent, "a recorded subagent", payload(t, "PreToolUse-Agent-main.json"), nil},
		{capgate.CodeBudgetSpent, "a recorded workflow", payload(t, "PreToolUse-Workflow-main.json"), nil},
		{capgate.CodeBudgetSpent, "odd TTLs are the default", search, func(_ *testing.T, w *world) { w.env["CAPGATE_SCOPE_TTL_MS"] = "-1" }},
		{capgate.CodeBudgetSpent, "TTL with letters", search, func(_ *testing.T, w *world) { w.env["CAPGATE_SCOPE_TTL_MS"] = "1ms" }},
		{capgate.CodeBudgetSpent, "an off kill switch", search, func(_ *testing.T, w *world) {
			w.env["CAPGATE_DISABLE"], w.env["CAPGATE_DISABLE_CAP"], w.env["CAPGATE_DISABLE_GATES"] = "true", " 1", "1"
		}},
		{capgate.CodeBudgetSpent, "the old name enables", search, func(_ *testing.T, w *world) {
			delete(w.env, "CAPGATE_ENABLED")
			w.env["VOYAGE_STORM_ENABLED"] = "1"
		}},
		{capgate.CodeBudgetSpent, "the plugin's state directory", search, func(_ *testing.T, w *world) {
			delete(w.env, "CAPGATE_DATA_DIR")
			w.env["CLAUDE_PLUGIN_DATA"] = w.state
		}},
		{capgate.CodeBudgetSpent, "closed with turns left", search, func(t *testing.T, w *world) {
			_, err := w.open("storm-43", 4, 1).arm(session, "storm-43").ledger.CloseRun(t.Context(), "storm-43")
			require.NoError(t, err)
		}},
		{capgate.CodeBudgetSpent, "an old marker of a run that goes on", search, func(_ *testing.T, w *world) {
			w.marker(session, `{"runId":"storm-42","startedAt":"`+time.Now().Add(-7*time.Hour).Format(time.RFC3339)+`"}`, time.Now())
		}},
		{capgate.CodeWithinBudget, "a grant raised the limit", search, func(t *testing.T, w *world) {
			_, err := w.ledger.Grant(t.Context(), "storm-42", ledger.Grant{Turns: 1}, "one more")
			require.NoError(t, err)
		}},
		{capgate.CodeWithinBudget, "armed for another run", search, func(_ *testing.T, w *world) { w.open("storm-43", 1, 1).arm(session, "storm-43") }},
	} {
		t.Run(c.code+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			w := spent(t)
			if c.set != nil {
				c.set(t, w)
			}
			r := w.hook(c.payload)
			for _, row := range capgate.Table {
				if row.Code != c.code {
					continue
				}
				if row.Outcome == gates.Deny {
					w.requireDeny(r, c.code)
				} else {
					w.requirePass(r)
				}
			}
			if c.code == capgate.CodeMarkerExpired {
				require.Equal(t, c.code, w.code(), "expiry is logged")
				require.NoFileExists(t, scope.Path(w.state, session))
				w.requirePass(w.hook(c.payload)) // and now there is no marker
			}
		})
	}
}

// longAgo gives the world another ledger, whose run ended its last turn before a marker's time to live.
func longAgo(t *testing.T, w *world) {
	t.Helper()
	path := filepath.Join(w.state, "old.db")
	w.ledger = ledger.NewFile(path, ledger.Options{Now: func() time.Time { return time.Now().Add(-7 * time.Hour) }})
	w.env["CAPGATE_LEDGER"] = path
	w.open("storm-42", 2, 1).turns("storm-42", 2)
}

func TestTheBoundary(t *testing.T) {
	for _, c := range []struct {
		name       string
		conv, dims int64
	}{{"limit 1", 1, 1}, {"4 x 2", 4, 2}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t).open("r", c.conv, c.dims).arm(session, "r")
			for range c.conv * c.dims {
				w.requirePass(w.hook(call(session, "WebSearch")))
				w.turns("r", 1)
			}
			w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
			_, err := w.ledger.Grant(t.Context(), "r", ledger.Grant{Turns: 2}, "why not")
			require.NoError(t, err)
			for range 2 {
				w.requirePass(w.hook(call(session, "WebSearch")))
				w.turns("r", 1)
			}
			w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
			_, err = w.ledger.CloseRun(t.Context(), "r")
			require.NoError(t, err)
			_, err = w.ledger.RecordTurn(t.Context(), "r", "", "")
			require.ErrorIs(t, err, ledger.ErrRunClosed)
		})
	}
}

func TestTwoSessionsInOneDirectoryDoNotTouchEachOther(t *testing.T) {
	w := newWorld(t).open("a", 1, 1).open("b", 1, 1).arm("s-a", "a").arm("s-b", "b").turns("a", 1)
	w.requireDeny(w.hook(call("s-a", "WebSearch")), capgate.CodeBudgetSpent)
	w.requirePass(w.hook(call("s-b", "WebSearch")))
	w.turns("b", 1)
	w.requireDeny(w.hook(call("s-b", "WebSearch")), capgate.CodeBudgetSpent)
	w.requirePass(w.hook(call("s-c", "WebSearch")))
}

// The hook only reads: neither the ledger nor the marker changes, whatever the verdict.
func TestACheckWritesNothing(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r")
	paths := []string{filepath.Join(w.state, "ledger.db"), scope.Path(w.state, session)}
	snapshot := func() (all []string) {
		for _, p := range paths {
			info, err := os.Stat(p)
			require.NoError(t, err)
			text, err := os.ReadFile(p)
			require.NoError(t, err)
			all = append(all, fmt.Sprint(info.ModTime(), info.Mode(), len(text)), string(text))
		}
		return all
	}
	before := snapshot()
	w.requirePass(w.hook(call(session, "WebSearch")))
	require.Equal(t, before, snapshot())
	w.turns("r", 1)
	before = snapshot()
	w.requireDeny(w.hook(call(session, "WebSearch")), capgate.CodeBudgetSpent)
	require.Equal(t, before, snapshot())
}

func TestOtherEventsExitZeroAtTheCap(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	files, err := filepath.Glob(filepath.Join(recorded, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		if name := filepath.Base(file); !strings.HasPrefix(name, "PreToolUse-") {
			w.requirePass(w.hook(payload(t, name)))
		}
	}
	for _, event := range []string{"UserPromptSubmit", "Stop", "PreCompact", "pretooluse", ""} {
		w.requirePass(w.hook(strings.Replace(call(session, "WebSearch"), "PreToolUse", event, 1)))
	}
}

// A large or deep input changes neither the verdict nor outlasts the deadline.
func TestHugePayloadsAreJudged(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	front := `{"hook_event_name":"PreToolUse","session_id":"other","tool_input":`
	back := `,"session_id":"` + session + `","tool_name":"WebSearch"}`
	for name, input := range map[string]string{
		"100 MB of text":        `{"x":"` + strings.Repeat(`line\n`, 100<<20/6) + `"}`,
		"100 MB of small items": `[` + strings.Repeat(`[],`, 100<<20/3) + `0]`,
		"a million levels":      strings.Repeat(`{"a":[`, 500_000) + strings.Repeat(`]}`, 500_000),
	} {
		t.Run(name, func(t *testing.T) {
			r := w.hook(front + input + back)
			w.requireDeny(r, capgate.CodeBudgetSpent)
			t.Logf("judged in %v", r.took)
		})
	}
}

// stalled is a pipe whose writer keeps it open after the text.
func stalled(t *testing.T, text string) *os.File {
	r, wr, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close(); _ = wr.Close() })
	_, err = wr.WriteString(text)
	require.NoError(t, err)
	return r
}

func TestTheDeadlineHoldsOverStdin(t *testing.T) {
	search := call(session, "WebSearch")
	for _, c := range []struct {
		name, text string
		deny       bool
	}{
		{"nothing comes", "", true},
		{"half a call comes", search[:len(search)/2], true},
		{"all but the end of the stream comes", search, true},
		{"what comes is another event", `{"hook_event_name":"SessionEnd","session_id":"x",`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t).open("r", 1, 1).arm(session, "r")
			w.env["CAPGATE_DEADLINE_MS"] = "300"
			r := w.hookReading(stalled(t, c.text))
			require.Less(t, r.took, 10*time.Second, "it hung")
			t.Logf("answered after %v of 300ms", r.took)
			if !c.deny {
				w.requirePass(r)
				return
			}
			w.requireDeny(r, capgate.CodeLedgerUnreadable)
			require.Contains(t, r.stderr, "the call could not be read within 300ms")
		})
	}
	t.Run("off, stdin is not even read", func(t *testing.T) {
		w := newWorld(t)
		w.env["CAPGATE_DISABLE"] = "1"
		w.requirePass(w.hookReading(stalled(t, "")))
	})
}

// A verdict reaches the client as an exit status even when the client does not read: a status of SIGPIPE or a hang
// would let the call proceed.
func TestAClientThatDoesNotReadIsDeniedAllTheSame(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	w.env["CAPGATE_DEADLINE_MS"] = "500"
	start := func(t *testing.T, stderr *os.File) (exit int) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := w.command(ctx)
		cmd.Stdin = strings.NewReader(call(session, "WebSearch"))
		cmd.Stdout, cmd.Stderr = stderr, stderr
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode()
	}
	t.Run("closed pipe", func(t *testing.T) {
		r, wr, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		defer func() { _ = wr.Close() }()
		require.Equal(t, 2, start(t, wr))
	})
	t.Run("full pipe", func(t *testing.T) {
		r, wr, err := os.Pipe()
		require.NoError(t, err)
		defer func() { _ = r.Close(); _ = wr.Close() }()
		require.NoError(t, wr.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
		for {
			if _, err := wr.Write(make([]byte, 4096)); err != nil {
				break
			}
		}
		require.NoError(t, wr.SetWriteDeadline(time.Time{}))
		require.Equal(t, 2, start(t, wr))
	})
	t.Run("closed descriptors", func(t *testing.T) {
		cmd := exec.Command("sh", "-c", `"$0" 1>&- 2>&-`, binary)
		cmd.Env = w.command(t.Context()).Env
		cmd.Stdin = strings.NewReader(call(session, "WebSearch"))
		_ = cmd.Run()
		require.Equal(t, 2, cmd.ProcessState.ExitCode())
	})
}

// The log is best effort: whatever stands in its place, the verdict is the same.
func TestALogThatCannotBeWrittenChangesNoVerdict(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"a directory":        func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
		"a dangling symlink": func(t *testing.T, path string) { require.NoError(t, os.Symlink("/nowhere/at/all", path)) },
		"a full device":      func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/full", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
			spoil(t, filepath.Join(w.state, decisionlog.FileName))
			r := w.hook(call(session, "WebSearch"))
			require.Equal(t, 2, r.exit)
			require.Empty(t, r.stdout)
			require.Contains(t, r.stderr, "turn budget spent")
		})
	}
}

func TestTheLogHoldsTheDecisionAndNeverTheInput(t *testing.T) {
	w := newWorld(t).open("r", 1, 1).arm(session, "r").turns("r", 1)
	search := payload(t, "PreToolUse-WebSearch-general-purpose.json")
	r := w.hook(search)
	w.requireDeny(r, capgate.CodeBudgetSpent)
	last, err := decisionlog.Last(w.state, 1)
	require.NoError(t, err)
	one := int64(1)
	got := last[0]
	require.Contains(t, r.stderr, "[capgate "+got.ID+"]")
	require.Equal(t, decisionlog.Record{
		ID: got.ID, At: got.At, Client: "claude", Code: "budget-spent", Outcome: "deny", Session: session, Run: "r", Tool: "WebSearch",
		AgentID: "a0df13b51b0b99973", AgentType: "general-purpose", ToolUseID: "toolu_000123u1ounam8", Used: &one, Limit: &one,
		Reason: strings.TrimSuffix(r.stderr, "\n"),
	}, got)
	text, err := os.ReadFile(filepath.Join(w.state, decisionlog.FileName))
	require.NoError(t, err)
	require.NotContains(t, string(text), "hooks reference") // of the query
	info, err := os.Stat(filepath.Join(w.state, decisionlog.FileName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	// Hostile fields stay within one line of the log.
	w.hook(`{"session_id":"` + session + `","tool_name":"WebSearch","agent_type":"` + strings.Repeat(`\u0001`, 5000) + `","agent_id":"a\nb"}`)
	text, err = os.ReadFile(filepath.Join(w.state, decisionlog.FileName))
	require.NoError(t, err)
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	require.Len(t, lines, 2)
	for _, line := range lines {
		require.True(t, json.Valid(line))
		require.Less(t, len(line), decisionlog.MaxLine)
	}
}

// 8 hooks at a time beside 4 writers: before the budget is spent and after it, no verdict is wrong or late.
func TestHooksBesideWritersAreNeverWrongNorLate(t *testing.T) {
	const limit = 60
	w := newWorld(t).open("r", limit, 1).arm(session, "r")
	w.open("busy", 1_000_000, 1)
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.ledger.RecordTurn(context.Background(), "busy", "", ""); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var mu sync.Mutex
	for range 8 {
		readers.Go(func() {
			for {
				before, err := w.ledger.Budget(context.Background(), "r", nil)
				if err != nil {
					t.Error(err)
					return
				}
				r := w.hook(call(session, "WebSearch"))
				after, err := w.ledger.Budget(context.Background(), "r", nil)
				if err != nil {
					t.Error(err)
					return
				}
				switch {
				case r.exit != 0 && r.exit != 2, r.exit == 2 && after.Used < limit, r.exit == 0 && before.Used >= limit:
					t.Errorf("exit %d between %d and %d of %d: %s", r.exit, before.Used, after.Used, limit, r.stderr)
				case r.exit == 2 && !strings.Contains(r.stderr, "turn budget spent"):
					t.Errorf("wrong reason: %s", r.stderr)
				}
				if before.Used >= limit {
					return
				}
				mu.Lock()
				_, err = w.ledger.RecordTurn(context.Background(), "r", "", "")
				mu.Unlock()
				if err != nil && after.Used < limit-8 {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writers.Wait()
	report, err := w.ledger.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}
