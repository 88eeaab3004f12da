package scope

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var badSessions = map[string]string{
	"empty":         "",
	"null":          "null",
	"undefined":     "undefined",
	"unknown":       "unknown",
	"dot":           ".",
	"dot dot":       "..",
	"leading dot":   ".s",
	"parent":        "../x",
	"slash":         "a/b",
	"absolute":      "/etc/passwd",
	"backslash":     `a\b`,
	"nul":           "a\x00b",
	"newline":       "a\n",
	"space":         "a b",
	"colon":         "a:b",
	"non-ascii":     "sitzung-ü",
	"not utf-8":     "a\xff",
	"129 bytes":     strings.Repeat("a", 129),
	"4 kB":          strings.Repeat("a", 4096),
	"temporary":     ".capgate-1-2.tmp",
	"percent":       "a%2fb",
	"full-width s":  "\uff53",
	"tilde":         "~",
	"wildcard":      "*",
	"delete":        "a\x7f",
	"trailing null": "null\x00",
}

var goodSessions = map[string]string{
	"uuid":             "3f0c8a52-9d1e-4b7a-8c11-0d5a6e7f9b21",
	"one byte":         "a",
	"128 bytes":        strings.Repeat("a", 128),
	"all characters":   "ABCxyz019._-",
	"dash first":       "-rf",
	"dots inside":      "a..b",
	"trailing dot":     "a.",
	"upper-case null":  "NULL",
	"mixed-case":       "Undefined",
	"longer than null": "nullable",
	"json":             "a.json",
}

func TestSessionIDs(t *testing.T) {
	for name, id := range goodSessions {
		t.Run("good "+name, func(t *testing.T) {
			require.True(t, ValidSession(id))
			require.Equal(t, filepath.Join("/state", DirName, id+".json"), filepath.ToSlash(Path("/state", id)))
			state := t.TempDir()
			require.NoError(t, Write(state, Marker{Session: id, Run: "r"}))
			m, err := Read(state, id)
			require.NoError(t, err)
			require.Equal(t, id, m.Session)
		})
	}
	for name, id := range badSessions {
		t.Run("bad "+name, func(t *testing.T) {
			require.False(t, ValidSession(id))
			require.Empty(t, Path("/state", id))
		})
	}
}

func TestABadSessionIDNeverTouchesTheDisk(t *testing.T) {
	for name, id := range badSessions {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			_, err := Read(state, id)
			require.ErrorIs(t, err, ErrSession)
			requireLine(t, err, "session")
			require.Less(t, len(err.Error()), 400)
			require.ErrorIs(t, Write(state, Marker{Session: id, Run: "r"}), ErrSession)
			_, err = Remove(state, Marker{Session: id})
			require.ErrorIs(t, err, ErrSession)
			_, err = Close(state, id)
			require.ErrorIs(t, err, ErrSession)
			require.NoDirExists(t, state)
		})
	}
}

// Row 5 stands before row 6.
func TestABadSessionIDIsReportedBeforeABadStateDirectory(t *testing.T) {
	_, err := Read("", "null")
	require.ErrorIs(t, err, ErrSession)
	require.NotErrorIs(t, err, ErrState)
}

func TestAMangledSessionIDNeverLeavesTheDirectory(t *testing.T) {
	id := []byte("a-B_9.z")
	for i := range id {
		for c := range 256 {
			mangled := append([]byte{}, id...)
			mangled[i] = byte(c)
			path := Path("/state", string(mangled))
			if path == "" {
				continue
			}
			require.Equal(t, filepath.Join("/state", DirName), filepath.ToSlash(filepath.Dir(path)))
			require.Equal(t, string(mangled)+".json", filepath.Base(path))
		}
	}
}

func TestTwoSessionsShareADirectory(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, Write(state, Marker{Session: "s1", Run: "r1"}))
	require.NoError(t, Write(state, Marker{Session: "s2", Run: "r2"}))
	closed, err := Close(state, "s1")
	require.NoError(t, err)
	require.True(t, closed)
	_, err = Read(state, "s1")
	require.ErrorIs(t, err, ErrNone)
	m, err := Read(state, "s2")
	require.NoError(t, err)
	require.Equal(t, "r2", m.Run)
	require.Equal(t, []string{"s2.json"}, names(t, filepath.Join(state, DirName)))
	_, err = os.Stat(state)
	require.NoError(t, err)
}
