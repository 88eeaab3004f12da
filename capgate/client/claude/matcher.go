package claude

import (
	"slices"
	"strings"
)

// agentNames are names of one tool: the client compares each with a matcher.
var agentNames = []string{"Agent", "Task"}

// Matcher returns the matcher of a hook's group for tools, names and globs, and the one for every other tool. Whatever a
// tool is called, one of the two holds.
//
// A matcher with one character that means something in a regular expression is taken as an expression that may hold
// anywhere in the name (2.1.332, measured), so both are anchored.
func Matcher(tools []string) (these, others string) {
	var words []string
	for _, tool := range tools {
		if slices.Contains(agentNames, tool) {
			words = append(words, agentNames...)
			continue
		}
		words = append(words, strings.ReplaceAll(tool, "*", ".*"))
	}
	slices.Sort(words)
	list := strings.Join(slices.Compact(words), "|")
	return "^(?:" + list + ")$", "^(?!(?:" + list + ")$).*"
}

// Matched reads a matcher that [Matcher] gave for tools, and returns their names and globs. Of another one ok is false.
func Matched(matcher string) (tools []string, ok bool) {
	list, begins := strings.CutPrefix(matcher, "^(?:")
	list, ends := strings.CutSuffix(list, ")$")
	tools = strings.Split(strings.ReplaceAll(list, ".*", "*"), "|")
	if again, _ := Matcher(tools); !begins || !ends || again != matcher {
		return nil, false
	}
	return tools, true
}
