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
		if v, long := tooLong(c); long && len(allowed) > 0 { // a shorter one would do no better
			return v
		}
		for _, s := range Spawns(c) {
			if s.Type != "" && slices.Contains(allowed, s.Type) {
				continue
			}
			if s.Type == "" {
				s.Type = unset
			}
			return Verdict{Outcome: Deny, Code: CodeType, Reason: delegationOnly(allowed, s.Type)}
		}
		return Verdict{}
	}
}

// delegationOnly is the reason for a type that is not allowed.
func delegationOnly(allowed []string, kind string) string {
	available := fmt.Sprintf(`only available for %s in this session, not "%s"`, quoted(allowed), shorten(kind, maxName))
	if len(allowed) == 0 {
		available = fmt.Sprintf(`not available in this session, neither for "%s" nor for any other type`, shorten(kind, maxName))
	}
	return "Delegation is " + available + " - do the task directly with your own tools instead of spawning another agent for it."
}

// maxQuoted bounds the types that a reason lists, in bytes, so that its advice is not cut off.
const maxQuoted = 1000

// quoted lists the types as the reasons do: "a"/"b".
func quoted(types []string) string {
	var q []string
	length := 0
	for i, t := range types {
		if length += len(t) + len(`""/`); length > maxQuoted {
			q = append(q, fmt.Sprintf("%d more", len(types)-i))
			break
		}
		q = append(q, `"`+t+`"`)
	}
	return strings.Join(q, "/")
}
