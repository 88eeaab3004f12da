package live

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Programs are what the model says, by name. A user text that holds PROGRAM:name runs that program: step k answers the
// k-th assistant turn after it, and "DONE" each turn after the last step. Of several such texts the last one counts, so
// that a session can run one program after the other, and a subagent's prompt can name a program of its own.
type Programs map[string][]Step

// Step is one turn of the model: text, or tool calls, of which several are parallel ones.
type Step struct {
	Text  string
	Calls []Use
}

// Use is one tool call. The string "AGENT" as a value in the input becomes the id of the agent that was spawned last.
type Use struct {
	Tool  string
	Input any
	ID    string // that the model gives the call; "" = one that it has not given before
}

// Say is a step of text only.
func Say(text string) Step { return Step{Text: text} }

// Call is a step of one tool call.
func Call(tool string, input any) Step { return Step{Calls: []Use{{Tool: tool, Input: input}}} }

// Calls is a step of parallel tool calls.
func Calls(uses ...Use) Step { return Step{Calls: uses} }

// M is short for an input.
type M = map[string]any

var programName = regexp.MustCompile(`PROGRAM:([\w-]+)`)

// next finds the running program in a conversation, and the step that it is at.
func (p Programs) next(messages []message) (name string, turn int, step Step) {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role != "user" {
			if messages[i].Role == "assistant" {
				turn++
			}
			continue
		}
		found := programName.FindStringSubmatch(messages[i].text())
		if found == nil {
			continue
		}
		name = found[1]
		steps, known := p[name]
		switch {
		case !known:
			return name, turn, Say("no program " + name)
		case turn >= len(steps):
			return name, turn, Say("DONE")
		}
		return name, turn, steps[turn]
	}
	return "", 0, Say("OK")
}

// spawned finds the id that a client reports of an agent it has spawned: "agentId: x" in Claude Code, "Spawned agent
// `x`" in Oh My Pi.
var spawned = regexp.MustCompile("agentId: (\\w+)|Spawned agent `([\\w.-]+)`")

// withAgent replaces the string AGENT in an input.
func withAgent(input json.RawMessage, messages []message) json.RawMessage {
	if !strings.Contains(string(input), `"AGENT"`) {
		return input
	}
	for i := len(messages) - 1; i >= 0; i-- {
		all := spawned.FindAllStringSubmatch(messages[i].everything(), -1)
		if len(all) > 0 {
			last := all[len(all)-1]
			return json.RawMessage(strings.ReplaceAll(string(input), `"AGENT"`, `"`+last[1]+last[2]+`"`))
		}
	}
	return input
}
