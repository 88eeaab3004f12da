// Package copilot answers GitHub Copilot CLI where it runs an entry of Claude Code's settings: it does so for the
// .claude/settings.json of a trusted project, with Claude Code's payload and less of its meaning.
//
//   - A subagent's session_id is its own, as its agent_id is; parent_agent_id is the session that has started it.
//   - The spawn tool's hook name is Agent, and its input names the type by agent_type.
//   - There is no tool_use_id, no permission mode, and no word of whether a human can be asked: a question that reaches
//     nobody is a denial there.
//   - Exit status 2 blocks a call and loses the reason; a JSON denial on stdout keeps it.
//
// Payloads and answers were measured on Copilot CLI 1.0.102.
package copilot

import (
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/gates"
)

// Client is Copilot CLI.
type Client struct{}

// Name implements [client.Client].
func (Client) Name() string { return client.Copilot }

// Decode implements [client.Client]: a payload is Claude Code's with a parent.
func (Client) Decode(payload []byte, env func(string) (string, bool)) (client.Call, error) {
	c, err := claude.Client{}.Decode(payload, env)
	c.Parent = ""
	_ = client.Members(payload, func(key string, value []byte) {
		if key == "parent_agent_id" {
			c.Parent = client.Text(value)
		}
	})
	c.TypeMember = "agent_type"
	c.Attended, c.NoBackground, c.Teams, c.PID = gates.Unknown, false, false, 0 // what Claude Code's variables say is another client's
	return c, err
}

// reasonRewrite is said where a gate wants another input. None does for this client's tools.
const reasonRewrite = "capgate: this call may only be made with another input, and capgate cannot change one in Copilot CLI. Do not retry."

// Encode implements [client.Client].
func (Client) Encode(v gates.Verdict) client.Answer {
	decision := "deny"
	switch {
	case v.Outcome == gates.Pass:
		return client.Answer{}
	case v.Outcome == gates.Rewrite, v.Outcome == gates.Ask && v.Input != nil:
		v.Reason = reasonRewrite
	case v.Outcome == gates.Ask:
		decision = "ask"
	}
	return client.Answer{Stdout: []byte(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + decision +
		`","permissionDecisionReason":` + client.Quote(v.Reason) + "}}\n")}
}
