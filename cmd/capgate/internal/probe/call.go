package probe

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/capgate/capgate/cmd/capgate/internal/lazy"
	"github.com/capgate/capgate/gates"
)

// Words of the probe: each names what its hook answers to the command that holds it. They stand in the prompts, too.
const (
	wordExit2   = "exit2"   // blocked by exit status 2
	wordDeny    = "deny"    // blocked by a JSON deny
	wordRewrite = "rewrite" // goes on with another input
	wordPass    = "pass"    // goes on
	wordAsk     = "ask"     // a human is to be asked
	wordSpawn   = "spawn"   // the same, for a subagent of Oh My Pi
)

// rewritten is what the command with wordRewrite becomes.
const rewritten = "capgate-probe-rewritten"

// callsFile is the file, in the directory that the hook is given, that takes one line for each payload.
const callsFile = "calls.jsonl"

// call is a recorded call as the answers need it.
type call struct {
	Line     int // in callsFile, from 1
	Answered string

	Event     string          `json:"hook_event_name"` // PreToolUse, PostToolUse; Oh My Pi: "" and tool_result
	AgentID   string          `json:"agent_id"`
	AgentType string          `json:"agent_type"`
	Tool      string          `json:"tool_name"`
	UseID     string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"tool_input"`
	Response  json.RawMessage `json:"tool_response"`
	IsError   bool            `json:"is_error"` // of a tool_result

	Transcript string `json:"transcript_path"`
}

func (c call) before() bool { return c.Event == "PreToolUse" || c.Event == "" && c.Tool != "" }

func (c call) after() bool { return c.Event == "PostToolUse" || c.Event == "tool_result" }

func (c call) spawns() bool { return c.Tool == "Agent" || c.Tool == "Task" || c.Tool == "task" }

// word returns the word of one of the probe's own commands, "" for any other call. A command with several of them is none.
func (c call) word() string {
	switch {
	case c.Tool == "task" && strings.Contains(string(c.Input), "capgate-probe-"+wordSpawn):
		return wordSpawn
	case !gates.Shell(c.Tool):
		return ""
	}
	found := words().FindAllStringSubmatch(c.command(), -1)
	if len(found) != 1 || !strings.HasPrefix(strings.TrimSpace(c.command()), "echo ") {
		return ""
	}
	return found[0][1]
}

func (c call) command() string {
	var input struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(c.Input, &input)
	return input.Command
}

// planned returns the word for how the call is answered.
func (c call) planned(forOMP bool) string {
	if !c.before() {
		return ""
	}
	switch word := c.word(); {
	case word == wordDeny:
		return wordDeny
	case forOMP && word == wordSpawn:
		return wordAsk
	case !forOMP && (word == wordExit2 || word == wordRewrite || word == wordAsk):
		return word
	}
	return wordPass
}

// rewritten is the input with another command.
func (c call) rewritten() map[string]any {
	input := map[string]any{}
	_ = json.Unmarshal(c.Input, &input)
	input["command"] = "echo " + rewritten
	return input
}

// ours says that nothing but the probe's own words can be in the call's input and output.
func (c call) ours() bool {
	return c.word() != "" || gates.Shell(c.Tool) && strings.TrimSpace(c.command()) == "echo "+rewritten ||
		c.spawns() && bytes.Contains(c.Input, []byte("capgate-probe"))
}

// parseCall reads what it can of a payload.
func parseCall(payload []byte) (c call) {
	_ = json.Unmarshal(bytes.TrimPrefix(payload, []byte("\ufeff")), &c)
	return c
}

var words = lazy.Regexp(`\bcapgate-probe-([a-z0-9]+)\b`)
