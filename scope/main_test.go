package scope

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ttl = 6 * time.Hour
)

// childVar selects what the test binary does when a test starts it as a second process.
const childVar = "SCOPE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "arm" {
		armOnRequest(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// armOnRequest arms a session for each line "<how> <state> <session> <run>", and answers each with one line.
func armOnRequest(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		err := errors.New("want 4 words")
		if len(f) == 4 {
			err = arm[f[0]](f[1], f[2], f[3])
		}
		fmt.Fprintln(out, err)
	}
}

// arm holds the ways in which a session is armed afresh.
var arm = map[string]func(state, session, run string) error{
	"Write": func(state, session, run string) error {
		return Write(state, Marker{Session: session, Run: run, StartedAt: now})
	},
	"in-place": func(state, session, run string) error {
		return os.WriteFile(Path(state, session), freshText(run), 0o600)
	},
}

func freshText(run string) []byte {
	return fmt.Appendf(nil, `{"runId":%q,"startedAt":%q}`, run, now.Format(time.RFC3339))
}

// put places content at the session's marker as a loop's own snippet would.
func put(t testing.TB, state, session, content string) string {
	t.Helper()
	path := Path(state, session)
	require.NotEmpty(t, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func setModTime(t testing.TB, path string, at time.Time) {
	t.Helper()
	require.NoError(t, os.Chtimes(path, at, at))
}

// putExpired arms a session and lets it expire.
func putExpired(t testing.TB, state, session string) Marker {
	t.Helper()
	setModTime(t, put(t, state, session, `{"runId":"old"}`), now.Add(-ttl-time.Second))
	m, err := Read(state, session)
	require.NoError(t, err)
	require.True(t, m.Expired(now, ttl, time.Time{}))
	return m
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// requireLine checks the form of an error: one line, lower case, naming what it is about.
func requireLine(t testing.TB, err error, about string) {
	t.Helper()
	require.Error(t, err)
	text := err.Error()
	require.NotContains(t, text, "\n")
	require.Equal(t, strings.ToLower(text[:1]), text[:1])
	require.False(t, strings.HasSuffix(text, "."), text)
	require.Contains(t, text, about)
}

// childEnv is the environment of a second process, which under the race detector need not linger for a second at exit.
func childEnv(more string) []string {
	return append(os.Environ(), "GORACE=atexit_sleep_ms=0", more)
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}
