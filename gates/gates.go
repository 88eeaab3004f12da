// Package gates judges single tool calls of a coding agent. A gate is a pure function of the call: it reads no file,
// no clock and no environment, so that each can be used alone by a program that assembles its own session.
package gates

import "encoding/json"

// Outcome is what becomes of a tool call. The order is the order of strength: where several gates judge one call,
// the greatest outcome wins.
type Outcome uint8

// The outcomes, weakest first.
const (
	Pass    Outcome = iota // no opinion: the client's own permission flow goes on
	Rewrite                // the call goes on with another input
	Ask                    // a human decides
	Deny                   // the call does not happen
)

// String returns the lower-case word that logs and documents use.
func (o Outcome) String() string {
	switch o {
	case Pass:
		return "pass"
	case Rewrite:
		return "rewrite"
	case Ask:
		return "ask"
	}
	return "deny"
}

// Presence says whether a human can answer a question in the session.
type Presence uint8

// The values of [Presence]. Unknown is not Absent: a client that does not tell may still have a dialog.
const (
	Unknown  Presence = iota // the client does not say
	Attended                 // interactive
	Absent                   // headless: nobody can answer
)

// Call is one tool call as the client announced it, before it happens.
type Call struct {
	Session   string          // the client's session id; "" when it gave none
	Tool      string          // the tool's name, exactly as sent
	Input     json.RawMessage // the tool's input as it came; nil when there was none
	UseID     string          // unique per call; the idempotency key of everything we count
	AgentID   string          // "" on the main thread, else the subagent that makes the call
	AgentType string          // the subagent's type; may be set on the main thread, too
	Mode      string          // the client's permission mode
	Dir       string          // the session's working directory
	CountsAs  string          // the Claude Code tool that another client's call amounts to for the cap; "" = none
	Attended  Presence        // whether a human can be asked

	// Untyped says that the client does not know the type of every subagent, as Oh My Pi does not of those that it revives:
	// then a call without one is no evidence of an undeclared type, and passes the gates that judge by type.
	Untyped bool

	// TypeMember is the member of a spawn's input that names the type, where it is not Claude Code's subagent_type. The input
	// of such a client knows no foreground, either.
	TypeMember string

	// Teams says that the client runs agent teams, in which an agent's name stands for its type.
	Teams bool

	// NoBackground says that the client starts every agent in the foreground, whatever the call asks for.
	NoBackground bool
}

// Verdict is a gate's answer to one call. The zero value passes.
type Verdict struct {
	Outcome Outcome
	Code    string          // stable name of the rule that held, for logs, documents and tests
	Reason  string          // for Deny and Ask: one to three sentences for the model or the human
	Input   json.RawMessage // for Rewrite, or with Ask: the whole new input; nil = unchanged
}

// Gate judges one call. It is a pure function: the same call gets the same verdict.
type Gate func(Call) Verdict

// Codes of the gates' verdicts, stable like the cap's.
const (
	CodeType               = "type"                // a type that is not in the list was to be spawned
	CodeSpawnTooLong       = "spawn-too-long"      // the input of a spawn is longer than is read
	CodeNamedSpawn         = "named-spawn"         // an agent was to get a name where names stand for types
	CodeCaller             = "caller"              // a subagent of a type that is not in the list made a call
	CodeCallerNotAdmitted  = "caller-not-admitted" // a subagent made a call whose type no operator has admitted
	CodeBash               = "bash"                // the main thread reached for a shell
	CodeForeground         = "foreground"          // a spawn was moved to the foreground
	CodeForegroundRequired = "foreground-required" // a spawn that would go to the background all the same
	CodeAdmissionAsk       = "admission-ask"       // a human decides
	CodeAdmissionDenied    = "admission-denied"    // spawning is switched off
	CodeAdmissionNoUI      = "admission-no-ui"     // a human should decide and none is there
	CodeGuardState         = "guard-state"         // a write into the state directory
	CodeGuardSpec          = "guard-spec"          // a write to the spec
	CodeGuardPath          = "guard-path"          // a write by a name that means another file in each process
	CodeGuardSettings      = "guard-settings"      // a write to what decides what bounds the session
	CodeGuardUnasked       = "guard-unasked"       // the same where nobody would be asked
)
