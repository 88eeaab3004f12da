package gates

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// WritePaths returns the paths that a write tool's input names, as it names them: relative ones and a leading ~ stay.
// What Oh My Pi takes off a path before it uses it is off: "@", ":", "file://", quotes, and the brackets of "[PATH#tag]".
func WritePaths(c Call) []string {
	in := fields(c.Input, "notebook_path", "file_path", "path", "paths", "rename", "edits", "input")
	switch {
	case !Writes(c.Tool):
		return nil
	case c.Tool == "NotebookEdit":
		return in.texts("notebook_path")
	case !ompWrites(c.Tool):
		return in.texts("file_path")
	}
	named := slices.Concat(in.texts("path"), in.texts("paths"))
	if c.Tool == "edit" {
		named = append(named, in.texts("rename")...)
		for _, e := range in.edits("path", "rename") {
			named = append(append(named, e.texts("path")...), e.texts("rename")...)
		}
		named = append(named, patchPaths(in.text("input"))...)
	}
	if c.Tool == toolASTEdit {
		named = lists(named)
	}
	var paths []string
	for _, name := range named {
		paths = append(paths, unwrapped(name)...)
	}
	return paths
}

// WriteTexts returns what a write tool's input puts into its files: whole contents, replacements, and patches.
func WriteTexts(c Call) []string {
	if !Writes(c.Tool) {
		return nil
	}
	in := fields(c.Input, "content", "new_string", "new_text", "input", "edits")
	texts := slices.Concat(in.texts("content"), in.texts("new_string"), in.texts("new_text"), in.texts("input"))
	for _, e := range in.edits("new_string", "new_text", "diff") {
		for _, key := range []string{"new_string", "new_text", "diff"} {
			texts = append(texts, e.texts(key)...)
		}
	}
	return texts
}

// lists adds to the paths of ast_edit those that the client may find in them: one string may hold several, as a JSON list
// or with something between them. No path at all is the working directory.
func lists(named []string) []string {
	all := slices.Clone(named)
	for _, name := range named {
		all = append(all, object{"": []byte(strings.TrimSpace(name))}.texts("")...)
		if strings.ContainsAny(name, ",; \t\r\n") {
			all = append(all, strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) })...)
		}
	}
	if len(all) == 0 {
		return []string{"."}
	}
	return all
}

// patchPaths returns the paths in the text of a patch: the file lines of apply_patch, and the section headers and moves
// of hashline edits.
func patchPaths(patch string) []string {
	var paths []string
	for line := range strings.Lines(patch) {
		line = strings.TrimSpace(line)
		if tagged(line) {
			paths = append(paths, line)
			continue
		}
		for _, before := range []string{"*** Update File:", "*** Add File:", "*** Delete File:", "*** Move to:", "MV "} {
			if path, ok := strings.CutPrefix(line, before); ok {
				if path = strings.Trim(path, " \t\"'"); path != "" {
					paths = append(paths, path)
				}
				break
			}
		}
	}
	return paths
}

// tagged reports whether the text is [PATH#TAG].
func tagged(text string) bool {
	return strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && strings.LastIndexByte(text, '#') > 1
}

// unwrapped returns the path without what Oh My Pi takes off it. Where that may be part of the name as well, all that
// may be meant are returned, and each is judged.
func unwrapped(path string) []string {
	path = strings.TrimSpace(path)
	if len(path) > 1 && path[0] == '"' && path[len(path)-1] == '"' {
		path = path[1 : len(path)-1]
	}
	if tagged(path) {
		path = path[1:strings.LastIndexByte(path, '#')]
	}
	paths := []string{path}
	bare := path
	for {
		before := bare
		bare = strings.Map(plainSpace, strings.TrimLeft(bare, "@:"))
		if n := len("file://"); len(bare) > n && strings.EqualFold(bare[:n], "file://") {
			bare = percentDecoded(strings.TrimPrefix(bare[n:], "localhost"))
		}
		if bare == before || bare == "" {
			break
		}
		paths = append(paths, bare)
	}
	if last := paths[len(paths)-1]; len(last) > 1 && last[0] == '~' && last[1] != '/' {
		paths = append(paths, "~/"+last[1:]) // Oh My Pi knows no other users' homes
	}
	return paths
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
			_, _ = fmt.Sscanf(text[i+1:i+3], "%02x", &b)
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
	for range strings.Count(glob, "..") {
		root = filepath.Join(root, "..")
	}
	return root, true
}
