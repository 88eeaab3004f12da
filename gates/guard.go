package gates

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Protected names what [Guard] keeps a model's hands off. Paths are absolute with symlinks resolved; "" = none.
type Protected struct {
	StateDir string
	Ledger   string // where it is not in the state directory
	Spec     string
	Programs []string // the hook that judges, and capgate's others beside it
}

// FileWrite is one file that a call is about to write.
type FileWrite struct {
	Path string // absolute, with symlinks resolved
	Tree bool   // any file at or below Path may be written: the call names a directory or a glob
	Any  bool   // the call names more than is looked at (AnyPath): it may write any file
	// HoldsHook says that it is a client's settings file that holds our hook, or that would say something of it or
	// switch hooks off.
	HoldsHook bool
}

// Guard keeps write tools out of the state directory, off the spec and off capgate's programs, and asks before settings
// that hold our hook are changed. It judges writes, which whoever gathers facts makes of [WritePaths]: symbolic links are
// resolved before the gate is asked. It does not look into shell commands.
func Guard(p Protected, writes []FileWrite) Gate {
	return func(c Call) Verdict {
		if !Writes(c.Tool) {
			return Verdict{}
		}
		v := Verdict{}
		for _, w := range writes {
			switch {
			case w.Any:
				return Verdict{Outcome: Deny, Code: CodeGuardState, Reason: fmt.Sprintf("This call names more than %d files, or paths too long to be looked at, and it could not be told that none is capgate's own. Do not retry it as it is: write fewer files in one call.", MaxWrites)}
			case within(w.Path, p.StateDir), w.touches(p.StateDir), w.touches(p.Ledger):
				return Verdict{Outcome: Deny, Code: CodeGuardState, Reason: "capgate's state directory holds the count of this run and is written by capgate only. This is final: do not retry, and do not look for another way. Write your results elsewhere."}
			case slices.ContainsFunc(p.Programs, w.touches):
				return Verdict{Outcome: Deny, Code: CodeGuardState, Reason: "The program that bounds this session is changed by its operator only. This is final: do not retry, and do not look for another way. Write your results elsewhere."}
			case w.touches(p.Spec):
				return Verdict{Outcome: Deny, Code: CodeGuardSpec, Reason: "The spec that declares this session's subagents is changed by its operator only. This is final: do not retry. Write your results elsewhere, or ask the user to change the spec."}
			case w.HoldsHook:
				v = Verdict{Outcome: Ask, Code: CodeGuardSettings, Reason: fmt.Sprintf("%s holds the hook that bounds this session, or would change how it is bounded. Let the agent write it?", Visible(w.Path))}
			}
		}
		return v
	}
}

// touches reports whether the file at path may be written; "" is none.
func (w FileWrite) touches(path string) bool {
	return path != "" && (w.Path == path || w.Tree && within(path, w.Path))
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	if dir == "" {
		return false
	}
	rest, err := filepath.Rel(dir, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}
