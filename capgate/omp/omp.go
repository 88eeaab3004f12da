// Package omp speaks with Oh My Pi, which has no hooks but extensions: TypeScript in the client's own process. Ours,
// [Extension], sends each tool call to `capgate-hook --client omp` as one JSON object on stdin and gets one back on
// stdout, always with exit status 0; anything else makes it block the call.
//
// The question:
//
//	{"session_id":"…", "tool_name":"task", "tool_use_id":"…", "tool_input":{…}, "has_ui":true, "cwd":"/…",
//	 "agent_id":"…", "agent_type":"scout"}
//
// session_id is the main session's, in subagents, too, because that is what a run's marker names. agent_id is there
// exactly on calls made inside a subagent: its own session's id. agent_type is its type, where the client knows one.
//
// The answer:
//
//	{"outcome":"pass"}
//	{"outcome":"deny", "reason":"…", "id":"…"}
//	{"outcome":"ask", "title":"Spawn 2 subagents?", "message":"…"}
//
// All of it was measured on Oh My Pi 18.1.21.
package omp

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/capgate/capgate/gates"
)

// ErrEmpty says that stdin held nothing but white space.
var ErrEmpty = errors.New("the payload is empty")

// Decode reads a question in one pass over it and leaves tool_input as it came. Unknown fields are passed over, of
// repeated keys the last counts, and a field of another type than the extension sends counts as empty. There is no
// bound on nesting. A call without has_ui is of a session of which it is not known whether it has a UI.
//
// On an error the call holds what had been read before it.
func Decode(payload []byte) (call gates.Call, cwd string, err error) {
	payload = bytes.TrimPrefix(payload, []byte("\ufeff"))
	if len(bytes.TrimLeft(payload, " \t\r\n")) == 0 {
		return call, "", ErrEmpty
	}
	err = gates.Members(payload, func(key string, value []byte) {
		switch key {
		case "session_id":
			call.Session, _ = gates.Text(value)
		case "tool_name":
			call.Tool, _ = gates.Text(value)
		case "tool_use_id":
			call.UseID, _ = gates.Text(value)
		case "agent_id":
			call.AgentID, _ = gates.Text(value)
		case "agent_type":
			call.AgentType, _ = gates.Text(value)
		case "cwd":
			cwd, _ = gates.Text(value)
		case "has_ui":
			switch string(value) {
			case "true":
				call.Attended = gates.Attended
			case "false":
				call.Attended = gates.Absent
			default:
				call.Attended = gates.Unknown
			}
		case "tool_input":
			call.Input = value
		}
	})
	call.Dir = cwd
	return call, cwd, err
}

// Reasons of our own making.
const (
	// No gate wants another input for this client's tools. Should one, letting the call go as it is would not be what
	// the gate said.
	reasonRewrite = "capgate: this call may only be made with another input, and capgate cannot change one in Oh My Pi. Do not retry."
	// The extension takes a denial without a reason for no answer.
	reasonNone = "capgate: this call is denied."
)

// Encode turns a verdict into the answer, one line. Of the text of a question the first line is the dialog's title.
func Encode(v gates.Verdict) []byte {
	switch {
	case v.Outcome == gates.Pass:
		return []byte(`{"outcome":"pass"}` + "\n")
	case v.Outcome == gates.Rewrite, v.Outcome == gates.Ask && v.Input != nil:
		v = gates.Verdict{Outcome: gates.Deny, Reason: reasonRewrite}
	case v.Reason == "":
		v = gates.Verdict{Outcome: gates.Deny, Reason: reasonNone}
	}
	if v.Outcome == gates.Ask {
		title, message, _ := strings.Cut(v.Reason, "\n")
		return []byte(`{"outcome":"ask","title":` + quote(title) + `,"message":` + quote(message) + "}\n")
	}
	id := ""
	if found := decisionID(v.Reason); found != "" {
		id = `,"id":` + quote(found)
	}
	return []byte(`{"outcome":"deny","reason":` + quote(v.Reason) + id + "}\n")
}

// decisionID is the id at the end of a reason, as in "… [capgate 01JD…]", or "".
func decisionID(reason string) string {
	_, id, found := strings.Cut(reason[strings.LastIndex(reason, "[")+1:], "capgate ")
	if !found || !strings.HasSuffix(id, "]") {
		return ""
	}
	return strings.TrimSuffix(id, "]")
}

func quote(text string) string {
	q, err := json.Marshal(text)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(q)
}
