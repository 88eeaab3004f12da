package omp

import "github.com/capgate/capgate/gates"

// CountsAs returns the Claude Code tool that the call amounts to for the turn cap, "" where it is none of the capped
// ones: so one list of capped tools serves both clients.
func CountsAs(c gates.Call) string {
	switch {
	case c.Tool == "task":
		return "Agent"
	case c.Tool == "web_search":
		return "WebSearch"
	case Fetches(c):
		return "WebFetch"
	}
	return ""
}
