// Package settings edits a Claude Code settings file in place: what it does not mean to change keeps its bytes, be it key
// order, indentation, line ends or what another tool has written.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ErrSyntax is wrapped by errors about text that is not a settings file: they name line and column.
var ErrSyntax = errors.New("not valid JSON")

// Doc is a settings file's text being edited.
type Doc struct {
	root   hujson.Value
	bom    bool
	blank  bool // there was no text
	unit   string
	nl     string // "" where the whole file is one line
	edited bool
}

// Hook is one hook entry in exec form: the client runs Command with Args, without a shell.
type Hook struct {
	Type      string   `json:"type"`
	Command   string   `json:"command"`
	Args      []string `json:"args,omitzero"`       // nil = Command is a shell's; the client drops a whole file that has null here
	Timeout   int      `json:"timeout,omitempty"`   // seconds
	OnFailure string   `json:"onFailure,omitempty"` // "block" (Claude Code 2.1.295)

	// What an entry that was found in a file has beyond these: it is never written.
	Async bool     `json:"-"` // the client does not wait for it
	If    bool     `json:"-"` // it runs under a condition
	Odd   []string `json:"-"` // members of another name, or of a type that does not fit
}

const byteOrderMark = "\ufeff"

// Parse reads a settings file. Empty text is an empty object. Comments and trailing commas, which the client refuses, are
// errors here, too, and so is anything but an object.
func Parse(text []byte) (*Doc, error) {
	d := &Doc{unit: "  ", nl: "\n"}
	text, d.bom = bytes.CutPrefix(text, []byte(byteOrderMark))
	if len(bytes.TrimSpace(text)) == 0 {
		d.blank = true
		d.root = hujson.Value{Value: &hujson.Object{}}
		return d, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			line, column := position(text, int(syntax.Offset)-1)
			return nil, fmt.Errorf("%w: line %d, column %d: %w", ErrSyntax, line, column, err)
		}
		return nil, fmt.Errorf("%w: line 1, column 1: it is not an object", ErrSyntax)
	}
	if object == nil {
		return nil, fmt.Errorf("%w: line 1, column 1: it is null, not an object", ErrSyntax)
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	d.root = root
	d.detectStyle(text)
	return d, nil
}

// position returns the line and column, from 1, of the byte at an offset. Columns count bytes.
func position(text []byte, offset int) (line, column int) {
	before := text[:max(min(offset, len(text)), 0)]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// detectStyle takes the line end and the indentation from the first member that stands on a line of its own.
func (d *Doc) detectStyle(text []byte) {
	if !bytes.Contains(bytes.TrimSpace(text), []byte("\n")) {
		d.nl = ""
		if o := d.root.Value.(*hujson.Object); len(o.Members) == 0 {
			d.nl = "\n" // {} alone says nothing about style
		}
		return
	}
	if bytes.Contains(text, []byte("\r\n")) {
		d.nl = "\r\n"
	}
	for _, m := range d.root.Value.(*hujson.Object).Members {
		if _, indent, ok := strings.Cut(string(m.Name.BeforeExtra), "\n"); ok && strings.TrimLeft(indent, " \t") == "" && indent != "" {
			d.unit = indent
			return
		}
	}
}

// Bytes returns the text. Without an edit it is the text that was parsed.
func (d *Doc) Bytes() []byte {
	text := d.root.Pack()
	if d.blank {
		if !d.edited {
			return nil
		}
		text = append(text, '\n')
	}
	if d.bom {
		text = append([]byte(byteOrderMark), text...)
	}
	return text
}

// Empty reports whether the file holds an object without members.
func (d *Doc) Empty() bool { return len(d.root.Value.(*hujson.Object).Members) == 0 }

// Env returns the value of a variable in the env block and whether it is there as a text.
func (d *Doc) Env(name string) (string, bool) {
	env, ok := member(d.object(), "env").(*hujson.Object)
	if !ok {
		return "", false
	}
	value, ok := member(env, name).(hujson.Literal)
	if !ok || value.Kind() != '"' {
		return "", false
	}
	return value.String(), true
}

// SetEnv sets a variable in the env block.
func (d *Doc) SetEnv(name, value string) error {
	if have, ok := d.Env(name); ok && have == value {
		return nil
	}
	env, err := d.child(d.object(), "env", 1)
	if err != nil {
		return err
	}
	d.set(env, name, d.value(value, 2), 2)
	return nil
}

// UnsetEnv removes a variable from the env block, and the block when that was all it held.
func (d *Doc) UnsetEnv(name string) {
	env, ok := member(d.object(), "env").(*hujson.Object)
	if !ok || !d.remove(env, name) {
		return
	}
	if len(env.Members) == 0 {
		d.remove(d.object(), "env")
	}
}

// Flag returns whether a top-level member is true, as disableAllHooks may be.
func (d *Doc) Flag(name string) bool {
	value, ok := member(d.object(), name).(hujson.Literal)
	return ok && value.Bool()
}

// Hooks returns the entries of an event that ours accepts. Entries that differ in nothing but what the client does when they fail
// are one: each call is of one of them, by their matchers.
func (d *Doc) Hooks(event string, ours func(Hook) bool) []Hook {
	var found []Hook
	for _, g := range d.Groups(event, ours) {
		if !slices.ContainsFunc(found, func(h Hook) bool { return sameCommand(h, g.Hook) }) {
			found = append(found, g.Hook)
		}
	}
	return found
}

// sameCommand reports whether two entries run the same.
func sameCommand(a, b Hook) bool {
	return a.Command == b.Command && (a.Args == nil) == (b.Args == nil) && slices.Equal(a.Args, b.Args)
}

// Group is a hook entry with the matcher of the group that it stands in; "" = all tools.
type Group struct {
	Matcher string
	Hook    Hook
}

// SetHooks makes the groups all that an event has of ours, each with one entry. An older entry is updated where it stands, if
// its group has the same matcher; others of ours are removed.
func (d *Doc) SetHooks(event string, groups []Group, ours func(Hook) bool) error {
	var kept []place
	var missing []Group
	for _, g := range groups {
		at, ok := d.find(event, g.Matcher, kept, ours)
		if !ok {
			missing = append(missing, g)
			continue
		}
		kept = append(kept, at)
		if h, _ := entry(at.entries.Elements[at.i]); !equal(h, g.Hook) {
			at.entries.Elements[at.i].Value = d.value(g.Hook, 5).Value
			d.edited = true
		}
	}
	d.removeEntries(event, ours, kept)
	for _, g := range missing {
		hooks, err := d.child(d.object(), "hooks", 1)
		if err != nil {
			return err
		}
		list, err := d.list(hooks, event, 2)
		if err != nil {
			return err
		}
		d.push(list, d.value(struct {
			Matcher string `json:"matcher,omitempty"`
			Hooks   []Hook `json:"hooks"`
		}{g.Matcher, []Hook{g.Hook}}, 3), 3)
	}
	return nil
}

// place is where an entry stands.
type place struct {
	entries *hujson.Array
	i       int
}

// find returns the first entry of ours in a group with the matcher that is none of those that are taken.
func (d *Doc) find(event, matcher string, taken []place, ours func(Hook) bool) (found place, ok bool) {
	d.eachEntry(event, func(group *hujson.Object, in *hujson.Array, i int, h Hook) bool {
		at := place{in, i}
		if ours(h) && matcherOf(group) == matcher && !slices.Contains(taken, at) {
			found, ok = at, true
		}
		return ok
	})
	return found, ok
}

// RemoveHooks removes the entries of ours from every event, and what held nothing else.
func (d *Doc) RemoveHooks(ours func(Hook) bool) {
	hooks, ok := member(d.object(), "hooks").(*hujson.Object)
	if !ok {
		return
	}
	var events []string
	for _, m := range hooks.Members {
		events = append(events, name(m))
	}
	for _, event := range events {
		d.removeEntries(event, ours, nil)
	}
}

// removeEntries removes an event's entries of ours but those that are kept, and each container that this empties.
func (d *Doc) removeEntries(event string, ours func(Hook) bool, kept []place) {
	hooks, ok := member(d.object(), "hooks").(*hujson.Object)
	if !ok {
		return
	}
	groups, ok := member(hooks, event).(*hujson.Array)
	if !ok {
		return
	}
	removed := false
	for i := len(groups.Elements) - 1; i >= 0; i-- {
		group, _ := groups.Elements[i].Value.(*hujson.Object)
		entries, ok := member(group, "hooks").(*hujson.Array)
		if !ok {
			continue
		}
		before := len(entries.Elements)
		for j := before - 1; j >= 0; j-- {
			if h, ok := entry(entries.Elements[j]); ok && ours(h) && !slices.Contains(kept, place{entries, j}) {
				removeElement(entries, j)
			}
		}
		if len(entries.Elements) < before {
			removed, d.edited = true, true
			if len(entries.Elements) == 0 {
				removeElement(groups, i)
			}
		}
	}
	if removed && len(groups.Elements) == 0 {
		d.remove(hooks, event)
		if len(hooks.Members) == 0 {
			d.remove(d.object(), "hooks")
		}
	}
}

// eachEntry calls visit for each hook entry of an event until it returns true.
func (d *Doc) eachEntry(event string, visit func(group *hujson.Object, entries *hujson.Array, at int, h Hook) bool) {
	hooks, _ := member(d.object(), "hooks").(*hujson.Object)
	groups, ok := member(hooks, event).(*hujson.Array)
	if !ok {
		return
	}
	for i := range groups.Elements {
		group, _ := groups.Elements[i].Value.(*hujson.Object)
		entries, ok := member(group, "hooks").(*hujson.Array)
		if !ok {
			continue
		}
		for j := range entries.Elements {
			if h, ok := entry(entries.Elements[j]); ok && visit(group, entries, j, h) {
				return
			}
		}
	}
}

// Groups returns the entries of an event that ours accepts, with the matchers of their groups.
func (d *Doc) Groups(event string, ours func(Hook) bool) []Group {
	var found []Group
	d.eachEntry(event, func(group *hujson.Object, _ *hujson.Array, _ int, h Hook) bool {
		if ours(h) {
			found = append(found, Group{matcherOf(group), h})
		}
		return false
	})
	return found
}

// noTool is the matcher of a group whose matcher is no text: the client drops it.
const noTool = "^$"

// matcherOf returns a group's matcher, "" where it is missing, empty, a star or matches everything.
func matcherOf(group *hujson.Object) string {
	if len(group.Members) == 0 || member(group, "matcher") == nil {
		return ""
	}
	matcher, ok := member(group, "matcher").(hujson.Literal)
	switch {
	case !ok || matcher.Kind() != '"':
		return noTool
	case slices.Contains([]string{"*", ".*"}, matcher.String()):
		return ""
	}
	return matcher.String()
}

// entry reads a hook entry member by member: one that does not fit is noted, and hides nothing.
func entry(v hujson.Value) (h Hook, ok bool) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return h, false
	}
	for _, m := range o.Members {
		var into any
		switch name(m) {
		case "type":
			into = &h.Type
		case "command":
			into = &h.Command
		case "args":
			h.Args, into = nil, &h.Args
		case "timeout":
			into = &h.Timeout
		case "onFailure":
			into = &h.OnFailure
		case "async", "asyncRewake":
			on, ok := m.Value.Value.(hujson.Literal)
			h.Async = h.Async || !ok || on.Bool()
			h.Odd = append(h.Odd, name(m))
			continue
		case "if":
			h.If = true
		}
		if into == nil || json.Unmarshal(m.Value.Pack(), into) != nil {
			h.Odd = append(h.Odd, name(m))
		}
	}
	return h, h.Command != ""
}

// equal reports whether an entry is what would be written. Without args, the client runs the command in a shell.
func equal(have, want Hook) bool {
	return have.Type == want.Type && have.Command == want.Command && slices.Equal(have.Args, want.Args) &&
		(have.Args == nil) == (want.Args == nil) && have.Timeout == want.Timeout && have.OnFailure == want.OnFailure && len(have.Odd) == 0
}
