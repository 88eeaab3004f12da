package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/capgate/capgate/gates"
)

// maxDefinition bounds an agent definition, in bytes.
const maxDefinition = 1 << 20

// definition is what a spec needs to know of one agent definition of Claude Code.
type definition struct {
	file       string
	name       string // the type; the file's name is of no matter
	tools      []string
	inherits   bool // every tool of the session
	background bool // always started in the background
	described  bool
}

// readDefinitions reads every *.md file below dir, as the client does: symlinks are followed, and a file or directory
// that is there under several names counts once. They are sorted by name. Errors name the file.
func readDefinitions(dir string) ([]definition, error) {
	w := definitionWalk{root: dir}
	if err := w.directory(dir); err != nil {
		return nil, err
	}
	if len(w.found) == 0 {
		return nil, fmt.Errorf("%s: no agent definition (*.md) is there: name the directory that holds them, such as .claude/agents", dir)
	}
	slices.SortFunc(w.found, func(a, b definition) int { return cmp.Compare(a.name, b.name) })
	for i, d := range w.found[1:] {
		if other := w.found[i]; other.name == d.name {
			first, second := min(other.file, d.file), max(other.file, d.file)
			return nil, fmt.Errorf("%s: its name %q is that of %s, too: rename or remove one", second, d.name, first)
		}
	}
	return w.found, nil
}

type definitionWalk struct {
	root  string
	seen  []fs.FileInfo
	found []definition
}

// again reports whether the file was met before, under whatever name, and remembers it.
func (w *definitionWalk) again(info fs.FileInfo) bool {
	if slices.ContainsFunc(w.seen, func(s fs.FileInfo) bool { return os.SameFile(s, info) }) {
		return true
	}
	w.seen = append(w.seen, info)
	return false
}

func (w *definitionWalk) directory(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && w.again(info) {
		return nil
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: name a directory that can be read", dir, pathless(err))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			err = w.directory(path)
		case !strings.HasSuffix(path, ".md"):
			continue
		case err != nil:
			err = fmt.Errorf("%s: %w: mend or remove it", path, pathless(err))
		case !w.again(info):
			err = w.file(path, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *definitionWalk) file(path string, info fs.FileInfo) error {
	text, err := readDefinition(path, info)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d, err := parseDefinition(text)
	if errors.Is(err, errNoFrontMatter) {
		err = fmt.Errorf("%w, or move it out of %s", err, w.root)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d.file = path
	w.found = append(w.found, d)
	return nil
}

func readDefinition(path string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() { // to open a FIFO would wait for its other end
		return nil, errors.New("it is no regular file: remove it")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: make it readable or move it elsewhere", pathless(err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxDefinition+1))
	switch {
	case err != nil:
		return nil, pathless(err)
	case len(text) > maxDefinition:
		return nil, fmt.Errorf("it is larger than %d bytes: shorten it or move it elsewhere", maxDefinition)
	}
	return text, nil
}

// pathless returns what went wrong without the path, which is in the caller's message.
func pathless(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

var errNoFrontMatter = errors.New("it has no front matter: begin it with a line ---, the lines name and description, and a line ---")

const toolsFix = `write "tools: Read, Bash", a list of names, [] for none, or leave the key out to inherit all`

// parseDefinition reads the front matter of an agent definition. Its errors say what to write.
func parseDefinition(text []byte) (definition, error) {
	block, err := frontMatter(text)
	if err != nil {
		return definition{}, err
	}
	top, err := parseYAML(block)
	if err != nil {
		return definition{}, err
	}
	d := definition{inherits: true}
	seen := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i].Value, top.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if seen[key] {
			return definition{}, fmt.Errorf("%q stands twice in its front matter: keep one", key)
		}
		seen[key] = true
		switch key {
		case "name":
			if !isText(value) {
				return definition{}, fmt.Errorf(`its name is %s: write "name: TYPE", in quotes where it would be read as something else`, kindOf(value))
			}
			d.name = value.Value
		case "description":
			d.described = isText(value) && value.Value != ""
		case "background":
			d.background = value.Kind == yaml.ScalarNode && strings.EqualFold(value.Value, "true")
		case "tools":
			if d.tools, d.inherits, err = parseTools(value); err != nil {
				return definition{}, fmt.Errorf("its tools are %w: %s", err, toolsFix)
			}
		}
	}
	switch {
	case d.name == "":
		return definition{}, errors.New(`it has no name: add a line "name: TYPE" to its front matter, the file's own name does not count`)
	case strings.TrimSpace(d.name) != d.name, gates.Visible(d.name) != d.name:
		return definition{}, fmt.Errorf("its name %q cannot be a type: write it without white space around it and without invisible characters", d.name)
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
var simpleValue = regexp.MustCompile(`(?m)^([A-Za-z][\w-]*):[ \t]+([^\s"'\[{|>].*?)[ \t]*$`)

func quoteValues(block string) string {
	return simpleValue.ReplaceAllStringFunc(block, func(line string) string {
		m := simpleValue.FindStringSubmatch(line)
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
		names, every, err := toolNames(t.Value)
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

// toolNames reads a list of tools, separated by commas or white space: Bash(git:*) counts as Bash, the old name Task as
// Agent, and * as all. A name is listed once.
func toolNames(text string) (names []string, all bool, err error) {
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
