package hook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// A subagent that has a session of its own is in scope where the one is that has started it, unless it is armed itself.
func TestTheMarkerOfASubagentIsItsParents(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, scope.Write(state, scope.Marker{Session: "parent", Run: "r", StartedAt: time.Now()}))
	require.NoError(t, scope.Write(state, scope.Marker{Session: "armed", Run: "own", StartedAt: time.Now()}))
	for _, c := range []struct {
		session, parent, run string
		inherited            bool
	}{
		{"child", "parent", "r", true}, {"armed", "parent", "own", false}, {"child", "nobody", "", false}, {"child", "", "", false},
	} {
		f := Gather(t.Context(), capgate.Facts{
			Config: capgate.Config{DataDir: state}, Call: gates.Call{Session: c.session}, Parent: c.parent, Now: time.Now(),
		}, capgate.StageMarker)
		require.Equal(t, c.inherited, f.Inherited, "%+v", c)
		require.Equal(t, c.run, f.Marker.Run, "%+v", c)
		if c.run == "" {
			require.ErrorIs(t, f.MarkerErr, scope.ErrNone)
		} else {
			require.NoError(t, f.MarkerErr)
		}
	}
}
