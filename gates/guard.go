package gates

import (
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

// Writes reports whether the tool writes the file its input names.
func Writes(tool string) bool {
	switch tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return true
	}
	return false
}

// WritePath returns the path a write tool's input names, "" when there is none.
func WritePath(c Call) string {
	if !Writes(c.Tool) {
		return ""
	}
	in := fields(c.Input)
	if c.Tool == "NotebookEdit" {
		return in.text("notebook_path")
	}
	return in.text("file_path")
}

// Guard keeps write tools out of the state directory and off the spec, and asks before settings that hold our hook are
// changed. It judges Call.Path and Call.HoldsHook, which the caller fills in: symlinks are resolved before the gate is
// asked. It does not look into shell commands.
func Guard(p Protected) Gate {
	return func(c Call) Verdict {
		switch {
		case !Writes(c.Tool) || c.Path == "":
			return Verdict{}
		case within(c.Path, p.StateDir), p.Ledger != "" && c.Path == p.Ledger:
			return Verdict{Outcome: Deny, Code: CodeGuardState, Reason: "capgate's state directory holds the count of this run and is written by capgate only. This is final: do not retry, and do not look for another way. Write your results elsewhere."}
		case p.Spec != "" && c.Path == p.Spec:
			return Verdict{Outcome: Deny, Code: CodeGuardSpec, Reason: "The spec that declares this session's subagents is changed by its operator only. This is final: do not retry. Write your results elsewhere, or ask the user to change the spec."}
		case c.HoldsHook:
			return Verdict{Outcome: Ask, Code: CodeGuardSettings, Reason: fmt.Sprintf("%s holds the hook that bounds this session. Let the agent change it?", Visible(c.Path))}
		}
		return Verdict{}
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
