package scope

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Races per way to arm.
const (
	races        = 1000
	processRaces = 200 // a second process costs more
	workers      = 32
)

// A session is armed afresh at the moment when two hooks find its old marker expired. Whatever the order, the fresh
// marker is there in the end, and only it.
func TestExpiryNeverLosesAFreshMarker(t *testing.T) {
	for how, rearm := range arm {
		t.Run(how, func(t *testing.T) {
			state := t.TempDir()
			inParallel(t, races, func(worker, round int) {
				session := fmt.Sprintf("s%d", worker)
				race(t, state, session, fmt.Sprintf("fresh-%d", round), rearm)
			})
			require.Len(t, names(t, filepath.Join(state, DirName)), workers)
		})
	}
}

func TestExpiryNeverLosesAFreshMarkerOfAnotherProcess(t *testing.T) {
	for how := range arm {
		t.Run(how, func(t *testing.T) {
			state := t.TempDir()
			children := make([]func(state, session, run string) error, workers)
			for i := range children {
				children[i] = startArming(t, how)
			}
			inParallel(t, processRaces, func(worker, round int) {
				session := fmt.Sprintf("s%d", worker)
				race(t, state, session, fmt.Sprintf("fresh-%d", round), children[worker])
			})
			require.Len(t, names(t, filepath.Join(state, DirName)), workers)
		})
	}
}

func inParallel(t *testing.T, races int, do func(worker, round int)) {
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for round := 0; round < races/workers && !t.Failed(); round++ {
				do(worker, round)
			}
		})
	}
	all.Wait()
	require.False(t, t.Failed())
}

func race(t *testing.T, state, session, run string, rearm func(state, session, run string) error) {
	path := Path(state, session)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(`{"runId":"old","startedAt":"2020-01-01T00:00:00Z"}`), 0o600)
	}
	old, readErr := Read(state, session)
	if err := errors.Join(err, readErr); err != nil || !old.Expired(now, ttl, time.Time{}) {
		t.Errorf("arm the old run: %v, %v", old, err)
		return
	}

	var all sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, 4)
	for i := range 2 {
		all.Go(func() {
			<-start
			spin(time.Duration(rand.IntN(100)) * time.Microsecond)
			_, errs[i] = Remove(state, old)
		})
	}
	all.Go(func() {
		<-start
		if rand.IntN(4) == 0 {
			time.Sleep(time.Duration(rand.Int64N(int64(2 * grace))))
		} else {
			spin(time.Duration(rand.IntN(200)) * time.Microsecond)
		}
		errs[2] = rearm(state, session, run)
	})
	all.Go(func() { // what a hook sees meanwhile is the old run, the fresh one, or none
		<-start
		for range 5 {
			m, err := Read(state, session)
			if err == nil && m.Run != "old" && m.Run != run {
				errs[3] = fmt.Errorf("read a run that never was: %q", m.Run)
			}
			if err != nil && !errors.Is(err, ErrNone) && !errors.Is(err, ErrUnreadable) {
				errs[3] = err
			}
		}
	})
	close(start)
	all.Wait()

	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if m, err := Read(state, session); err != nil || m.Run != run {
		t.Errorf("the fresh marker is lost: run %q, want %q: %v", m.Run, run, err)
	}
}

// spin waits for less than what a sleep can.
func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// startArming starts a process that arms sessions, and returns how to make it do so.
func startArming(t *testing.T, how string) func(state, session, run string) error {
	cmd := exec.Command(self(t))
	cmd.Env = childEnv(childVar + "=arm")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, cmd.Wait())
	})
	answers := bufio.NewScanner(out)
	return func(state, session, run string) error {
		if _, err := fmt.Fprintln(in, how, state, session, run); err != nil {
			return err
		}
		if !answers.Scan() {
			return errors.New("the second process gave no answer")
		}
		if text := answers.Text(); text != "<nil>" {
			return errors.New(text)
		}
		return nil
	}
}
