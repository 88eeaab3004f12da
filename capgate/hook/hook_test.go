package hook

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/capgate/client/omp"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// outcome is what a client sees of a hook process.
type outcome struct {
	exit           int
	stdout, stderr string
}

// runProcess runs the hook in this process; Exit ends only the goroutine.
func runProcess(env map[string]string, p Process) outcome {
	var out, err bytes.Buffer
	exit := make(chan int, 8)
	p.Start = time.Now()
	if p.Client == nil {
		p.Client = claude.Client{}
	}
	if p.Lookup == nil {
		p.Lookup = lookupIn(env)
	}
	if p.Stdout == nil {
		p.Stdout = &out
	}
	if p.Stderr == nil {
		p.Stderr = &err
	}
	p.Exit = func(status int) {
		exit <- status
		runtime.Goexit()
	}
	go p.Run()
	return outcome{<-exit, out.String(), err.String()}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// stuck is a pipe that nobody reads.
var stuck = writerFunc(func([]byte) (int, error) { select {} })

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A fault of our own is answered as a deny and logged, and never shows as another exit status.
func TestAPanicDenies(t *testing.T) {
	state := t.TempDir()
	got := runProcess(map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": state}, Process{
		Stdin: readerFunc(func([]byte) (int, error) { panic("boom\x1b[2J") }),
	})
	require.Equal(t, 2, got.exit)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, `capgate: internal fault (boom\x1b[2J)`)
	last, err := decisionlog.Last(state, 1)
	require.NoError(t, err)
	require.Equal(t, capgate.CodePanic, last[0].Code)
	require.Contains(t, got.stderr, last[0].ID)
}

func TestAPanicWhileOffIsNotEvenPossible(t *testing.T) {
	got := runProcess(map[string]string{}, Process{
		Stdin: readerFunc(func([]byte) (int, error) { panic("stdin must not be read") }),
	})
	require.Equal(t, outcome{}, got)
}

// A stream without an end is cut at the deadline, not read until memory ends.
func TestEndlessStdinDeniesAtTheDeadline(t *testing.T) {
	began := time.Now()
	got := runProcess(map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": t.TempDir(), "CAPGATE_DEADLINE_MS": "200"}, Process{
		Stdin: readerFunc(func(p []byte) (int, error) {
			time.Sleep(time.Millisecond)
			return copy(p, strings.Repeat(" ", 100)), nil
		}),
	})
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, "the call could not be read within 200ms")
	require.Less(t, time.Since(began), 10*time.Second)
}

// asking is an environment in which a spawn is put before a human.
func asking(t *testing.T) map[string]string {
	return map[string]string{
		"CAPGATE_DATA_DIR": t.TempDir(), "CAPGATE_ALLOWED_SUBAGENTS": "joke-finder", "CAPGATE_ADMISSION": "ask",
		"CLAUDE_CODE_SESSION_ATTENDED": "1", "CAPGATE_DEADLINE_MS": "60000",
	}
}

const spawn = `{"session_id":"s","tool_name":"Agent","tool_input":{"subagent_type":"joke-finder"}}`

// An answer that the client's pipe does not hold is not begun: half an object is no answer, and silence lets the call go on.
func TestAnAnswerThereIsNoRoomForBlocks(t *testing.T) {
	for _, room := range []bool{true, false} {
		size := 0
		got := runProcess(asking(t), Process{Stdin: strings.NewReader(spawn), Room: func(n int) bool { size = n; return room }})
		if room {
			require.Equal(t, outcome{exit: 0, stdout: got.stdout}, got)
			require.Len(t, got.stdout, size)
			continue
		}
		require.Equal(t, outcome{exit: 2, stderr: string(untold.Stderr)}, got)
	}
}

// Where a client does not read stdout, stderr may take the reason; nothing hangs where it does not.
func TestAClientThatReadsNothingIsBlocked(t *testing.T) {
	env := asking(t)
	env["CAPGATE_DEADLINE_MS"] = "300"
	got := runProcess(env, Process{Stdin: strings.NewReader(spawn), Stdout: stuck})
	require.Equal(t, outcome{exit: 2, stderr: string(untold.Stderr)}, got)
	got = runProcess(env, Process{Stdin: strings.NewReader(spawn), Stdout: stuck, Stderr: stuck})
	require.Equal(t, outcome{exit: 2}, got)
	// The same where the watchdog is the first to answer.
	got = runProcess(env, Process{Stdin: readerFunc(func([]byte) (int, error) { select {} }), Stdout: stuck, Client: omp.Client{}})
	require.Equal(t, outcome{exit: 2, stderr: string(untold.Stderr)}, got)
}

func TestAPayloadIsReadWholeUpToItsBound(t *testing.T) {
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, maxMoved / 2, maxMoved, maxMoved + 1, 3 * maxMoved} {
		want := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		got, err := (&run{Process: Process{Stdin: bytes.NewReader(want)}}).readStdin()
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), size)
	}
	// More is not read, and not waited for: it is denied at once.
	got := runProcess(asking(t), Process{Stdin: readerFunc(func(p []byte) (int, error) { return len(p), nil })})
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, "the call could not be read within 1m0s")
}

// The log says "removed" of the marker that was removed, and of no other.
func TestAMarkerThatWasNotRemovedIsNotLoggedAsRemoved(t *testing.T) {
	state := t.TempDir()
	old := time.Now().Add(-24 * time.Hour)
	for _, rewritten := range []bool{false, true} {
		require.NoError(t, scope.Write(state, scope.Marker{Session: "s-1", Run: "r", StartedAt: old}))
		f := capgate.Facts{Config: capgate.Config{Enabled: "1", DataDir: state}, Now: time.Now(), Known: capgate.StageSpec,
			Call: gates.Call{Session: "s-1", Tool: "WebSearch"}}
		f = Gather(t.Context(), f, capgate.StageMarker)
		require.NoError(t, f.MarkerErr)
		if rewritten { // between the look and the removal
			require.NoError(t, scope.Write(state, scope.Marker{Session: "s-1", Run: "r", StartedAt: time.Now()}))
		}
		for stage, more := f.Next(); more; stage, more = f.Next() { // the ledger, of which there is none here
			f = Gather(t.Context(), f, stage)
		}
		d := (&run{Process: Process{Client: claude.Client{}}}).decide(capgate.Decide(f), f)
		require.Equal(t, rewritten, d.id == "", "logged as %q", d.verdict.Reason)
		_, err := scope.Read(state, "s-1")
		require.Equal(t, rewritten, err == nil)
	}
}
