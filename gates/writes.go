package gates

import (
	"path/filepath"
	"strings"
)

// AnyPath is among the paths of [WritePaths] where the call names more of them, or longer ones, than are looked at: to look at
// all would outlast the deadline, and any file may be one of them. It is no file's name.
const AnyPath = "\x00"

// WritePaths returns the paths that a write tool's input names, each once, as it names them: relative ones and a leading ~
// stay. What Oh My Pi takes off a path before it uses it is off: "@", ":", "file://", quotes, and the brackets of "[PATH#tag]".
func WritePaths(c Call) []string {
	if !Writes(c.Tool) {
		return nil
	}
	in := fields(c.Input, "notebook_path", "file_path", "path", "paths", "rename", "edits", "input")
	var p pathSet
	switch {
	case c.Tool == "NotebookEdit":
		p.addTexts(in["notebook_path"], p.add)
	case !ompWrites(c.Tool):
		p.addTexts(in["file_path"], p.add)
	case c.Tool == toolASTEdit:
		p.addTexts(in["path"], p.addList)
		p.addTexts(in["paths"], p.addList)
		if len(p.paths) == 0 {
			p.add(".") // no path at all is the working directory
		}
	default:
		p.addTexts(in["path"], p.addWrapped)
		p.addTexts(in["paths"], p.addWrapped)
		if c.Tool == "edit" {
			p.addTexts(in["rename"], p.addWrapped)
			in.edits(func(edit object) {
				p.addTexts(edit["path"], p.addWrapped)
				p.addTexts(edit["rename"], p.addWrapped)
			}, "path", "rename")
			p.addPatch(in.text("input"))
		}
	}
	return p.paths
}

// pathSet collects paths, each once, until they are too many.
type pathSet struct {
	paths []string
	seen  map[string]bool
	bytes int
	any   bool // they are too many, and AnyPath is the last
}

// Bounds of the paths of one call, besides [MaxWrites].
const (
	maxSpelled = 1 << 20 // bytes of all of them
	// MaxPaths bounds a member that holds paths, in bytes as they stand in the input: an escape writes one as six.
	MaxPaths = 8 << 20
	maxWraps = 8 // times that something is taken off one
)

func (p *pathSet) add(path string) {
	if p.any || p.seen[path] {
		return
	}
	if p.bytes += len(path); len(p.paths) == MaxWrites || p.bytes > maxSpelled {
		p.addAny()
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[path] = true
	p.paths = append(p.paths, path)
}

func (p *pathSet) addAny() {
	if !p.any {
		p.any = true
		p.paths = append(p.paths, AnyPath)
	}
}

// addTexts gives add the texts of a member; empty ones are left out.
func (p *pathSet) addTexts(value []byte, add func(string)) {
	if len(value) > MaxPaths {
		p.addAny()
	}
	for text := range Strings(value) {
		if p.any {
			return
		}
		if text != "" {
			add(text)
		}
	}
}

// addList adds a path of ast_edit, and those that the client may find in it: one string may hold several, as a JSON list or
// with something between them.
func (p *pathSet) addList(name string) {
	p.addWrapped(name)
	p.addTexts([]byte(strings.TrimSpace(name)), p.addWrapped)
	if !strings.ContainsAny(name, listSeparators) {
		return
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune(listSeparators, r) }) {
		if p.any {
			return
		}
		p.addWrapped(part)
	}
}

const listSeparators = ",; \t\r\n"

// addPatch adds the paths in the text of a patch: the file lines of apply_patch, and the section headers and moves of hashline
// edits.
func (p *pathSet) addPatch(patch string) {
	for line := range strings.Lines(patch) {
		if p.any {
			return
		}
		line = strings.TrimSpace(line)
		if tagged(line) {
			p.addWrapped(line)
			continue
		}
		for _, before := range []string{"*** Update File:", "*** Add File:", "*** Delete File:", "*** Move to:", "MV "} {
			if path, ok := strings.CutPrefix(line, before); ok {
				if path = strings.Trim(path, " \t\"'"); path != "" {
					p.addWrapped(path)
				}
				break
			}
		}
	}
}

// tagged reports whether the text is [PATH#TAG].
func tagged(text string) bool {
	return strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && strings.LastIndexByte(text, '#') > 1
}

// addWrapped adds the path without what Oh My Pi takes off it. Where that may be part of the name as well, all that may be meant
// are added, and each is judged.
func (p *pathSet) addWrapped(path string) {
	if len(path) > maxSpelled {
		p.addAny()
		return
	}
	path = strings.TrimSpace(path)
	if len(path) > 1 && path[0] == '"' && path[len(path)-1] == '"' {
		path = path[1 : len(path)-1]
	}
	if tagged(path) {
		path = path[1:strings.LastIndexByte(path, '#')]
	}
	p.add(path)
	last := path
	for wraps := 0; ; wraps++ {
		bare := strings.Map(plainSpace, strings.TrimLeft(last, "@:"))
		if n := len("file://"); len(bare) > n && strings.EqualFold(bare[:n], "file://") {
			bare = percentDecoded(strings.TrimPrefix(bare[n:], "localhost"))
		}
		if bare == last || bare == "" {
			break
		}
		if wraps == maxWraps {
			p.addAny()
			return
		}
		p.add(bare)
		last = bare
	}
	if len(last) > 1 && last[0] == '~' && last[1] != '/' {
		p.add("~/" + last[1:]) // Oh My Pi knows no other users' homes
	}
}

// plainSpace maps the spaces that Oh My Pi takes for a plain one.
func plainSpace(r rune) rune {
	if r == '\u00a0' || '\u2000' <= r && r <= '\u200a' || r == '\u202f' || r == '\u205f' || r == '\u3000' {
		return ' '
	}
	return r
}

// percentDecoded decodes the %XX of a URL; what is none stays.
func percentDecoded(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		var b byte
		if text[i] == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
			b = hexValue(text[i+1])<<4 | hexValue(text[i+2])
			i += 2
		} else {
			b = text[i]
		}
		out = append(out, b)
	}
	return string(out)
}

// WriteRoot returns the directory or file below which a path of [WritePaths] lets its tool write, and whether that is
// more than the path itself: so it is for ast_edit, which takes directories, and for Oh My Pi's globs.
func WriteRoot(tool, path string) (root string, tree bool) {
	at := strings.IndexAny(path, "*?[{")
	if !ompWrites(tool) || at < 0 {
		return path, tool == toolASTEdit
	}
	fixed, glob := path[:at], path[at:]
	if strings.Contains(glob, "{/") || strings.Contains(glob, ",/") {
		return "/", true // alternatives may be absolute
	}
	slash := strings.LastIndexAny(fixed, `/`+string(filepath.Separator))
	root = fixed[:slash+1]
	if root == "" {
		root = "."
	}
	if up := strings.Count(glob, ".."); up > 0 {
		root = filepath.Join(root, strings.Repeat("../", up))
	}
	return root, true
}
