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
//	{"outcome":"ask", "title":"Approve subagent spawn?", "message":"…"}
//
// All of it was measured on Oh My Pi 18.1.21.
package omp

import (
	"strings"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/gates"
)

// Client is Oh My Pi. Its extension takes anything but an answer for a failure, so every verdict is on stdout.
type Client struct{}

// Name implements [client.Client].
func (Client) Name() string { return client.OMP }

// Decode implements [client.Client]. It reads a question in one pass and leaves tool_input as it came. Unknown fields are
// passed over, of repeated keys the last counts, and a field of another type than the extension sends counts as empty.
// There is no bound on nesting. Of a call without has_ui it is not known whether its session has a UI.
func (Client) Decode(payload []byte, _ func(string) (string, bool)) (client.Call, error) {
	c := client.Call{Call: gates.Call{Untyped: true}} // of a revived agent the client may not know the type
	err := client.Members(payload, func(key string, value []byte) {
		if c.Field(key, value) || key != "has_ui" {
			return
		}
		switch string(value) {
		case "true":
			c.Attended = gates.Attended
		case "false":
			c.Attended = gates.Absent
		default:
			c.Attended = gates.Unknown
		}
	})
	c.CountsAs = CountsAs(c.Call)
	return c, err
}

// Reasons of our own making.
const (
	// No gate wants another input for this client's tools. Should one, letting the call go as it is would not be what
	// the gate said.
	reasonRewrite = "capgate: this call may only be made with another input, and capgate cannot change one in Oh My Pi. Do not retry: go on without it, and tell the user."
	// The dialog's title of a question that is not about subagents.
	titleOther = "Approve this call?"
	// The extension takes a denial without a reason for no answer.
	reasonNone = "capgate: this call is denied. Do not retry: go on without it, and tell the user."
)

// Encode implements [client.Client].
func (Client) Encode(v gates.Verdict) client.Answer { return client.Answer{Stdout: Encode(v)} }

// Encode turns a verdict into the answer, one line.
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
		title, message := titleOther, v.Reason
		if v.Code == gates.CodeAdmissionAsk {
			title = gates.AdmissionTitle
		}
		return []byte(`{"outcome":"ask","title":` + client.Quote(title) + `,"message":` + client.Quote(message) + "}\n")
	}
	id := ""
	if found := decisionID(v.Reason); found != "" {
		id = `,"id":` + client.Quote(found)
	}
	return []byte(`{"outcome":"deny","reason":` + client.Quote(v.Reason) + id + "}\n")
}

// decisionID is the id at the end of a reason, as in "… [capgate 01JD…]", or "".
func decisionID(reason string) string {
	_, id, found := strings.Cut(reason[strings.LastIndex(reason, "[")+1:], "capgate ")
	if !found || !strings.HasSuffix(id, "]") {
		return ""
	}
	return strings.TrimSuffix(id, "]")
}
