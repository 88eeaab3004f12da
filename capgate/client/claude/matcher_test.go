package claude

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each tool is of one of the two matchers, whatever its name.
func TestMatcherIsForTheToolsAndForTheOthers(t *testing.T) {
	for _, c := range []struct {
		tools        []string
		these, other string
		read         []string
	}{
		{[]string{"WebSearch"}, "^(?:WebSearch)$", "^(?!(?:WebSearch)$).*", []string{"WebSearch"}},
		{[]string{"b", "a", "b"}, "^(?:a|b)$", "^(?!(?:a|b)$).*", []string{"a", "b"}},
		{[]string{"Task"}, "^(?:Agent|Task)$", "^(?!(?:Agent|Task)$).*", []string{"Agent", "Task"}},
		{[]string{"Agent", "mcp__exa__*", "a-b"}, "^(?:Agent|Task|a-b|mcp__exa__.*)$", "^(?!(?:Agent|Task|a-b|mcp__exa__.*)$).*", []string{"Agent", "Task", "a-b", "mcp__exa__*"}},
	} {
		these, other := Matcher(c.tools)
		require.Equal(t, [2]string{c.these, c.other}, [2]string{these, other})
		read, ok := Matched(these)
		require.True(t, ok)
		require.Equal(t, c.read, read)
		_, ok = Matched(other)
		require.False(t, ok)
	}
	for _, other := range []string{"", "*", "Bash", "^(?:b|a)$", "^(?:a)", "(?:a)$", "^(?:Agent)$"} {
		_, ok := Matched(other)
		require.False(t, ok, other)
	}
}
