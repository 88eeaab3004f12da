package gates_test

import (
	"encoding/json"
	"fmt"

	"github.com/capgate/capgate/gates"
)

// A session assembled by hand registers the four gates together. Each closes a way that the others leave open.
func Example() {
	allowed := []string{"joke-finder", "joke-critic"}
	all := map[string]gates.Gate{
		"Type":       gates.Type(allowed),
		"Caller":     gates.Caller(allowed),
		"Bash":       gates.Bash(),
		"Foreground": gates.Foreground(allowed, gates.ForegroundRewrite),
	}
	order := []string{"Type", "Caller", "Bash", "Foreground"}
	judge := func(c gates.Call, without string) string {
		for _, name := range order {
			if name == without {
				continue
			}
			if v := all[name](c); v.Outcome != gates.Pass {
				return fmt.Sprintf("%s (%s)", v.Outcome, name)
			}
		}
		return "pass"
	}
	for _, way := range []struct {
		without, what string
		call          gates.Call
	}{
		{"Type", "general-purpose is started", gates.Call{Tool: "Agent", Input: json.RawMessage(`{"subagent_type":"general-purpose"}`)}},
		{"Caller", "a forked skill's general-purpose agent reaches the shell", gates.Call{Tool: "Bash", AgentID: "a1", AgentType: "general-purpose"}},
		{"Bash", "the main agent reaches the shell", gates.Call{Tool: "Bash"}},
		{"Foreground", "a result gets lost in the background", gates.Call{Tool: "Agent", Input: json.RawMessage(`{"subagent_type":"joke-finder"}`)}},
	} {
		fmt.Printf("%s:\n  all four: %s\n  without %s: %s\n", way.what, judge(way.call, ""), way.without, judge(way.call, way.without))
	}
	// Output:
	// general-purpose is started:
	//   all four: deny (Type)
	//   without Type: pass
	// a forked skill's general-purpose agent reaches the shell:
	//   all four: deny (Caller)
	//   without Caller: pass
	// the main agent reaches the shell:
	//   all four: deny (Bash)
	//   without Bash: pass
	// a result gets lost in the background:
	//   all four: rewrite (Foreground)
	//   without Foreground: pass
}
