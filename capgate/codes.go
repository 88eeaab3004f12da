package capgate

import "github.com/capgate/capgate/gates"

// Code documents a code that is not a row of [Table].
type Code struct {
	Code    string
	Outcome gates.Outcome
	Gate    string // the gate that gives it
	Rule    string // what holds then
	Change  string // what would change it
}

// Codes lists the codes of the gates, of what surrounds them and of faults, in the order in which reasons are shown.
var Codes = []Code{
	{CodeGatesUnparsable, gates.Deny, "payload", "the subagent gates are on and the payload is no call", "send one JSON object on stdin, or switch the gates off with CAPGATE_DISABLE_GATES=1"},
	{CodeSpecUnreadable, gates.Deny, "spec", "the spec is named but missing, unreadable or wrong: every spawn and every shell call are denied", "mend the file that the reason names (capgate spec check FILE)"},
	{CodeGatesOverdue, gates.Deny, "deadline", "a subagent was to be started, and the deadline passed before the gates had judged it", "give the hook more time with CAPGATE_DEADLINE_MS, or look for what is slow (capgate doctor)"},
	{gates.CodeSpawnTooLong, gates.Deny, "type", "the input of a call that starts subagents is longer than the gates read, 1 MiB; also said by foreground and admission", "write long material to a file and name it in the prompt"},
	{gates.CodeType, gates.Deny, "type", "a subagent of a type that is not declared was to be started", "declare the type in the spec or in CAPGATE_ALLOWED_SUBAGENTS"},
	{gates.CodeNamedSpawn, gates.Deny, "named", "agent teams are on (CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS), and the agent would get a name, which its calls carry as their type", "start the agent without a name, or take the variable out of the client's environment"},
	{gates.CodeCaller, gates.Deny, "caller", "a subagent of a type that is not declared made a call", "declare the type in the spec or in CAPGATE_ALLOWED_SUBAGENTS"},
	{gates.CodeCallerNotAdmitted, gates.Deny, "caller", "subagents are switched off without a list of types, and no admission that was used in this session, and not revoked, names the type of the one that made the call", "admit its start with capgate admit, or declare the type in a spec or in CAPGATE_ALLOWED_SUBAGENTS"},
	{gates.CodeBash, gates.Deny, "bash", "the main thread reached for a shell", "delegate to a declared subagent, or switch the gates off with CAPGATE_DISABLE_GATES=1"},
	{gates.CodeGuardState, gates.Deny, "guard", "a write tool would write into the state directory, the ledger or a program of ours, or it cannot be told in time where it writes", "write elsewhere; operators use the command line"},
	{gates.CodeGuardSpec, gates.Deny, "guard", "a write tool would write the spec", "let the operator change the spec"},
	{gates.CodeGuardPath, gates.Deny, "guard", "a write tool names a file by a name that means another one in each process, as /proc/self/cwd", "write to the file's own path"},
	{gates.CodeGuardUnasked, gates.Deny, "guard", "a write tool would change a client's settings or hook files, and nobody is asked: headless, bypassPermissions or dontAsk", "let the operator change it, or run the session interactively in another mode"},
	{gates.CodeGuardSettings, gates.Ask, "guard", "a write tool would change a client's settings or hook files", "answer the question"},
	{gates.CodeForegroundRequired, gates.Deny, "foreground", "the spec requires the foreground, and this interactive client would ignore that", "set CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1 in the client's env"},
	{gates.CodeForeground, gates.Rewrite, "foreground", "a subagent that might go to the background is started in the foreground", "set \"foreground\": \"off\" in the spec"},
	{gates.CodeAdmissionDenied, gates.Deny, "admission", "subagents are switched off", "set the admission to ask or off, or admit the spawn with capgate admit"},
	{gates.CodeAdmissionNoUI, gates.Deny, "admission", "a human decides about subagents, and nobody can be asked", "admit the spawn beforehand with capgate admit, or run the session interactively"},
	{gates.CodeAdmissionAsk, gates.Ask, "admission", "a human decides about subagents", "answer the question, or admit the spawn beforehand with capgate admit"},
	{CodeAdmitted, gates.Pass, "admission", "an operator had admitted the spawn beforehand", "capgate admit revoke ID"},
	{CodeAdmit, gates.Pass, "admission", "an operator admitted spawns beforehand (capgate admit); nothing was judged", "capgate admit revoke ID"},
	{CodeAdmitRevoked, gates.Pass, "admission", "an operator revoked an admission (capgate admit revoke); nothing was judged", "admit again"},
	{CodeOff, gates.Pass, "", "an operator switched the hook off (capgate off); nothing was judged", "capgate on"},
	{CodeOn, gates.Pass, "", "an operator ended an off (capgate on); nothing was judged", "capgate off"},
	{CodeHalt, gates.Pass, "", "an operator stopped every call (capgate halt); nothing was judged", "capgate halt --lift"},
	{CodeHaltLifted, gates.Pass, "", "an operator ended a halt (capgate halt --lift); nothing was judged", "capgate halt"},
	{CodePanic, gates.Deny, "", "a fault of capgate itself", "report it, with the output of capgate version"},
}

// Codes of the log's lines about what an operator said, which the command line writes.
const (
	CodeAdmit        = "admit"
	CodeAdmitRevoked = "admit-revoked"
	CodeOff          = "off"
	CodeOn           = "on"
	CodeHalt         = "halt"
	CodeHaltLifted   = "halt-lifted"
)

// CodePanic is the code of a deny whose reason is a fault of our own.
const CodePanic = "panic"

// CodeMeaning returns why the code's verdict is what it is and what would change it; empty for an unknown code.
func CodeMeaning(code string) (why, change string) {
	for _, r := range Table {
		if r.Code == code {
			return r.Why, r.Change
		}
	}
	for _, c := range Codes {
		if c.Code == code {
			return c.Rule, c.Change
		}
	}
	return "", ""
}
