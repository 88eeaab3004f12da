package gates

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhereTeamsAreOnNoAgentGetsAName(t *testing.T) {
	for _, c := range []struct {
		name, tool, input string
		deny              bool
	}{
		{"a name", "Agent", `{"subagent_type":"joke-finder","name":"mate"}`, true},
		{"by the old name of the tool", "Task", `{"subagent_type":"joke-finder","name":"mate"}`, true},
		{"its own type as name", "Agent", `{"subagent_type":"joke-finder","name":"joke-finder"}`, true},
		{"white space", "Agent", `{"name":" "}`, true},
		{"no text", "Agent", `{"name":7}`, true},
		{"the last of two counts", "Agent", `{"name":"","name":"mate"}`, true},
		{"none", "Agent", `{"subagent_type":"joke-finder","description":"mate"}`, false},
		{"empty", "Agent", `{"name":""}`, false},
		{"null", "Agent", `{"name":null}`, false},
		{"no object", "Agent", `"name"`, false},
		{"another tool", "Workflow", `{"name":"mate"}`, false},
		{"Oh My Pi's, where names are usual", "task", `{"name":"mate","agent":"task"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := Call{Tool: c.tool, Input: json.RawMessage(c.input)}
			require.Equal(t, Verdict{}, Named()(call), "teams are off")
			call.Teams = true
			v := Named()(call)
			require.Equal(t, c.deny, v.Outcome == Deny)
			if c.deny {
				require.Equal(t, CodeNamedSpawn, v.Code)
				require.NotEmpty(t, v.Reason)
			}
		})
	}
}
