package capgate

import (
	"slices"
	"strings"

	"github.com/capgate/capgate/gates"
)

// Tools is a list of tools as a person writes it: names and globs with commas, | or white space between them, compared ignoring
// case. In a glob * stands for any characters: mcp__exa__* is every tool of that server, * every tool.
//
// What can be neither, as a name in quotes or a regular expression, is a slip: [Tools.Or] takes care that it caps no less than
// there was without it.
type Tools string

// entries are the list's parts.
func (t Tools) entries() []string {
	return strings.FieldsFunc(string(t), func(r rune) bool { return strings.ContainsRune(",| \t\r\n\v\f\u00a0\ufeff", r) })
}

// Names returns the entries that can be a tool's name or a glob, as they are written.
func (t Tools) Names() []string {
	return slices.DeleteFunc(t.entries(), func(e string) bool { return !isToolName(e) })
}

// Invalid returns the entries that can be no tool's name and no glob.
func (t Tools) Invalid() []string { return slices.DeleteFunc(t.entries(), isToolName) }

// isToolName reports whether every character can stand in a tool's name or is a star.
func isToolName(entry string) bool {
	return !strings.ContainsFunc(entry, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '*'
	})
}

// Match reports whether the list names the tool.
func (t Tools) Match(tool string) bool {
	tool = strings.ToLower(tool)
	return slices.ContainsFunc(t.Names(), func(name string) bool { return globMatches(strings.ToLower(name), tool) })
}

// JudgedTools returns the tools of Claude Code, names and globs, on which a hook with this configuration has a say; all says that
// it has one on every tool, because it judges what subagents do. So it is known which calls must not be made where the
// hook cannot run. Kill switches do not count: they come and go while the hook is installed.
//
// Writes are among them with the subagent gates alone. The cap without those leaves the main agent its shell, which
// writes as well; then a hook that cannot run costs the capped tools, and the result can still be written up.
func (c Config) JudgedTools() (tools []string, all bool) {
	if c.Declares() || gates.AdmissionMode(c.Admission) == gates.AdmissionDeny {
		return nil, true // of the calls that subagents make
	}
	if c.Enabled.On() {
		for _, name := range c.CapTools.Or(DefaultCapTools).Names() {
			tools = append(tools, asClientNames(name))
		}
	}
	if c.Admits() {
		tools = append(append(tools, gates.SpawnTools...), gates.WriteTools...)
	}
	return tools, slices.Contains(tools, "*")
}

// asClientNames returns the name of a tool as the client writes it, where that is known: the client's matchers know cases.
func asClientNames(name string) string {
	known := DefaultCapTools.Names()
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		return known[i]
	}
	return name
}

// Or returns the list that is in force where otherwise is the default: it itself, the default where it names nothing, and both
// where something in it can be no name.
func (t Tools) Or(otherwise Tools) Tools {
	switch {
	case len(t.Names()) == 0:
		return otherwise
	case len(t.Invalid()) > 0:
		return t + "," + otherwise
	}
	return t
}

// globMatches reports whether the pattern, in which * stands for any characters, is the whole of text.
func globMatches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// ToolsMeant says how an entry that can be no tool's name is to be written, as far as that can be told; "" where it cannot.
func ToolsMeant(entry string) string {
	entry, _, _ = strings.Cut(strings.ReplaceAll(entry, ".*", "*"), "(")
	return strings.Join(strings.FieldsFunc(entry, func(r rune) bool { return !isToolName(string(r)) }), ",")
}
