package gates

import (
	"fmt"
	"slices"
	"strings"
)

// Type lets a spawn tool start the allowed types only, from any thread. Names are compared exactly: the client ignores
// case, so General-Purpose would spawn general-purpose. A type that is missing, null, empty or no string is in no list.
func Type(allowed []string) Gate {
	return func(c Call) Verdict {
		if v, long := tooLong(c); long {
			return v
		}
		for _, s := range Spawns(c) {
			if s.Type != "" && slices.Contains(allowed, s.Type) {
				continue
			}
			if s.Type == "" {
				s.Type = unset
			}
			return Verdict{Outcome: Deny, Code: CodeType, Reason: fmt.Sprintf(
				`Delegation is only available for %s in this session, not "%s" - do the task directly with your own tools instead of spawning another agent for it.`,
				quoted(allowed), s.Type)}
		}
		return Verdict{}
	}
}

// quoted lists the types as the reasons do: "a"/"b".
func quoted(types []string) string {
	if len(types) == 0 {
		return "(none)"
	}
	q := make([]string, len(types))
	for i, t := range types {
		q[i] = `"` + t + `"`
	}
	return strings.Join(q, "/")
}
