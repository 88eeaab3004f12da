package hook

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/decisionlog"
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
	p.Start, p.Client = time.Now(), Claude
	p.Lookup = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	p.Stdout, p.Stderr = &out, &err
	p.Exit = func(status int) {
		exit <- status
		runtime.Goexit()
	}
	go p.Run()
	return outcome{<-exit, out.String(), err.String()}
}

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
	require.Contains(t, got.stderr, "not done before the deadline of 200ms")
	require.Less(t, time.Since(began), 10*time.Second)
}
