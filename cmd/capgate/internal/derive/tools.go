package derive

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseTools reads the value of the key tools: text or a list of texts.
func parseTools(n *yaml.Node) (tools []string, all bool, err error) {
	texts := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		texts = n.Content
	}
	for _, t := range texts {
		if t.Kind == yaml.AliasNode {
			t = t.Alias
		}
		if !isText(t) {
			if n.Kind == yaml.SequenceNode {
				return nil, false, fmt.Errorf("a list with a value in it that is %s", kindOf(t))
			}
			return nil, false, errors.New(kindOf(t))
		}
		names, every, err := ToolNames(t.Value)
		if err != nil {
			return nil, false, err
		}
		all = all || every
		for _, name := range names {
			if !slices.Contains(tools, name) {
				tools = append(tools, name)
			}
		}
	}
	return tools, all, nil
}

// ToolNames reads a list of tools, separated by commas or white space: Bash(git:*) counts as Bash, the old name Task as
// Agent, and * as all. A name is listed once.
func ToolNames(text string) (names []string, all bool, err error) {
	depth := 0
	tokens := strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',', ' ', '\t', '\n', '\r':
			return depth == 0
		}
		return false
	})
	if depth != 0 {
		return nil, false, fmt.Errorf("%q, with a bracket too many", text)
	}
	for _, t := range tokens {
		name, _, _ := strings.Cut(t, "(")
		switch name {
		case "":
			return nil, false, fmt.Errorf("%q, with brackets that belong to no tool", text)
		case "*":
			all = true
			continue
		case "Task":
			name = "Agent"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, all, nil
}
