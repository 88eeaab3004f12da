package gates

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// Protected names what [Guard] keeps a model's hands off. Paths are absolute with symlinks resolved; "" = none.
type Protected struct {
	StateDir string
	Ledger   string // where it is not in the state directory
	Spec     string
}

// Writes reports whether the tool writes the files its input names: Claude Code's Write, Edit, MultiEdit and
// NotebookEdit, and Oh My Pi's write, edit and ast_edit.
func Writes(tool string) bool {
	switch tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit", "write", "edit", "ast_edit":
		return true
	}
	return false
}

// WritePaths returns the paths that a write tool's input names, as it names them.
func WritePaths(c Call) []string {
	if !Writes(c.Tool) {
		return nil
	}
	in := fields(c.Input)
	var keys []string
	switch c.Tool {
	case "NotebookEdit":
		keys = []string{"notebook_path"}
	case "write", "edit", "ast_edit":
		keys = []string{"path", "paths"}
	default:
		keys = []string{"file_path"}
	}
	var paths []string
	for _, key := range keys {
		if path := in.text(key); path != "" {
			paths = append(paths, path)
		}
		var list []any
		if json.Unmarshal(in[key], &list) == nil {
			for _, item := range list {
				if path, ok := item.(string); ok && path != "" {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// Guard keeps write tools out of the state directory and off the spec, and asks before settings that hold our hook are
// changed. It judges Call.Writes, which the caller fills in from [WritePaths]: symlinks are resolved before the gate is
// asked. It does not look into shell commands.
func Guard(p Protected) Gate {
	return func(c Call) Verdict {
		if !Writes(c.Tool) {
			return Verdict{}
		}
		v := Verdict{}
		for _, w := range c.Writes {
			switch {
			case within(w.Path, p.StateDir), p.Ledger != "" && w.Path == p.Ledger:
				return Verdict{Outcome: Deny, Code: CodeGuardState, Reason: "capgate's state directory holds the count of this run and is written by capgate only. This is final: do not retry, and do not look for another way. Write your results elsewhere."}
			case p.Spec != "" && w.Path == p.Spec:
				return Verdict{Outcome: Deny, Code: CodeGuardSpec, Reason: "The spec that declares this session's subagents is changed by its operator only. This is final: do not retry. Write your results elsewhere, or ask the user to change the spec."}
			case w.HoldsHook:
				v = Verdict{Outcome: Ask, Code: CodeGuardSettings, Reason: fmt.Sprintf("%s holds the hook that bounds this session. Let the agent change it?", Visible(w.Path))}
			}
		}
		return v
	}
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	if dir == "" {
		return false
	}
	rest, err := filepath.Rel(dir, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}
