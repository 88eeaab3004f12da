package scope

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/disk"
)

func TestRemoveRemovesTheJudgedFile(t *testing.T) {
	for name, text := range map[string]string{"readable": `{"runId":"r"}`, "unreadable": `{`, "empty": ``} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			path := put(t, state, "s", text)
			m, _ := Read(state, "s")
			removed, err := Remove(state, m)
			require.NoError(t, err)
			require.True(t, removed)
			require.Empty(t, names(t, filepath.Dir(path)))

			removed, err = Remove(state, m)
			require.NoError(t, err)
			require.False(t, removed, "a second time")
		})
	}
}

func TestRemoveRefusesAMarkerThatWasNotRead(t *testing.T) {
	state := t.TempDir()
	path := put(t, state, "s", `{"runId":"r"}`)
	removed, err := Remove(state, Marker{Session: "s", Run: "r"})
	requireLine(t, err, path)
	require.False(t, removed)
	require.FileExists(t, path)
}

// rearms are the things that may have happened to the path since the marker was judged.
var rearms = map[string]func(t *testing.T, state, path string){
	"armed by Write": func(t *testing.T, state, path string) {
		require.NoError(t, Write(state, Marker{Session: "s", Run: "new"}))
	},
	"armed in place": func(t *testing.T, state, path string) {
		put(t, state, "s", `{"runId":"new"}`)
	},
	"armed in place with the same size and mtime": func(t *testing.T, state, path string) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		put(t, state, "s", `{"runId":"new"}`)
		setModTime(t, path, info.ModTime())
	},
	"touched": func(t *testing.T, state, path string) {
		setModTime(t, path, now)
	},
	"truncated": func(t *testing.T, state, path string) {
		require.NoError(t, os.Truncate(path, 0))
	},
	"replaced by a copy": func(t *testing.T, state, path string) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".new", append(content, ' '), 0o600))
		setModTime(t, path+".new", info.ModTime())
		require.NoError(t, os.Rename(path+".new", path))
	},
	"replaced by a directory": func(t *testing.T, state, path string) {
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Mkdir(path, 0o700))
	},
	"removed": func(t *testing.T, state, path string) {
		require.NoError(t, os.Remove(path))
	},
}

// judgedAndRearmed returns an expired marker in whose place rearm has put something else, and what that is.
func judgedAndRearmed(t *testing.T, rearm func(t *testing.T, state, path string)) (state string, m Marker, path, want string) {
	state = t.TempDir()
	m = putExpired(t, state, "s")
	path = Path(state, "s")
	rearm(t, state, path)
	return state, m, path, describe(path)
}

func TestRemoveLeavesWhatWasNotJudged(t *testing.T) {
	for name, rearm := range rearms {
		t.Run(name, func(t *testing.T) {
			state, m, path, want := judgedAndRearmed(t, rearm)

			removed, err := Remove(state, m)
			require.NoError(t, err)
			require.False(t, removed)
			require.Equal(t, want, describe(path))
		})
	}
}

// The same, but it happens between the second look and the rename.
func TestAMarkerThatWasTakenByMistakeIsPutBack(t *testing.T) {
	for name, rearm := range rearms {
		t.Run(name, func(t *testing.T) {
			_, m, path, want := judgedAndRearmed(t, rearm)
			tk := &taken{judged: m.judged, path: path, temp: disk.TempPath(filepath.Dir(path))}
			if err := os.Rename(path, tk.temp); err != nil {
				require.ErrorIs(t, err, os.ErrNotExist)
			}

			removed, err := tk.finish()
			require.NoError(t, err)
			require.False(t, removed)
			require.Equal(t, want, describe(path))
			require.LessOrEqual(t, len(names(t, filepath.Dir(path))), 1)
		})
	}
}

// describe returns what stands at path, to compare.
func describe(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	content, _ := os.ReadFile(path)
	return info.Mode().String() + info.ModTime().String() + string(content)
}

func TestAWriterThatHadTheMarkerOpenKeepsItsText(t *testing.T) {
	state := t.TempDir()
	m := putExpired(t, state, "s")
	f, err := os.OpenFile(Path(state, "s"), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	tk, err := take(state, m)
	require.NoError(t, err)
	require.NotNil(t, tk)
	_, err = Read(state, "s")
	require.ErrorIs(t, err, ErrNone)

	_, err = f.WriteString(`{"runId":"new"}`)
	require.NoError(t, err)
	removed, err := tk.finish()
	require.NoError(t, err)
	require.False(t, removed)
	got, err := Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "new", got.Run)
	require.Len(t, names(t, filepath.Join(state, DirName)), 1)

	// It still has the same file open.
	require.NoError(t, f.Truncate(0))
	_, err = f.WriteAt([]byte(`{"runId":"newer"}`), 0)
	require.NoError(t, err)
	got, err = Read(state, "s")
	require.NoError(t, err)
	require.Equal(t, "newer", got.Run)
}

func TestAnEvenNewerMarkerWins(t *testing.T) {
	for name, write := range map[string]bool{"over an expired one": false, "over one that was written to": true} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			m := putExpired(t, state, "s")
			tk, err := take(state, m)
			require.NoError(t, err)
			require.NotNil(t, tk)
			if write {
				require.NoError(t, os.WriteFile(tk.temp, []byte(`{"runId":"new"}`), 0o600))
			}
			require.NoError(t, Write(state, Marker{Session: "s", Run: "newest"}))

			removed, err := tk.finish()
			require.NoError(t, err)
			require.Equal(t, !write, removed)
			got, err := Read(state, "s")
			require.NoError(t, err)
			require.Equal(t, "newest", got.Run)
			require.Len(t, names(t, filepath.Join(state, DirName)), 1)
		})
	}
}

func TestClose(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, Write(state, Marker{Session: "s", Run: "r"}))
	closed, err := Close(state, "s")
	require.NoError(t, err)
	require.True(t, closed)
	closed, err = Close(state, "s")
	require.NoError(t, err)
	require.False(t, closed)

	put(t, state, "s", "{")
	closed, err = Close(state, "s")
	require.NoError(t, err)
	require.True(t, closed, "what cannot be read")
}
