package gates

import (
	"bytes"
	"slices"
)

// ForegroundMode says what becomes of a spawn that may go to the background, where its result is easily lost.
type ForegroundMode string

// The values of [ForegroundMode].
const (
	ForegroundRewrite ForegroundMode = "rewrite" // ask the client for the foreground
	ForegroundRequire ForegroundMode = "require" // the same, and deny where the client is known not to listen
	ForegroundOff     ForegroundMode = "off"
)

// backgroundKey is the input member that sends an agent to the background; Claude Code's default is true.
const backgroundKey = "run_in_background"

// Foreground moves Agent and Task calls of the allowed types to the foreground: where run_in_background is not exactly
// false, the input is rewritten in this one member, every other byte as it came.
//
// Interactive sessions of Claude Code ignore the member without a word, unless the session runs with
// CLAUDE_CODE_DISABLE_BACKGROUND_TASKS switched on (Call.NoBackground): there, ForegroundRequire denies.
func Foreground(allowed []string, mode ForegroundMode) Gate {
	return func(c Call) Verdict {
		if mode == ForegroundOff || c.TypeMember != "" || c.Tool != toolAgent && c.Tool != toolTask {
			return Verdict{}
		}
		if v, long := tooLong(c); long {
			return v
		}
		in := fields(c.Input, "subagent_type", backgroundKey)
		if t := in.text("subagent_type"); t == "" || !slices.Contains(allowed, t) {
			return Verdict{}
		}
		if mode == ForegroundRequire && c.ignoresForeground() {
			return Verdict{Outcome: Deny, Code: CodeForegroundRequired, Reason: "Subagents must run in the foreground here, and this interactive session would start them in the background, where results get lost. Do not retry: do the task directly, and tell the user to set CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1 in the env block of the client's settings."}
		}
		if string(in[backgroundKey]) == "false" {
			return Verdict{}
		}
		return Verdict{Outcome: Rewrite, Code: CodeForeground, Input: withMember(c.Input, backgroundKey, "false")}
	}
}

// ignoresForeground reports whether the client is known to start agents in the background, whatever their call says.
func (c Call) ignoresForeground() bool { return c.Attended == Attended && !c.NoBackground }

// Refused reports whether the mode denies every agent of a declared type in the session of the call. Oh My Pi has no
// foreground, and is not asked for it.
func (m ForegroundMode) Refused(c Call) bool {
	return m == ForegroundRequire && c.ignoresForeground() && c.Tool != toolOMPTask && c.Tool != toolOMPShell
}

// withMember returns the JSON object raw with the member set: in each place where it stands, else in front of the
// closing brace. Everything else keeps its bytes. raw must be an object.
func withMember(raw []byte, key, value string) []byte {
	var out bytes.Buffer
	copied, members := 0, 0
	_ = spans(raw, func(name []byte, start, end int) {
		members++
		if isNamed(name, key) {
			out.Write(raw[copied:start])
			out.WriteString(value)
			copied = end
		}
	})
	if copied > 0 {
		out.Write(raw[copied:])
		return out.Bytes()
	}
	end := bytes.LastIndexByte(raw, '}')
	out.Write(raw[:end])
	if members > 0 {
		out.WriteByte(',')
	}
	out.WriteString(`"` + key + `":` + value)
	out.Write(raw[end:])
	return out.Bytes()
}
