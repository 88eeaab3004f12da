package loop

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/scope"
)

// Whoever ends a scope at the moment of a /clear ends it for the session that follows as well.
func TestASessionThatFollowsOneThatIsDisarmedIsNotArmed(t *testing.T) {
	for range 200 {
		state, now := t.TempDir(), time.Now()
		require.NoError(t, scope.Write(state, scope.Marker{Session: "old", Run: "r"}))
		require.NoError(t, scope.Leave(state, "old", os.Getpid(), now))
		var both sync.WaitGroup
		both.Go(func() { _ = scope.Follow(state, "new", os.Getpid(), now) })
		var err error
		both.Go(func() { _, err = Disarm(state, "old") })
		both.Wait()
		require.NoError(t, err)
		all, err := scope.List(state)
		require.NoError(t, err)
		require.Empty(t, all)
	}
}
