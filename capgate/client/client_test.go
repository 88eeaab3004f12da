package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
)

// Of a field that is longer than any of its kind only the length is left, which names nothing. Ids of calls stay whole: two are
// never taken for one.
func TestAFieldThatIsTooLongToBeOneIsItsLength(t *testing.T) {
	quoted := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, key := range []string{"session_id", "tool_name", "agent_id", "agent_type", "cwd"} {
		var c Call
		require.True(t, c.Field(key, quoted(maxText)))
		require.Len(t, c.Session+c.Tool+c.AgentID+c.AgentType+c.Dir, maxText-2)
		require.True(t, c.Field(key, quoted(maxText+1)))
		require.Equal(t, "(65537 bytes)", c.Session+c.Tool+c.AgentID+c.AgentType+c.Dir)
		require.True(t, c.Field(key, []byte(`[`+strings.Repeat(" ", maxText)+`]`)))
		require.Equal(t, Call{}, c, "no text")
	}
	var c Call
	require.True(t, c.Field("tool_use_id", quoted(maxText+1)))
	require.Len(t, c.UseID, maxText-1)
	require.True(t, c.Field("tool_input", quoted(maxText+1)))
	require.Len(t, c.Input, maxText+1)
	require.False(t, c.Field("other", nil))
	require.Equal(t, gates.Call{UseID: c.UseID, Input: c.Input}, c.Call)
}
