package scope

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clearedState is a state directory in which session old is armed, and a client process, ours, that may leave it.
func clearedState(t *testing.T) (state string, pid int) {
	t.Helper()
	state = t.TempDir()
	require.NoError(t, Write(state, Marker{Session: "old", Run: "r", StartedAt: now, Anchor: &Anchor{Ledger: "l", Seq: 3, Hash: "h"}}))
	return state, os.Getpid()
}

func TestTheNewSessionTakesTheOldOnesPlace(t *testing.T) {
	state, pid := clearedState(t)
	require.NoError(t, Leave(state, "old", pid, now))
	for range 2 { // once for each copy that is installed
		require.NoError(t, Follow(state, "new", pid, now.Add(time.Second)))
	}
	m, err := Read(state, "new")
	require.NoError(t, err)
	require.Equal(t, "r", m.Run)
	require.Equal(t, "old", m.From)
	require.True(t, m.StartedAt.Equal(now), "its age goes on")
	require.Equal(t, &Anchor{Ledger: "l", Seq: 3, Hash: "h"}, m.Anchor)
	_, err = Read(state, "old")
	require.NoError(t, err, "calls that it made before may still come")
}

// Between the end of the old session and the start of the new one, calls carry an id that nobody knows yet.
func TestTheSessionThatWasLeftIsKnownUntilTheNextOneIs(t *testing.T) {
	state, pid := clearedState(t)
	left := func(session string, at time.Time) string {
		from, ok := Left(state, session, pid, at)
		require.Equal(t, ok, from != "")
		return from
	}
	require.Empty(t, left("new", now), "nothing was left")
	require.NoError(t, Leave(state, "old", pid, now))
	require.Equal(t, "old", left("new", now.Add(time.Minute)))
	require.Empty(t, left("new", now.Add(time.Minute+time.Nanosecond)), "it holds for a minute")
	require.Empty(t, left("new", now.Add(-time.Minute-time.Nanosecond)), "also on a clock that was set back")
	require.Empty(t, left("old", now), "no session follows itself")
	require.NoError(t, Follow(state, "new", pid, now))
	require.Empty(t, left("other", now), "the next one is known")
	removed, err := Close(state, "new")
	require.NoError(t, err)
	require.True(t, removed)
	require.Empty(t, left("new", now), "who disarms it disarms it")
	require.NoError(t, Follow(state, "new", pid, now))
	_, err = Read(state, "new")
	require.ErrorIs(t, err, ErrNone)
}

func TestAClearedConversationMayBeClearedAgain(t *testing.T) {
	state, pid := clearedState(t)
	for _, step := range [][2]string{{"old", "second"}, {"second", "third"}} {
		require.NoError(t, Leave(state, step[0], pid, now))
		require.NoError(t, Follow(state, step[1], pid, now))
		m, err := Read(state, step[1])
		require.NoError(t, err)
		require.Equal(t, step[0], m.From)
	}
	chain, err := Related(state, "second")
	require.NoError(t, err)
	require.Equal(t, []string{"old", "second", "third"}, chain)
}

func TestASessionThatIsNotArmedLeavesNothing(t *testing.T) {
	state, pid := clearedState(t)
	require.NoError(t, Leave(state, "another", pid, now))
	require.NoDirExists(t, filepath.Join(state, ClearedDir))
	require.NoError(t, Leave(state, "../x", pid, now))
	require.NoError(t, Follow(state, "new", pid, now))
	_, err := Read(state, "new")
	require.ErrorIs(t, err, ErrNone)
}

// Two clients that clear at the same moment do not mix up whose session is whose, and a process that has the number of an
// earlier one inherits nothing.
func TestEachProcessHasANoteOfItsOwn(t *testing.T) {
	state, pid := clearedState(t)
	require.NoError(t, Write(state, Marker{Session: "theirs", Run: "other"}))
	require.NoError(t, Leave(state, "old", pid, now))
	require.NoError(t, Leave(state, "theirs", 1, now))
	from, ok := Left(state, "new", pid, now)
	require.True(t, ok)
	require.Equal(t, "old", from)
	from, ok = Left(state, "new", 1, now)
	require.True(t, ok)
	require.Equal(t, "theirs", from)
	_, ok = Left(state, "new", 0, now)
	require.False(t, ok, "a client that does not say who it is")

	require.NoError(t, writeCleared(state, pid, cleared{Started: "another time", Session: "old", At: now}))
	_, ok = Left(state, "new", pid, now)
	require.Equal(t, processStarted(pid) == "", ok, "an earlier process of this number")
}

func TestANoteThatIsNoneIsNone(t *testing.T) {
	state, pid := clearedState(t)
	path := clearedPath(state, pid)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	for _, text := range []string{"", "null", "[]", `{"session":7}`, `{"session":"../x"}`, `{`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, ok := Left(state, "new", pid, now)
		require.False(t, ok, text)
		require.NoError(t, Follow(state, "new", pid, now))
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, ok := Left(state, "new", pid, now)
	require.False(t, ok)
}

// Closing one session of a conversation that was cleared closes it whole: who armed the first one disarms the last.
func TestRelatedSessions(t *testing.T) {
	state := t.TempDir()
	for session, from := range map[string]string{"a": "", "b": "a", "c": "b", "d": "a", "x": "", "y": "gone", "loop-1": "loop-2", "loop-2": "loop-1"} {
		require.NoError(t, Write(state, Marker{Session: session, Run: "r", From: from}))
	}
	for session, want := range map[string][]string{
		"a": {"a", "b", "c", "d"}, "b": {"a", "b", "c", "d"}, "d": {"a", "b", "c", "d"}, "x": {"x"}, "y": {"y"}, "none": {"none"},
		"loop-1": {"loop-1", "loop-2"}, "gone": {"gone", "y"},
	} {
		got, err := Related(state, session)
		require.NoError(t, err)
		require.Equal(t, want, got, session)
	}
}

// A note that nobody can look for is not left lying about.
func TestAClientWhoseProcessIsNotKnownLeavesNoNote(t *testing.T) {
	state := t.TempDir()
	now := time.Now()
	require.NoError(t, Write(state, Marker{Session: "old", Run: "r", StartedAt: now}))
	for _, pid := range []int{0, -5} {
		require.NoError(t, Leave(state, "old", pid, now))
	}
	require.NoDirExists(t, filepath.Join(state, ClearedDir))
}

// A subagent's session is held like the one that has started it, and is disarmed with it.
func TestASubagentInheritsTheScopeOfItsParent(t *testing.T) {
	state := t.TempDir()
	began := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	require.NoError(t, Write(state, Marker{Session: "parent", Run: "r", StartedAt: began}))
	require.NoError(t, Inherit(state, "child", "parent"))
	m, err := Read(state, "child")
	require.NoError(t, err)
	require.Equal(t, "r", m.Run)
	require.Equal(t, "parent", m.From)
	require.True(t, m.StartedAt.Equal(began), "its age goes on")
	require.NoError(t, Inherit(state, "grandchild", "child"))
	related, err := Related(state, "parent")
	require.NoError(t, err)
	require.Equal(t, []string{"child", "grandchild", "parent"}, related)

	require.NoError(t, Write(state, Marker{Session: "other", Run: "another", StartedAt: began}))
	require.NoError(t, Inherit(state, "child", "other"))
	m, err = Read(state, "child")
	require.NoError(t, err)
	require.Equal(t, "r", m.Run, "who is armed stays as he is")
	for _, c := range [][2]string{{"new", "nobody"}, {"../x", "parent"}, {"new", "../x"}, {"parent", "parent"}, {"new", ""}} {
		require.NoError(t, Inherit(state, c[0], c[1]))
	}
	_, err = Read(state, "new")
	require.ErrorIs(t, err, ErrNone)
}
