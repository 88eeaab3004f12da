package hook

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/scope"
)

// logged returns the decisions that are in the log, without their ids and times.
func logged(t *testing.T, env map[string]string) []decisionlog.Record {
	t.Helper()
	all, err := decisionlog.Last(env["CAPGATE_DATA_DIR"], 0)
	require.NoError(t, err)
	for i := range all {
		require.Len(t, all[i].ID, 26)
		require.WithinDuration(t, time.Now(), all[i].At, time.Minute)
		all[i].ID, all[i].At = "", time.Time{}
	}
	return all
}

// What is not a plain pass is logged with all that is known of the call.
func TestTheLogSaysWhatWasDecided(t *testing.T) {
	one := int64(1)
	env := armed(t, true)
	got := say(env, `{"session_id":"`+fuzzSession+`","tool_name":"WebSearch","tool_use_id":"u","agent_id":"a","agent_type":"finder"}`)
	require.Equal(t, 2, got.exit)
	reason := strings.TrimSuffix(got.stderr, "\n")
	require.Contains(t, reason, "turn budget spent")
	require.Equal(t, []decisionlog.Record{{
		Client: "claude", Code: capgate.CodeBudgetSpent, Outcome: "deny", Session: fuzzSession, Run: "r", Tool: "WebSearch",
		AgentID: "a", AgentType: "finder", ToolUseID: "u", Used: &one, Limit: &one, Reason: reason,
	}}, logged(t, env))

	env = asking(t)
	require.Equal(t, outcome{stdout: say(env, spawn).stdout}, say(env, spawn))
	all := logged(t, env)
	require.Len(t, all, 2)
	require.Equal(t, decisionlog.Record{Client: "claude", Code: gates.CodeAdmissionAsk, Outcome: "ask", Session: "s", Tool: "Agent", Reason: all[0].Reason}, all[0])
	require.NotContains(t, all[0].Reason, "[capgate", "a question has no id in it")

	env = armed(t, false)
	require.Equal(t, outcome{}, say(env, search(fuzzSession)))
	require.NoFileExists(t, filepath.Join(env["CAPGATE_DATA_DIR"], decisionlog.FileName), "a plain pass")

	env = asking(t)
	env["CAPGATE_DATA_DIR"] = "relative"
	require.Equal(t, 0, say(env, spawn).exit)
	require.NoDirExists(t, "relative")
}

func TestAnExpiredMarkerIsRemovedAndThatIsLogged(t *testing.T) {
	env := armed(t, false)
	state := env["CAPGATE_DATA_DIR"]
	require.NoError(t, os.Remove(filepath.Join(state, "ledger.db")))
	require.NoError(t, scope.Write(state, scope.Marker{Session: fuzzSession, Run: "r", StartedAt: time.Now().Add(-7 * time.Hour)}))
	require.Equal(t, outcome{}, say(env, search(fuzzSession)))
	require.NoFileExists(t, scope.Path(state, fuzzSession))
	all := logged(t, env)
	require.Len(t, all, 1)
	require.Equal(t, capgate.CodeMarkerExpired, all[0].Code)
	require.Equal(t, "pass", all[0].Outcome)
	require.Equal(t, "marker of run r is 7h0m0s old, TTL 6h0m0s: removed", all[0].Reason)

	// A gate denies the same call: the deny is what is logged.
	require.NoError(t, scope.Write(state, scope.Marker{Session: fuzzSession, Run: "r", StartedAt: time.Now().Add(-7 * time.Hour)}))
	env["CAPGATE_ALLOWED_SUBAGENTS"] = "x"
	require.Equal(t, 2, say(env, strings.Replace(spawn, `"s"`, `"`+fuzzSession+`"`, 1)).exit)
	require.NoFileExists(t, scope.Path(state, fuzzSession))
	all = logged(t, env)
	require.Equal(t, gates.CodeType, all[1].Code)
}

func TestAnAdmittedSpawnPassesAndIsLogged(t *testing.T) {
	env := asking(t)
	now := time.Now()
	require.NoError(t, admission.Add(t.Context(), env["CAPGATE_DATA_DIR"], admission.Admission{
		ID: "01", Type: "joke-finder", Uses: 1, At: now, Until: now.Add(time.Hour), Reason: "night",
	}))
	require.Equal(t, outcome{stdout: say(env, spawn).stdout}, outcome{stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"subagent_type":"joke-finder","run_in_background":false}}}` + "\n"})
	env["CAPGATE_ALLOWED_SUBAGENTS"], env["CAPGATE_SPEC"] = "", filepath.Join(env["CAPGATE_DATA_DIR"], "spec.json")
	require.NoError(t, os.WriteFile(env["CAPGATE_SPEC"], []byte(`{"subagents":{"joke-finder":{}},"foreground":"off","admission":"ask"}`), 0o600))
	require.NoError(t, admission.Add(t.Context(), env["CAPGATE_DATA_DIR"], admission.Admission{
		ID: "02", Type: "joke-finder", Uses: 1, At: now, Until: now.Add(time.Hour), Reason: "night",
	}))
	require.Equal(t, outcome{}, say(env, spawn))
	all := logged(t, env)
	last := all[len(all)-1]
	require.Equal(t, capgate.CodeAdmitted, last.Code)
	require.Equal(t, "02", last.Admission)
	got := say(env, spawn)
	require.Contains(t, got.stdout, `"ask"`, "they are used up")
}

// waiting gives a text and then nothing, and no end.
func waiting(text string) readerFunc {
	return func(p []byte) (int, error) {
		if text == "" {
			select {}
		}
		n := copy(p, text)
		text = text[n:]
		return n, nil
	}
}

// Whatever is awaited at the deadline, the watchdog answers: it denies, but for what is no tool call as far as one can tell.
func TestTheWatchdogAnswersInTheHooksPlace(t *testing.T) {
	search := search(fuzzSession)
	for _, c := range []struct {
		name, text string
		exit       int
	}{
		{"nothing comes", "", 2},
		{"half a call", search[:len(search)/2], 2},
		{"no end", search, 2},
		{"half of another event", `{"hook_event_name":"SessionEnd","session_id":"x",`, 0},
		{"half of a word that is no event", `{"hook_event_name":"Pre`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := armed(t, false)
			env["CAPGATE_DEADLINE_MS"] = "200"
			began := time.Now()
			got := runProcess(env, Process{Stdin: waiting(c.text)})
			require.Equal(t, c.exit, got.exit)
			require.GreaterOrEqual(t, time.Since(began), 190*time.Millisecond, "it strikes a fortieth before the deadline")
			all := logged(t, env)
			require.Len(t, all, c.exit/2)
			if c.exit == 2 {
				require.Contains(t, got.stderr, "the call could not be read within 200ms")
				require.Equal(t, strings.TrimSuffix(got.stderr, "\n"), all[0].Reason)
			}
		})
	}
}

// slowClient is Claude Code with a name that takes a while to be told: the log waits for it.
type slowClient struct {
	claude.Client
	wait func()
}

func (c slowClient) Name() string { c.wait(); return client.Claude }

// What was decided in time is what is said, however slow the log is; it is not said twice.
func TestASlowLogChangesNoAnswer(t *testing.T) {
	env := armed(t, true)
	env["CAPGATE_DEADLINE_MS"] = "200"
	got := runProcess(env, Process{Stdin: strings.NewReader(search(fuzzSession)), Client: slowClient{wait: func() { select {} }}})
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, "turn budget spent")
	require.Equal(t, 1, strings.Count(got.stderr, "\n"))
}

// A session's event on which something is stuck is answered with silence.
func TestAStuckSessionEventIsSilent(t *testing.T) {
	env := armed(t, true)
	env["CAPGATE_DEADLINE_MS"] = "200"
	p := Process{Stdin: strings.NewReader(event("SessionStart", fuzzSession, "source", "startup"))}
	p.Lookup = func(name string) (string, bool) {
		if name == "CLAUDE_ENV_FILE" {
			select {}
		}
		v, ok := env[name]
		return v, ok
	}
	require.Equal(t, outcome{}, runProcess(env, p))
	p = Process{Stdin: strings.NewReader(event("SessionStart", fuzzSession, "source", "startup"))}
	p.Lookup = func(name string) (string, bool) {
		if name == "CLAUDE_ENV_FILE" {
			panic("boom")
		}
		v, ok := env[name]
		return v, ok
	}
	require.Equal(t, outcome{}, runProcess(env, p), "nor is a fault told")
}

// All that was switched off answers before anything is read, unless a state directory has sessions to watch.
func TestWhatIsOffReadsNothing(t *testing.T) {
	unread := readerFunc(func([]byte) (int, error) { panic("stdin must not be read") })
	for _, env := range []map[string]string{{}, {"CAPGATE_ENABLED": "1", "CAPGATE_DISABLE": "1"}, {"CAPGATE_DATA_DIR": "relative"}} {
		require.Equal(t, outcome{}, runProcess(env, Process{Stdin: unread}))
	}
	env := armed(t, true)
	env["CAPGATE_DISABLE"] = "1"
	require.Equal(t, outcome{}, say(env, search(fuzzSession)))
}

func TestAnEnvironmentFileOfAnEntryIsInForce(t *testing.T) {
	env := armed(t, true)
	file := filepath.Join(t.TempDir(), "env")
	require.NoError(t, os.WriteFile(file, []byte("CAPGATE_DATA_DIR="+env["CAPGATE_DATA_DIR"]+"\nCAPGATE_ENABLED=1\n"), 0o600))
	got := runProcess(map[string]string{}, Process{Stdin: strings.NewReader(search(fuzzSession)), EnvFile: file})
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, "turn budget spent")
	got = runProcess(env, Process{Stdin: strings.NewReader(search(fuzzSession)), EnvFile: file + ".none"})
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, file+".none")
	got = runProcess(map[string]string{}, Process{Stdin: strings.NewReader(search(fuzzSession)), Args: map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": env["CAPGATE_DATA_DIR"]}})
	require.Equal(t, 2, got.exit)
}

// The watchdog follows the deadline of the environment file, once it is read; until then it has that of the entry.
func TestTheDeadlineIsThatOfTheEnvironmentFile(t *testing.T) {
	env := armed(t, true)
	file := filepath.Join(t.TempDir(), "env")
	require.NoError(t, os.WriteFile(file, []byte("CAPGATE_DEADLINE_MS=60000\nCAPGATE_ENABLED=1\nCAPGATE_DATA_DIR="+env["CAPGATE_DATA_DIR"]+"\n"), 0o600))
	env["CAPGATE_DEADLINE_MS"] = "200"
	late := readerFunc(func() func(p []byte) (int, error) {
		text := strings.NewReader(search(fuzzSession))
		return func(p []byte) (int, error) {
			time.Sleep(150 * time.Millisecond)
			return text.Read(p)
		}
	}())
	got := runProcess(nil, Process{Stdin: late, EnvFile: file, Args: map[string]string{"CAPGATE_DEADLINE_MS": "200"}})
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, "turn budget spent")

	got = runProcess(env, Process{Stdin: late, EnvFile: "relative", Args: env, Lookup: func(name string) (string, bool) {
		if name == "CLAUDE_PROJECT_DIR" {
			select {}
		}
		v, ok := env[name]
		return v, ok
	}})
	require.Equal(t, 2, got.exit, "it is not known what the file switches on")
	require.Contains(t, got.stderr, "the environment file was not read in time")
}

// Where the state directory does not answer at once, the watchdog judges by what is switched on all the same.
func TestTheWatchdogJudgesByTheSettingsThatAreKnown(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state") // to open it waits for a writer
	require.NoError(t, exec.Command("mkfifo", state).Run())
	shell := strings.Replace(search(fuzzSession), "WebSearch", "Bash", 1)
	for _, c := range []struct {
		name, text string
		env        map[string]string
		exit       int
	}{
		{"the cap", search(fuzzSession), map[string]string{"CAPGATE_ENABLED": "1"}, 2},
		{"the gates", shell, map[string]string{"CAPGATE_ALLOWED_SUBAGENTS": "x"}, 2},
		{"nothing", shell, map[string]string{}, 0},
		{"a kill switch", shell, map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DISABLE": "1"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.env["CAPGATE_DATA_DIR"], c.env["CAPGATE_DEADLINE_MS"] = state, "200"
			got := runProcess(c.env, Process{Stdin: strings.NewReader(c.text)})
			require.Equal(t, c.exit, got.exit)

			file := filepath.Join(t.TempDir(), "env")
			var text strings.Builder
			for name, value := range c.env {
				text.WriteString(name + "=" + value + "\n")
			}
			require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
			got = runProcess(map[string]string{}, Process{Stdin: strings.NewReader(c.text), EnvFile: file})
			require.Equal(t, c.exit, got.exit)
			require.NotContains(t, got.stderr, "environment file", "which was read")
		})
	}
}

func TestWhenTheWatchdogStrikes(t *testing.T) {
	for _, ago := range []time.Duration{0, time.Hour} {
		r := &run{Process: Process{Start: time.Now().Add(-ago)}}
		in := r.watchdogIn() + ago // the default deadline is 2 s, of which 25 ms are kept
		require.LessOrEqual(t, in, 1975*time.Millisecond)
		require.Greater(t, in, time.Second)
	}
	short := &run{}
	short.facts.Config.Deadline = "200"
	require.Equal(t, 5*time.Millisecond, grace(short.facts))
}

// A long payload gets all the room at once, a short one does not.
func TestHowABufferGrows(t *testing.T) {
	for size, want := range map[int]int{firstRead: 4 * firstRead, maxMoved / 4: maxMoved, maxMoved/4 + 1: maxPayload} {
		require.Len(t, grown(make([]byte, size)), want)
	}
}

// What an operator says holds at once: a halt denies every call, an off judges none, and of an off that was taken back nothing is left.
func TestWhatAnOperatorSaysHoldsAtOnce(t *testing.T) {
	env := armed(t, false)
	state := env["CAPGATE_DATA_DIR"]
	read := strings.Replace(search(fuzzSession), "WebSearch", "Read", 1)
	word := control.Word{At: time.Now(), Reason: "lunch", By: "alice"}
	require.Equal(t, outcome{}, say(env, read))
	require.NoError(t, control.Halt(state, word))
	got := say(env, read)
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, "lunch")
	off := map[string]string{"CAPGATE_DATA_DIR": state}
	require.Equal(t, outcome{}, say(off, read), "nothing is switched on there")
	_, err := control.Lift(state)
	require.NoError(t, err)
	require.Equal(t, outcome{}, say(env, read))

	l := ledger.NewFile(filepath.Join(state, "ledger.db"), ledger.Options{})
	_, err = l.RecordTurn(t.Context(), "r", "", "")
	require.NoError(t, err)
	require.Equal(t, 2, say(env, search(fuzzSession)).exit)
	require.NoError(t, control.Off(state, word))
	require.Equal(t, outcome{}, say(env, search(fuzzSession)))
	_, err = control.On(state)
	require.NoError(t, err)
	require.Equal(t, 2, say(env, search(fuzzSession)).exit)
}

// A halt waits for calls that are being judged, and sees those that began after it.
func TestAHaltWaitsForTheCallsUnderWay(t *testing.T) {
	env := armed(t, false)
	state := env["CAPGATE_DATA_DIR"]
	word := control.Word{At: time.Now(), Reason: "lunch"}
	ask, asked := make(chan struct{}), make(chan struct{})
	text := strings.NewReader(search(fuzzSession))
	done := make(chan outcome, 1)
	var first sync.Once
	go func() {
		done <- runProcess(env, Process{Stdin: readerFunc(func(p []byte) (int, error) {
			first.Do(func() {
				close(asked)
				<-ask
			})
			return text.Read(p)
		})})
	}()
	<-asked
	require.NoError(t, control.Halt(state, word))
	waited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, control.Drain(waited, state, time.Minute), "a call is under way")
	close(ask)
	require.Equal(t, outcome{}, <-done, "it began before the halt")
	ended, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, control.Drain(ended, state, time.Minute))
	require.Equal(t, 2, say(env, search(fuzzSession)).exit)
}

// Once the watchdog has answered nobody else does.
func TestNobodyAnswersAfterTheWatchdog(t *testing.T) {
	env := armed(t, true)
	env["CAPGATE_DEADLINE_MS"] = "200"
	free := make(chan struct{})
	var said atomic.Int32
	got := runProcess(env, Process{
		Stdin: strings.NewReader(search(fuzzSession)), Client: slowClient{wait: func() { <-free }},
		Stderr: writerFunc(func(p []byte) (int, error) { said.Add(1); return len(p), nil }),
	})
	require.Equal(t, 2, got.exit)
	close(free)
	time.Sleep(100 * time.Millisecond)
	require.EqualValues(t, 1, said.Load())
}

// Of an answer that stdout took in part, or of which it is not known, the client is told by the exit status.
func TestAnAnswerThatStdoutDidNotTakeBlocks(t *testing.T) {
	for name, write := range map[string]writerFunc{
		"an error":        func([]byte) (int, error) { return 0, io.ErrClosedPipe },
		"an error at end": func(p []byte) (int, error) { return len(p), io.ErrClosedPipe },
		"a part":          func(p []byte) (int, error) { return len(p) - 1, nil },
	} {
		got := runProcess(asking(t), Process{Stdin: strings.NewReader(spawn), Stdout: write})
		require.Equal(t, outcome{exit: 2, stderr: string(untold.Stderr)}, got, name)
	}
}

// Where nothing is to be said nobody has to read it, and what is being said is not said again.
func TestWhatHasToBeReadAndHowOften(t *testing.T) {
	env := armed(t, false)
	env["CAPGATE_DEADLINE_MS"] = "10000"
	require.Equal(t, outcome{}, runProcess(env, Process{Stdin: strings.NewReader(search(fuzzSession)), Stdout: stuck, Stderr: stuck}))

	env = asking(t)
	env["CAPGATE_DEADLINE_MS"] = "200"
	var writes atomic.Int32
	got := runProcess(env, Process{Stdin: strings.NewReader(spawn), Stdout: writerFunc(func([]byte) (int, error) {
		writes.Add(1)
		select {}
	})})
	require.Equal(t, 2, got.exit)
	require.EqualValues(t, 1, writes.Load())
}

// roleVariable makes the test's binary a hook.
const roleVariable = "CAPGATE_HOOK_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "hook" {
		Main(time.Now(), os.Args[1:])
	}
	os.Exit(m.Run())
}

func TestAWronglyWiredHookSaysSo(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for args, want := range map[string]int{"--client claude": 0, "--client nobody": 2} {
		cmd := exec.CommandContext(t.Context(), self, strings.Fields(args)...)
		cmd.Env = []string{roleVariable + "=hook"}
		var errs strings.Builder
		cmd.Stderr = &errs
		_ = cmd.Run()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), args)
		require.Equal(t, want == 2, strings.HasPrefix(errs.String(), "capgate: unknown arguments"), errs.String())
	}
}

// A halt waits for each call that is being judged, and for none where there is nothing to judge by.
func TestACallHoldsAHaltWhileItIsJudged(t *testing.T) {
	if !disk.HasFlock {
		t.Skip("this system has no flock")
	}
	for _, c := range []struct {
		name string
		set  string
		held bool
	}{
		{"the cap", "CAPGATE_ENABLED=1", true},
		{"the gates", "CAPGATE_ALLOWED_SUBAGENTS=a", true},
		{"nothing", "CAPGATE_ENABLED=0", false},
		{"the kill switch", "CAPGATE_DISABLE=1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, value, _ := strings.Cut(c.set, "=")
			state := t.TempDir()
			free := func() bool {
				dir, err := os.Open(state)
				require.NoError(t, err)
				defer func() { _ = dir.Close() }()
				return disk.TryLock(dir, disk.Exclusive) == nil
			}
			held := false
			text := strings.NewReader(`{"session_id":"s","tool_name":"Read"}`)
			got := runProcess(map[string]string{"CAPGATE_DATA_DIR": state, name: value}, Process{Stdin: readerFunc(func(p []byte) (int, error) {
				held = !free()
				return text.Read(p)
			})})
			require.Equal(t, 0, got.exit)
			require.Equal(t, c.held, held)
			require.Eventually(t, free, 10*time.Second, time.Millisecond, "and no longer")
		})
	}
	got := runProcess(map[string]string{"CAPGATE_ENABLED": "1"}, Process{Stdin: strings.NewReader(`{"session_id":"s","tool_name":"Read"}`)})
	require.Equal(t, 0, got.exit, "without a state directory there is nothing to hold")
}
