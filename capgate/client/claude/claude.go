// Package claude speaks Claude Code's hook protocol: one JSON object on stdin becomes a [client.Call], a
// [gates.Verdict] becomes stdout, stderr and an exit status.
//
// The fields and the effects of each answer were measured on Claude Code 2.1.332.
package claude

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/gates"
)

// Events of the client that capgate is installed for. PreToolUse is the one on which a verdict may block.
const (
	PreToolUse   = "PreToolUse"
	SessionStart = "SessionStart"
	SessionEnd   = "SessionEnd"
)

// Cleared is the cause of a session's end, and of the next one's start, where a person has cleared the conversation.
const Cleared = "clear"

// Client is Claude Code.
type Client struct{}

// Name implements [client.Client].
func (Client) Name() string { return client.Claude }

// Decode implements [client.Client]. It reads the named fields of a hook input in one pass and leaves tool_input as it
// came. Unknown fields are passed over, of repeated keys the last counts, and a field of another type than the client
// sends counts as empty. An event's name that is empty or of another type is that of no event we know. An event without
// a name counts as PreToolUse, the one event that capgate is registered for to judge. Unlike encoding/json it has no
// bound on nesting.
func (Client) Decode(payload []byte, env func(string) (string, bool)) (client.Call, error) {
	var c client.Call
	var timestamp, transcript bool
	err := client.Members(payload, func(key string, value []byte) {
		switch {
		case c.Field(key, value):
		case key == "timestamp":
			timestamp = true
		case key == "transcript_path":
			transcript = true
		case key == "hook_event_name":
			c.Event = client.Text(value)
			if c.Event == "" {
				c.Event = "(" + string(value[:min(len(value), 64)]) + ")" // no name, so not PreToolUse
			}
		case key == "permission_mode":
			c.Mode = client.Text(value)
		case key == "source" || key == "reason": // of SessionStart, of SessionEnd
			c.Cause = client.Text(value)
		}
	})
	if err != nil && !isWord(c.Event) {
		c.Event = "" // what was cut off or is no text names no other event
	}
	if timestamp && !transcript && c.UseID == "" { // of the two clients that send such payloads Claude Code does the opposite
		c.Speaks = client.Copilot
	}
	c.Silent = c.Event != "" && c.Event != PreToolUse
	c.Attended = presence(env)
	c.NoBackground, c.Teams = !Background(env), truthy(env, teams)
	if pid, ok := env("CLAUDE_PID"); ok {
		c.PID, _ = strconv.Atoi(pid) // in a hook of either form it is the client's own process
	}
	return c, err
}

// isWord reports whether the text can be the name of an event.
func isWord(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// Variables that the client reads as switches.
const (
	// NoBackground starts every agent in the foreground.
	NoBackground = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"
	// teams lets agents have names, under which they are known.
	teams = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"
)

// truthy reads a variable of the client as the client does (2.1.332, measured for both): in any case, with white space around it.
func truthy(lookup func(string) (string, bool), name string) bool {
	v, _ := lookup(name)
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// Background reports whether the session may start agents in the background. The client takes more words for a yes than our
// own switches do.
func Background(lookup func(string) (string, bool)) bool {
	return !truthy(lookup, NoBackground)
}

// presence reads the client's variable CLAUDE_CODE_SESSION_ATTENDED: "1" interactive, "0" headless, anything else
// unknown. The client does not document it, so it is a hint only.
//
// Under the Agent SDK it is 0 whether or not the host answers questions (canUseTool). A question then reaches the host, and
// where there is none the client denies by itself (0.3.332, measured): so it is not known that nobody can be asked.
func presence(lookup func(string) (string, bool)) gates.Presence {
	switch v, _ := lookup("CLAUDE_CODE_SESSION_ATTENDED"); v {
	case "1":
		return gates.Attended
	case "0":
		if entry, _ := lookup("CLAUDE_CODE_ENTRYPOINT"); entry == "sdk-ts" || entry == "sdk-py" {
			return gates.Unknown
		}
		return gates.Absent
	}
	return gates.Unknown
}

// Encode implements [client.Client] for a PreToolUse event. capgate never answers "allow", which would skip the user's own
// permission rules: a rewrite goes out without a decision.
func (Client) Encode(v gates.Verdict) client.Answer {
	switch v.Outcome {
	case gates.Deny:
		return client.Answer{Stderr: append([]byte(v.Reason), '\n'), Exit: client.ExitBlock}
	case gates.Ask:
		return client.Answer{Stdout: output(`"permissionDecision":"ask","permissionDecisionReason":`+client.Quote(v.Reason), v.Input)}
	case gates.Rewrite:
		return client.Answer{Stdout: output("", v.Input)}
	}
	return client.Answer{}
}

// output builds the object by hand so that the input keeps its bytes.
func output(decision string, input []byte) []byte {
	var b bytes.Buffer
	b.WriteString(`{"hookSpecificOutput":{"hookEventName":"PreToolUse"`)
	if decision != "" {
		b.WriteString("," + decision)
	}
	if input != nil {
		b.WriteString(`,"updatedInput":`)
		b.Write(input)
	}
	b.WriteString("}}\n")
	return b.Bytes()
}
