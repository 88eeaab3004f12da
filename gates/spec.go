package gates

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Spec declares the subagents of a session and how they are started:
//
//	{
//	  "subagents": {
//	    "joke-finder": {"tools": ["Bash", "Read"]},
//	    "joke-critic": {"tools": []}
//	  },
//	  "foreground": "rewrite",
//	  "admission": "off"
//	}
//
// "subagents" is required. A subagent without "tools" inherits every tool of the session. "foreground" is rewrite (the
// default), require or off; "admission" is off (the default), ask or deny. Unknown and repeated keys are errors: a
// mistyped key must not silently allow anything.
type Spec struct {
	Subagents  []Subagent // in the order of the file
	Foreground ForegroundMode
	Admission  AdmissionMode
}

// Subagent is one declared type.
type Subagent struct {
	Type     string
	Tools    []string
	Inherits bool // no "tools": every tool of the session
}

// ErrSpec is wrapped by every error of [ParseSpec].
var ErrSpec = errors.New("not a usable spec")

// ParseSpec reads a spec file's text. Its error names the key and what to write there.
func ParseSpec(text []byte) (Spec, error) {
	s := Spec{Foreground: ForegroundRewrite, Admission: AdmissionOff}
	var subagents []byte
	err := strictMembers(text, "", func(key string, value []byte) error {
		switch key {
		case "subagents":
			subagents = value
			return nil
		case "foreground":
			return oneOf(key, value, &s.Foreground, ForegroundRewrite, ForegroundRequire, ForegroundOff)
		case "admission":
			return oneOf(key, value, &s.Admission, AdmissionOff, AdmissionAsk, AdmissionDeny)
		}
		return fmt.Errorf("unknown key %q: keys are subagents, foreground and admission", key)
	})
	if err == nil && subagents == nil {
		err = errors.New(`no "subagents": add "subagents": {"TYPE": {"tools": ["Read"]}}`)
	}
	if err == nil {
		err = strictMembers(subagents, "subagents", func(key string, value []byte) error {
			a, err := parseSubagent(key, value)
			s.Subagents = append(s.Subagents, a)
			return err
		})
	}
	if err != nil {
		return Spec{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return s, nil
}

func parseSubagent(name string, value []byte) (Subagent, error) {
	a := Subagent{Type: name, Inherits: true}
	if name == "" || strings.TrimSpace(name) != name || Visible(name) != name {
		return a, fmt.Errorf("subagents: %q cannot be a type: write the name in the agent's definition, without white space around it", name)
	}
	where := fmt.Sprintf("subagents.%q", name)
	return a, strictMembers(value, where, func(key string, value []byte) error {
		if key != "tools" {
			return fmt.Errorf("%s: unknown key %q: the only key is tools", where, key)
		}
		a.Inherits = false
		if value[0] != '[' || json.Unmarshal(value, &a.Tools) != nil || slices.Contains(a.Tools, "") {
			return fmt.Errorf(`%s.tools must be a list of tool names, for instance ["Bash", "Read"], or left out to inherit all`, where)
		}
		return nil
	})
}

// strictMembers visits the members of an object in which no name may be repeated.
func strictMembers(text []byte, where string, visit func(key string, value []byte) error) error {
	var first error
	seen := map[string]bool{}
	err := Members(text, func(key string, value []byte) {
		switch {
		case first != nil:
		case seen[key]:
			first = fmt.Errorf("%skey %q stands twice: keep one", prefix(where), key)
		default:
			first = visit(key, value)
		}
		seen[key] = true
	})
	if err != nil {
		return fmt.Errorf("%s%w", prefix(where), err)
	}
	return first
}

func prefix(where string) string {
	if where == "" {
		return ""
	}
	return where + ": "
}

func oneOf[T ~string](key string, value []byte, to *T, options ...T) error {
	text, ok := Text(value)
	if !ok || !slices.Contains(options, T(text)) {
		words := make([]string, len(options))
		for i, o := range options {
			words[i] = `"` + string(o) + `"`
		}
		return fmt.Errorf("%s is %s: write %s", key, value, strings.Join(words, " or "))
	}
	*to = T(text)
	return nil
}

// Allowed returns the declared types.
func (s Spec) Allowed() []string {
	types := make([]string, len(s.Subagents))
	for i, a := range s.Subagents {
		types[i] = a.Type
	}
	return types
}

// SessionTools returns the tools that a session assembled by hand needs for the spec: Agent, and Bash only when some
// subagent lists it, with a rule of what it may run or without, or inherits everything.
func (s Spec) SessionTools() []string {
	tools := []string{toolAgent}
	for _, a := range s.Subagents {
		if a.Inherits || slices.ContainsFunc(a.Tools, func(t string) bool { return toolName(t) == "Bash" }) {
			return append(tools, "Bash")
		}
	}
	return tools
}

// toolName is the tool of an entry that may have a rule, as Bash(git:*).
func toolName(entry string) string {
	name, _, _ := strings.Cut(entry, "(")
	return strings.TrimSpace(name)
}

// Lacking returns, for each declared subagent that lists tools the session has not, those tools. It starts without them,
// unless it has none left: [Spec.Unstartable].
func (s Spec) Lacking(session []string) map[string][]string {
	lacking := map[string][]string{}
	for _, a := range s.Subagents {
		for _, t := range a.Tools {
			if !slices.Contains(session, toolName(t)) {
				lacking[a.Type] = append(lacking[a.Type], t)
			}
		}
	}
	return lacking
}

// Unstartable returns the declared subagents that list tools of which the session has none, in the order of the file. The
// client refuses to start those (Claude Code 2.1.332, measured).
func (s Spec) Unstartable(session []string) []string {
	var stuck []string
	lacking := s.Lacking(session)
	for _, a := range s.Subagents {
		if n := len(a.Tools); n > 0 && len(lacking[a.Type]) == n {
			stuck = append(stuck, a.Type)
		}
	}
	return stuck
}
