// Package client says how an agent client asks capgate about a tool call and how it is answered. Each client has a
// package of its own below this one; what they share is here.
package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/capgate/capgate/gates"
)

// Names of the clients, as --client and the decision log have them.
const (
	Claude = "claude" // Claude Code
	OMP    = "omp"    // Oh My Pi
	// Copilot CLI is none that capgate is installed for: it runs a project's entry of Claude Code's settings.
	Copilot = "copilot"
)

// Names are the clients that capgate is installed for.
var Names = []string{Claude, OMP}

// Title returns the name by which people know a client, or name itself where there is no such client.
func Title(name string) string {
	switch name {
	case Claude:
		return "Claude Code"
	case OMP:
		return "Oh My Pi"
	case Copilot:
		return "Copilot CLI"
	}
	return name
}

// Client is one agent client.
type Client interface {
	// Name is one of the names above.
	Name() string
	// Decode reads a payload; env reads the environment of the hook's process. On an error the call holds what came
	// before it.
	Decode(payload []byte, env func(name string) (value string, ok bool)) (Call, error)
	// Encode turns a verdict into the answer that the client honours.
	Encode(gates.Verdict) Answer
}

// Call is one call as a client announced it.
type Call struct {
	gates.Call
	Event string // the client's name for what it asks about; "" where it has one only
	Cause string // what made a session start or end, in the client's own word; "" for other events
	PID   int    // the client's process; 0 where it does not say
	// Parent is the session in which the subagent was started that makes the call, where its own is another; "" = none.
	Parent string
	// Speaks is the name of the client whose payload it is, where that is not the one that was asked to decode it; "" = it is.
	Speaks string
	// Silent says that it is an event on which nothing may be said.
	Silent bool
}

// Answer is what the hook's process says. Stdout is empty or one JSON object.
type Answer struct {
	Stdout []byte
	Stderr []byte
	Exit   int
}

// Exit statuses of a hook. Claude Code lets the call proceed at any other.
const (
	ExitPass  = 0 // no opinion, or what stdout says
	ExitBlock = 2 // the call is blocked, the model reads stderr
)

// ErrEmpty says that stdin held nothing but white space.
var ErrEmpty = errors.New("the payload is empty")

// Members calls visit for each member of a payload, as [gates.Members] does. A byte order mark is passed over.
func Members(payload []byte, visit func(key string, value []byte)) error {
	payload = bytes.TrimPrefix(payload, []byte("\ufeff"))
	if len(bytes.TrimLeft(payload, " \t\r\n")) == 0 {
		return ErrEmpty
	}
	return gates.Members(payload, visit)
}

// Field reads a member into the field of the call that every client calls by the same name, and reports whether it is
// one. A value of another type than text leaves the field empty.
func (c *Call) Field(key string, value []byte) bool {
	var field *string
	switch key {
	case "session_id":
		field = &c.Session
	case "tool_name":
		field = &c.Tool
	case "tool_use_id":
		c.UseID, _ = gates.Text(value) // two of them are never taken for one: it keeps its length
		return true
	case "agent_id":
		field = &c.AgentID
	case "agent_type":
		field = &c.AgentType
	case "cwd":
		field = &c.Dir
	case "tool_input":
		c.Input = value
		return true
	default:
		return false
	}
	*field = Text(value)
	return true
}

// maxText bounds a field, in bytes. No session, type, tool or directory has a name that long.
const maxText = 64 << 10

// Text decodes a field; one of another type than text is empty. Of a text that is longer than any such field only its length is
// left, so that no reason, log or path is made of it.
func Text(value []byte) string {
	if len(value) > maxText && value[0] == '"' {
		return fmt.Sprintf("(%d bytes)", len(value))
	}
	text, _ := gates.Text(value)
	return text
}

// Quote writes text as a JSON string.
func Quote(text string) string {
	q, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Sprintf("a string always marshals: %v", err))
	}
	return string(q)
}
