package omp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
)

func TestAFileToolThatIsGivenAURLFetches(t *testing.T) {
	deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	for input, want := range map[string]bool{
		`{"path":"https://example.com/x"}`:                          true,
		`{"path":"HTTP://EXAMPLE.COM"}`:                             true,
		`{"path":"https:/example.com/x"}`:                           true, // the client repairs it
		`{"path":"www.example.com"}`:                                true,
		`{"path":"\u0068ttps://example.com"}`:                       true,
		`{"path":" 'https://example.com:raw'"}`:                     true,
		`{"path":"src, https://example.com"}`:                       true,
		`{"path":"[\"src\",\"https://example.com\"]"}`:              true, // a list in a text
		`{"paths":["src","www.example.com"]}`:                       true,
		`{"paths":"src;www.example.com"}`:                           true,
		`{"path":"src","path":"www.example.com"}`:                   true,
		`{"path":"www.example.com","path":"src"}`:                   false, // the last one counts
		`{"paths":["https://example.com",` + deep + `]}`:            true,
		`{"paths":[` + deep + `,"www.example.com"]}`:                true,
		`{"paths":[` + strings.Repeat(" ", gates.MaxPaths) + `]}`:   true, // more than is looked at
		`{"paths":[` + strings.Repeat(" ", gates.MaxPaths-2) + `]}`: false,
		`{"paths":[[["www.example.com"]]]}`:                         true,
		`{"paths":[{"x":"www.example.com"}]}`:                       false,
		`{"path":"a/www.x"}`:                                        false,
		`{"path":"./http:/x"}`:                                      false,
		`{"path":"awww.x"}`:                                         false,
		`{"path":"src/main.go:1-20"}`:                               false,
		`{"path":"issue://7"}`:                                      false,
		`{"pattern":"https://example.com","path":"src"}`:            false, // is what is searched for
		`{"path":7}`:                           false,
		`{"path":{"x":"https://example.com"}}`: false,
		`{}`:                                   false,
		`"https://example.com"`:                false,
		`{"path":"https://`:                    false,
	} {
		for _, tool := range []string{"read", "grep", "ast_grep", "ast_edit"} {
			require.Equal(t, want, Fetches(gates.Call{Tool: tool, Input: json.RawMessage(input)}), "%s %s", tool, input)
		}
		require.False(t, Fetches(gates.Call{Tool: "write", Input: json.RawMessage(input)}))
	}
	require.False(t, Fetches(gates.Call{Tool: "read"}))
}

func TestWhatCallsCountAsForTheCap(t *testing.T) {
	for tool, want := range map[string]string{"task": "Agent", "web_search": "WebSearch", "read": "", "bash": "", "Task": ""} {
		require.Equal(t, want, CountsAs(gates.Call{Tool: tool, Input: json.RawMessage(`{"path":"a"}`)}), tool)
	}
	require.Equal(t, "WebFetch", CountsAs(gates.Call{Tool: "read", Input: json.RawMessage(`{"path":"https://example.com"}`)}))
}
