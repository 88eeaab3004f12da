package scope

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoMarkerWhen(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.MkdirAll(filepath.Join(empty, DirName), 0o700))
	other := filepath.Join(dir, "other")
	put(t, other, "another", `{"runId":"r"}`)
	for name, state := range map[string]string{
		"no state directory": filepath.Join(dir, "none", "at", "all"),
		"no scope directory": dir,
		"empty directory":    empty,
		"another session's":  other,
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(state, "s")
			require.ErrorIs(t, err, ErrNone)
			require.NotErrorIs(t, err, ErrState)
			requireLine(t, err, DirName)
			require.Equal(t, Marker{Session: "s"}, m)

			closed, err := Close(state, "s")
			require.NoError(t, err)
			require.False(t, closed)

			removed, err := Remove(state, Marker{Session: "s", judged: file{size: 1}})
			require.NoError(t, err)
			require.False(t, removed)
		})
	}
}

// badStates returns state directories that cannot be used on any platform.
func badStates(t *testing.T) map[string]string {
	dir := t.TempDir()
	plain := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	occupied := filepath.Join(dir, "occupied")
	require.NoError(t, os.Mkdir(occupied, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(occupied, DirName), nil, 0o600))
	return map[string]string{
		"empty":                "",
		"relative":             "state",
		"dot":                  ".",
		"a file":               plain,
		"under a file":         filepath.Join(plain, "state"),
		"scope dir is a file":  occupied,
		"NUL":                  filepath.Join(dir, "a\x00b"),
		"longer than any path": filepath.Join(dir, strings.Repeat("a/", 4096)),
	}
}

func TestTheStateDirectoryCannotBeUsedWhen(t *testing.T) {
	for name, state := range badStates(t) {
		t.Run(name, func(t *testing.T) { requireErrState(t, state) })
	}
}

func requireErrState(t *testing.T, state string) {
	t.Helper()
	_, err := Read(state, "s")
	require.ErrorIs(t, err, ErrState)
	require.NotErrorIs(t, err, ErrNone)
	requireLine(t, err, "read marker")
	err = Write(state, Marker{Session: "s", Run: "r"})
	require.ErrorIs(t, err, ErrState)
	requireLine(t, err, "write marker")
	_, err = Close(state, "s")
	require.ErrorIs(t, err, ErrState)
	_, err = Remove(state, Marker{Session: "s", judged: file{size: 1}})
	require.ErrorIs(t, err, ErrState)
	_, err = List(state)
	require.ErrorIs(t, err, ErrState)
	_, err = Sweep(state, ttl, now, nil)
	require.ErrorIs(t, err, ErrState)
}

func TestSize(t *testing.T) {
	frame := len(`{"runId":"r","x":""}`)
	for name, c := range map[string]struct {
		size int
		ok   bool
	}{
		"64 KiB exactly": {64 << 10, true},
		"one byte more":  {64<<10 + 1, false},
		"a megabyte":     {1 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			path := put(t, state, "s", `{"runId":"r","x":"`+strings.Repeat("x", c.size-frame)+`"}`)
			setModTime(t, path, now)
			m, err := Read(state, "s")
			if c.ok {
				require.NoError(t, err)
				require.Equal(t, "r", m.Run)
				return
			}
			require.ErrorIs(t, err, ErrUnreadable)
			requireLine(t, err, path)
			requireUnreadable(t, m)
		})
	}
}

func TestAFileThatGrowsWhileItIsReadIsWholeOrUnreadable(t *testing.T) {
	state := t.TempDir()
	path := put(t, state, "s", `{"runId":"r"}`)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		for err == nil {
			select {
			case <-stop:
				stopped <- f.Close()
				return
			default:
				_, err = f.WriteString("   ")
			}
		}
		stopped <- err
	}()
	for range 200 {
		m, err := Read(state, "s")
		if err != nil {
			require.ErrorIs(t, err, ErrUnreadable)
			require.Empty(t, m.Run)
		} else {
			require.Equal(t, "r", m.Run)
		}
		require.False(t, m.ModTime.IsZero())
	}
	close(stop)
	require.NoError(t, <-stopped)
}

func TestAMarkerThatIsJustBeingWrittenIsWaitedFor(t *testing.T) {
	state := t.TempDir()
	path := put(t, state, "s", "")
	done := make(chan error, 1)
	go func() {
		time.Sleep(loadPause)
		done <- os.WriteFile(path, []byte(`{"runId":"r"}`), 0o600)
	}()
	for range 100 { // the first look may be late on a busy machine, never wrong
		if m, err := Read(state, "s"); err == nil {
			require.Equal(t, "r", m.Run)
			break
		}
	}
	require.NoError(t, <-done)
	m, err := Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "r", m.Run)
}

func TestReadingChangesNothing(t *testing.T) {
	for name, text := range map[string]string{"readable": `{"runId":"r"}`, "unreadable": `{`} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			path := put(t, state, "s", text)
			at := time.Date(2020, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
			setModTime(t, path, at)
			for range 3 {
				m, _ := Read(state, "s")
				require.True(t, m.ModTime.Equal(at))
				_, err := List(state)
				require.NoError(t, err)
			}
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.True(t, info.ModTime().Equal(at))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(got))
			require.Equal(t, []string{"s.json"}, names(t, filepath.Dir(path)))
		})
	}
}

func TestReadingNoMarkerTakesFewAllocations(t *testing.T) {
	state := t.TempDir()
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = Read(state, "s") }), 12.0)
}

func BenchmarkRead(b *testing.B) {
	for name, arm := range map[string]bool{"none": false, "armed": true} {
		b.Run(name, func(b *testing.B) {
			state := b.TempDir()
			require.NoError(b, Write(state, Marker{Session: "other", Run: "r"}))
			if arm {
				require.NoError(b, Write(state, Marker{Session: "s", Run: "r", StartedAt: now}))
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Read(state, "s")
			}
		})
	}
}
