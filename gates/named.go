package gates

import "fmt"

// Named denies Agent and Task calls that give the agent a name, where agent teams are on (Call.Teams): the calls of such an
// agent carry its name as their type, so a model could name one after a type that is declared. It would also go to the
// background, whatever its call asks for.
func Named() Gate {
	return func(c Call) Verdict {
		if !c.Teams || c.Tool != toolAgent && c.Tool != toolTask {
			return Verdict{}
		}
		if v, long := tooLong(c); long {
			return v
		}
		name, given := fields(c.Input, "name")["name"]
		if !given || string(name) == "null" || string(name) == `""` {
			return Verdict{}
		}
		return Verdict{Outcome: Deny, Code: CodeNamedSpawn, Reason: fmt.Sprintf(
			`Agent teams are on in this session, where an agent that is given a name (%s) counts as one of that type. This is final for agents with a name: leave "name" out.`, shorten(string(name), maxName))}
	}
}
