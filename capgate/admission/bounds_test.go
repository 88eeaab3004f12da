//go:build unix

package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is just within a bound is admitted, kept and read.
func TestWhatIsJustWithinABound(t *testing.T) {
	state := t.TempDir()
	const keptFor = 7 * 24 * time.Hour
	admit(t, state, "most uses", func(a *Admission) { a.Uses = MaxUses })
	admit(t, state, "longest", func(a *Admission) { a.Until = a.At.Add(MaxFor) })
	admit(t, state, "over for a week", func(a *Admission) { a.At, a.Until = now.Add(-keptFor-time.Minute), now.Add(-keptFor) })
	admit(t, state, "new")
	all, err := List(state)
	require.NoError(t, err)
	require.Len(t, all, 4)

	require.Equal(t, strings.Repeat("x", maxUseID), useKey(strings.Repeat("x", maxUseID)))
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", useKey(strings.Repeat("x", maxUseID+1)))

	path := filepath.Join(state, FileName)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	padded := func(size int) []byte { return append(text, strings.Repeat(" ", size-len(text))...) }
	require.NoError(t, os.WriteFile(path, padded(maxBytes), 0o600))
	_, err = List(state)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, padded(maxBytes+1), 0o600))
	_, err = List(state)
	require.ErrorIs(t, err, ErrCorrupt)

	long := func(size int) []Admission { return []Admission{{Reason: strings.Repeat("x", size)}} }
	require.NoError(t, store(path, long(0)))
	info, err := os.Stat(path)
	require.NoError(t, err)
	most := maxBytes - int(info.Size()) // with its line break
	require.NoError(t, store(path, long(most)))
	_, err = List(state)
	require.NoError(t, err)
	require.ErrorIs(t, store(path, long(most+1)), ErrInvalid)
}

// Times are stored in UTC and lists as lists, whoever reads the file.
func TestWhatTheStoreLooksLike(t *testing.T) {
	state := t.TempDir()
	admit(t, state, "A")
	path := filepath.Join(state, FileName)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `"spent": []`)
	require.NoError(t, Revoke(t.Context(), state, "a", now.In(time.FixedZone("elsewhere", 3600))))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `"revoked": "2026-03-01T12:00:00Z"`)

	admit(t, state, "B", func(a *Admission) { a.Spent = []Use{{At: now, Session: "s"}} })
	all, err := List(state)
	require.NoError(t, err)
	require.Len(t, all[1].Spent, 1)
}

// The first admission that lets a spawn through is charged, and the same call is answered with the same ids, in whatever order its
// types stand.
func TestWhichAdmissionsACallIsChargedTo(t *testing.T) {
	state := t.TempDir()
	ids, ok := Would(state, call("u"), now)
	require.False(t, ok)
	require.Empty(t, ids)
	admit(t, state, "A")
	admit(t, state, "B", func(a *Admission) { a.Type = "critic" })
	admit(t, state, "C")
	ids, ok = Would(state, call("u", "scout", "critic"), now)
	require.True(t, ok)
	require.Equal(t, []string{"A", "B"}, ids)
	for range 2 {
		got, ok := take(t, state, "u", "scout", "critic")
		require.True(t, ok)
		require.Equal(t, "A,B", got)
	}
	ids, ok = Would(state, call("u", "scout", "critic"), now)
	require.True(t, ok)
	require.Equal(t, []string{"A", "B"}, ids)
	_, ok = Would(state, Call{Session: "s-1", ToolUseID: "u"}, now)
	require.False(t, ok, "it starts nothing")
	require.NoError(t, os.WriteFile(filepath.Join(state, FileName), []byte("damaged"), 0o600))
	ids, ok = Would(state, call("u", "scout"), now)
	require.False(t, ok)
	require.Empty(t, ids)
}
