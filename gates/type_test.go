package gates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func agent(input string) Call { return Call{Tool: "Agent", Input: json.RawMessage(input)} }

const typeReason = `Delegation is only available for "joke-finder"/"joke-critic" in this session, not "%s" - do the task directly with your own tools instead of spawning another agent for it.`

var jokes = []string{"joke-finder", "joke-critic"}

// What a model wrote, and however many types an operator declared, leave room for the advice.
func TestALongTypeOrListDoesNotCutOffTheAdvice(t *testing.T) {
	long := strings.Repeat("x", 5000)
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("type-%03d", i))
	}
	for _, v := range []Verdict{
		Type(jokes)(agent(`{"subagent_type":"` + long + `"}`)), Type(many)(agent(`{}`)), Type(nil)(agent(`{"subagent_type":"` + long + `"}`)),
		Caller(jokes)(Call{AgentID: "a", AgentType: long}), Caller(many)(Call{AgentID: "a", AgentType: "x"}), CallerAdmitted(nil)(Call{AgentID: "a", AgentType: long}),
		Named()(Call{Teams: true, Tool: "Agent", Input: json.RawMessage(`{"name":"` + long + `"}`)}),
	} {
		require.Equal(t, Deny, v.Outcome)
		require.Less(t, len(v.Reason), 1500)
		require.NotContains(t, v.Reason, strings.Repeat("x", 81))
	}
	require.Contains(t, Type(many)(agent(`{}`)).Reason, `"type-000"/"type-001"/`)
	require.Contains(t, Type(many)(agent(`{}`)).Reason, `/410 more in this session`)
}

func TestTypeAllowsExactlyTheDeclaredTypes(t *testing.T) {
	for _, c := range []struct {
		name, tool, input string
		named             string // the type the reason names; "" = passes
	}{
		{"declared", "Agent", `{"subagent_type":"joke-finder"}`, ""},
		{"declared second", "Agent", `{"subagent_type":"joke-critic"}`, ""},
		{"by the old name of the tool", "Task", `{"subagent_type":"joke-finder"}`, ""},
		{"not declared", "Agent", `{"subagent_type":"general-purpose"}`, "general-purpose"},
		{"not declared, old name", "Task", `{"subagent_type":"general-purpose"}`, "general-purpose"},
		{"missing", "Agent", `{"prompt":"x"}`, "(unset)"},
		{"null", "Agent", `{"subagent_type":null}`, "(unset)"},
		{"empty", "Agent", `{"subagent_type":""}`, "(unset)"},
		{"a number", "Agent", `{"subagent_type":7}`, "(unset)"},
		{"a list", "Agent", `{"subagent_type":["joke-finder"]}`, "(unset)"},
		{"wrong case", "Agent", `{"subagent_type":"Joke-Finder"}`, "Joke-Finder"},
		{"trailing space", "Agent", `{"subagent_type":"joke-finder "}`, "joke-finder "},
		{"full-width letters", "Agent", `{"subagent_type":"ｊoke-finder"}`, "ｊoke-finder"},
		{"escaped, still the same", "Agent", `{"subagent_type":"joke\u002dfinder"}`, ""},
		{"fork", "Agent", `{"subagent_type":"fork"}`, "fork"},
		{"claude", "Agent", `{"subagent_type":"claude"}`, "claude"},
		{"a plugin's", "Agent", `{"subagent_type":"plugin:joke-finder"}`, "plugin:joke-finder"},
		{"the last of two counts", "Agent", `{"subagent_type":"joke-finder","subagent_type":"fork"}`, "fork"},
		{"another key's case is another key", "Agent", `{"Subagent_Type":"joke-finder"}`, "(unset)"},
		{"no input", "Agent", ``, "(unset)"},
		{"input is no object", "Agent", `["joke-finder"]`, "(unset)"},
		{"a workflow", "Workflow", `{"script":"agent('x')"}`, "workflow-subagent"},
		{"a tool that spawns nothing", "Read", `{"subagent_type":"fork"}`, ""},
		{"Oh My Pi, flat", "task", `{"agent":"joke-finder","task":"x"}`, ""},
		{"Oh My Pi, flat, not declared", "task", `{"agent":"task","task":"x"}`, "task"},
		{"Oh My Pi, batch", "task", `{"context":"c","tasks":[{"agent":"joke-finder"},{"agent":"joke-critic"}]}`, ""},
		{"Oh My Pi, one of a batch", "task", `{"tasks":[{"agent":"joke-finder"},{"agent":"scout"}]}`, "scout"},
		{"Oh My Pi, one of a batch without a type", "task", `{"tasks":[{"agent":"joke-finder"},{"task":"x"}]}`, "(unset)"},
		{"Oh My Pi, an empty batch", "task", `{"tasks":[]}`, "(unset)"},
		{"Oh My Pi, a batch that is no list", "task", `{"tasks":{"agent":"joke-finder"}}`, "(unset)"},
		{"Oh My Pi, a batch that is a text beside a declared type", "task", `{"agent":"joke-finder","tasks":"x"}`, "(unset)"},
		{"Oh My Pi, a batch nested deeper than encoding/json goes", "task",
			`{"agent":"joke-finder","tasks":[{"agent":"scout","q":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}]}`, "scout"},
		{"Oh My Pi, both forms at once", "task", `{"agent":"scout","tasks":[{"agent":"joke-finder"}]}`, "scout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, thread := range []string{"", "a17a27154ebb0dfe8"} { // from any thread
				v := Type(jokes)(Call{Tool: c.tool, Input: json.RawMessage(c.input), AgentID: thread, AgentType: "joke-finder"})
				if c.named == "" {
					require.Equal(t, Verdict{}, v)
					continue
				}
				require.Equal(t, Verdict{Outcome: Deny, Code: CodeType, Reason: fmt.Sprintf(typeReason, c.named)}, v)
			}
		})
	}
	t.Run("a declared plugin type", func(t *testing.T) {
		require.Equal(t, Pass, Type([]string{"plugin:name"})(agent(`{"subagent_type":"plugin:name"}`)).Outcome)
	})
	t.Run("a declared workflow", func(t *testing.T) {
		require.Equal(t, Pass, Type([]string{WorkflowType})(Call{Tool: "Workflow"}).Outcome)
	})
	t.Run("an empty list denies all", func(t *testing.T) {
		for _, input := range []string{`{}`, `{"subagent_type":""}`, `{"subagent_type":"joke-finder"}`} {
			require.Equal(t, Deny, Type(nil)(agent(input)).Outcome)
		}
	})
	t.Run("an empty name in the list allows nothing", func(t *testing.T) {
		require.Equal(t, Deny, Type([]string{""})(agent(`{"subagent_type":""}`)).Outcome)
	})
}
