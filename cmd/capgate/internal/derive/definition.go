// Package derive makes a spec of agent definitions: it reads the definitions as the client does, and writes the spec's
// text.
package derive

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/capgate/capgate/cmd/capgate/internal/lazy"
	"github.com/capgate/capgate/gates"
)

// Definition is what a spec needs to know of one agent definition of Claude Code.
type Definition struct {
	File       string
	Name       string // the type; the file's name is of no matter
	Tools      []string
	Inherits   bool // every tool of the session
	Background bool // always started in the background
	Described  bool
}

var errNoFrontMatter = errors.New("it has no front matter: begin it with a line ---, the lines name and description, and a line ---")

const toolsFix = `write "tools: Read, Bash", a list of names, [] for none, or leave the key out to inherit all`

// Parse reads the front matter of an agent definition. Its errors say what to write.
func Parse(text []byte) (Definition, error) {
	block, err := frontMatter(text)
	if err != nil {
		return Definition{}, err
	}
	top, err := parseYAML(block)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{Inherits: true}
	seen := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i].Value, top.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if seen[key] {
			return Definition{}, fmt.Errorf("%q stands twice in its front matter: keep one", key)
		}
		seen[key] = true
		switch key {
		case "name":
			if !isText(value) {
				return Definition{}, fmt.Errorf(`its name is %s: write "name: TYPE", in quotes where it would be read as something else`, kindOf(value))
			}
			d.Name = value.Value
		case "description":
			d.Described = isText(value) && value.Value != ""
		case "background":
			d.Background = value.Kind == yaml.ScalarNode && strings.EqualFold(value.Value, "true")
		case "tools":
			if d.Tools, d.Inherits, err = parseTools(value); err != nil {
				return Definition{}, fmt.Errorf("its tools are %w: %s", err, toolsFix)
			}
		}
	}
	switch {
	case d.Name == "":
		return Definition{}, errors.New(`it has no name: add a line "name: TYPE" to its front matter, the file's own name does not count`)
	case strings.TrimSpace(d.Name) != d.Name, gates.Visible(d.Name) != d.Name:
		return Definition{}, fmt.Errorf("its name %q cannot be a type: write it without white space around it and without invisible characters", d.Name)
	}
	return d, nil
}

// frontMatter returns what stands between the first line, ---, and the next such line.
func frontMatter(text []byte) (string, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	fence := func(line string) bool { return strings.TrimRight(line, " \t") == "---" }
	if !fence(lines[0]) {
		return "", errNoFrontMatter
	}
	end := slices.IndexFunc(lines[1:], fence)
	if end < 0 {
		return "", errors.New("its front matter has no end: add a line --- after it")
	}
	return strings.Join(lines[1:1+end], "\n"), nil
}

// parseYAML returns the mapping that the front matter is. Where it is no YAML, its simple values are taken as text and
// it is read again, as the client does: descriptions often hold ": ".
func parseYAML(block string) (*yaml.Node, error) {
	var doc yaml.Node
	err := yaml.Unmarshal([]byte("\n"+block), &doc) // one more line, for the one with ---: errors name the file's lines
	if err != nil {
		doc = yaml.Node{}
		if yaml.Unmarshal([]byte("\n"+quoteValues(block)), &doc) != nil {
			return nil, fmt.Errorf("its front matter is no YAML: %s: put the value in quotes", strings.TrimPrefix(err.Error(), "yaml: "))
		}
	}
	switch {
	case len(doc.Content) == 0:
		return &yaml.Node{}, nil
	case doc.Content[0].Kind != yaml.MappingNode:
		return nil, fmt.Errorf("its front matter is %s: write lines such as \"name: TYPE\"", kindOf(doc.Content[0]))
	}
	return doc.Content[0], nil
}

// simpleValue is a line of the front matter with a key and a value that is not quoted, no list and no block of lines.
var simpleValue = lazy.Regexp(`(?m)^([A-Za-z][\w-]*):[ \t]+([^\s"'\[{|>].*?)[ \t]*$`)

func quoteValues(block string) string {
	return simpleValue().ReplaceAllStringFunc(block, func(line string) string {
		m := simpleValue().FindStringSubmatch(line)
		return m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
	})
}

func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!str" }

// kindOf tells a YAML value's kind.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "left empty"
	case n.Tag == "!!bool":
		return "true or false"
	case n.Tag == "!!int", n.Tag == "!!float":
		return "a number"
	}
	return "text"
}
