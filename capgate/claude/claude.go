// Package claude speaks Claude Code's hook protocol: one JSON object on stdin becomes a [gates.Call], a
// [gates.Verdict] becomes stdout, stderr and an exit status.
//
// The fields and the effects of each answer were measured on Claude Code 2.1.332.
package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode"

	"github.com/capgate/capgate/gates"
)

// PreToolUse is the one event on which a verdict may block.
const PreToolUse = "PreToolUse"

// ErrEmpty says that stdin held nothing but white space.
var ErrEmpty = errors.New("the payload is empty")

// Event is one hook input.
type Event struct {
	Name string // hook_event_name
	Call gates.Call
}

// Blocking reports whether a verdict on this event may exit non-zero. An event without a name counts as PreToolUse,
// the one event that capgate is registered for to judge.
func (e Event) Blocking() bool { return e.Name == "" || e.Name == PreToolUse }

// Decode reads the named fields of a hook input in one pass over it and leaves tool_input as it came. A byte order
// mark and unknown fields are passed over, of repeated keys the last counts, and a field of another type than the
// client sends counts as empty; the event's name, empty or of another type, is that of no event we know. Unlike
// encoding/json it has no bound on nesting.
//
// On an error the event holds what had been read before it.
func Decode(payload []byte) (Event, error) {
	var e Event
	payload = bytes.TrimPrefix(payload, []byte("\ufeff"))
	if len(bytes.TrimLeft(payload, " \t\r\n")) == 0 {
		return e, ErrEmpty
	}
	err := gates.Members(payload, func(key string, value []byte) {
		switch key {
		case "hook_event_name":
			e.Name, _ = gates.Text(value)
			if e.Name == "" {
				e.Name = "(" + string(value) + ")" // no name, so not PreToolUse
			}
		case "session_id":
			e.Call.Session, _ = gates.Text(value)
		case "tool_name":
			e.Call.Tool, _ = gates.Text(value)
		case "tool_use_id":
			e.Call.UseID, _ = gates.Text(value)
		case "agent_id":
			e.Call.AgentID, _ = gates.Text(value)
		case "agent_type":
			e.Call.AgentType, _ = gates.Text(value)
		case "permission_mode":
			e.Call.Mode, _ = gates.Text(value)
		case "cwd":
			e.Call.Dir, _ = gates.Text(value)
		case "tool_input":
			e.Call.Input = value
		}
	})
	if err != nil && !isWord(e.Name) {
		e.Name = "" // what was cut off or is no text names no other event
	}
	return e, err
}

// isWord reports whether the text can be the name of an event.
func isWord(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// Background reports whether the session may start agents in the background: not with
// CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1.
func Background(lookup func(string) (string, bool)) bool {
	v, _ := lookup("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
	return v != "1"
}

// Presence reads the client's variable CLAUDE_CODE_SESSION_ATTENDED: "1" interactive, "0" headless, anything else
// unknown. The client does not document it, so it is a hint only.
func Presence(lookup func(string) (string, bool)) gates.Presence {
	switch v, _ := lookup("CLAUDE_CODE_SESSION_ATTENDED"); v {
	case "1":
		return gates.Attended
	case "0":
		return gates.Absent
	}
	return gates.Unknown
}

// Exit statuses of a hook. Any other lets the call proceed.
const (
	ExitPass  = 0 // no opinion, or what stdout says
	ExitBlock = 2 // the call is blocked, the model reads stderr
)

// Answer is what the hook process says. Stdout is empty or one JSON object.
type Answer struct {
	Stdout []byte
	Stderr []byte
	Exit   int
}

// Encode turns a verdict on a PreToolUse event into the hook's answer. capgate never answers "allow", which would
// skip the user's own permission rules: a rewrite goes out without a decision.
func Encode(v gates.Verdict) Answer {
	switch v.Outcome {
	case gates.Deny:
		return Answer{Stderr: append([]byte(v.Reason), '\n'), Exit: ExitBlock}
	case gates.Ask:
		return Answer{Stdout: output(`"permissionDecision":"ask","permissionDecisionReason":`+quote(v.Reason), v.Input)}
	case gates.Rewrite:
		return Answer{Stdout: output("", v.Input)}
	}
	return Answer{}
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

func quote(text string) string {
	q, err := json.Marshal(text)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(q)
}
