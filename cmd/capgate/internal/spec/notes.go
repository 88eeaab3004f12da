package spec

import (
	"fmt"
	"strings"

	"github.com/capgate/capgate/gates"
)

// builtIns are the types that Claude Code brings along.
var builtIns = []string{
	"general-purpose", "Explore", "Plan", "claude", "claude-code-guide", "statusline-setup", "fork", gates.WorkflowType,
}

// notes says what the spec's author may not have meant. background says that the environment lets the client start
// agents in the background.
func notes(s gates.Spec, background bool) []string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if len(s.Subagents) == 0 {
		note("no subagent is declared: every one is denied")
	}
	const set = "unless CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1 is in the env block of its settings"
	switch {
	case !background:
	case s.Foreground == gates.ForegroundRewrite:
		note(`foreground is "rewrite": an interactive session of Claude Code ignores that without a word and starts subagents in the background, %s`, set)
	case s.Foreground == gates.ForegroundRequire:
		note(`foreground is "require": in an interactive session of Claude Code every subagent is denied, %s`, set)
	}
	for i, sub := range s.Subagents {
		for _, b := range builtIns {
			switch {
			case sub.Type == b && !sub.Inherits:
				note("%s is a built-in of Claude Code and has that one's tools, not those listed here, unless a definition of yours takes its name", b)
			case sub.Type != b && strings.EqualFold(sub.Type, b):
				note("%s differs from the built-in %s in case only, which Claude Code ignores: rename it, or the built-in may start in its place", sub.Type, b)
			}
		}
		for _, other := range s.Subagents[:i] {
			if strings.EqualFold(sub.Type, other.Type) {
				note("%s and %s differ in case only, which Claude Code ignores: rename one", other.Type, sub.Type)
			}
		}
		for _, t := range sub.Tools {
			if name, _, pattern := strings.Cut(t, "("); pattern {
				note("%s lists %s: write %s, tools are listed by name", sub.Type, t, name)
			}
		}
	}
	return notes
}
