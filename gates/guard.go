package gates

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Protected names what [Guard] keeps a model's hands off. Paths are absolute with symlinks resolved; "" = none.
type Protected struct {
	StateDir string   // all of it
	Files    []string // files and directories of ours elsewhere: the ledger, an environment file, our part of a plugin's directory
	Spec     string
	Programs []string // the hook that judges, and capgate's others beside it
}

// FileWrite is one file that a call is about to write.
type FileWrite struct {
	Path string // absolute, with symlinks resolved
	Tree bool   // any file at or below Path may be written: the call names a directory or a glob
	Any  bool   // the call names more than is looked at (AnyPath): it may write any file
	// PerProcess says that the name means another file in each process, as /proc/self/cwd does: which one it is for the
	// client cannot be told.
	PerProcess bool
	Own        bool // an environment file of ours, by its name: [OwnFile]
	Settings   bool // it decides what bounds the session: [SettingsFile], or it holds our hook
}

// Guard keeps write tools out of the state directory, off the spec and off capgate's files and programs. Before a client's
// settings or hook files are changed it asks, and where nobody would see the question it denies: a client that does not put
// a hook's question to anybody may write all the same, as Claude Code does with its own settings in bypassPermissions
// (2.1.332, measured).
//
// It judges writes, which whoever gathers facts makes of [WritePaths]: symbolic links are resolved before the gate is asked.
// It does not look into shell commands.
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
			case w.PerProcess:
				return Verdict{Outcome: Deny, Code: CodeGuardPath, Reason: fmt.Sprintf("%s means another file in each process, so it cannot be told which one this would write. Do not retry with such a name: write to the file's own path.", shown(w.Path))}
			case within(w.Path, p.StateDir), w.touches(p.StateDir), w.Own, slices.ContainsFunc(p.Files, w.reaches):
				return Verdict{Outcome: Deny, Code: CodeGuardState, Reason: "This file holds the count or the settings that bound this session and is written by capgate and its operator only. This is final: do not retry, and do not look for another way. Write your results elsewhere."}
			case slices.ContainsFunc(p.Programs, w.touches):
				return Verdict{Outcome: Deny, Code: CodeGuardState, Reason: "The program that bounds this session is changed by its operator only. This is final: do not retry, and do not look for another way. Write your results elsewhere."}
			case w.touches(p.Spec):
				return Verdict{Outcome: Deny, Code: CodeGuardSpec, Reason: "The spec that declares this session's subagents is changed by its operator only. This is final: do not retry. Write your results elsewhere, or ask the user to change the spec."}
			case w.Settings && unasked(c):
				return Verdict{Outcome: Deny, Code: CodeGuardUnasked, Reason: fmt.Sprintf("%s decides what bounds this session, and nobody is asked about it here. This is final: do not retry, and do not look for another way. Tell the user what you wanted to change in it.", shown(w.Path))}
			case w.Settings:
				v = Verdict{Outcome: Ask, Code: CodeGuardSettings, Reason: fmt.Sprintf("%s decides what bounds this session, or can switch that off. Let the agent write it?", shown(w.Path))}
			}
		}
		return v
	}
}

// unasked reports whether a question about settings would reach nobody: the session is headless, or in a mode in which the
// client answers in a person's stead.
func unasked(c Call) bool {
	return c.Attended == Absent || c.Mode == "bypassPermissions" || c.Mode == "dontAsk"
}

// maxShown bounds a path in a reason, in UTF-16 units: what a model wrote must not push the advice out of it.
const maxShown = 200

func shown(path string) string { return Visible(shorten(path, maxShown)) }

// reaches reports whether the file or the directory at path, or something in it, may be written.
func (w FileWrite) reaches(path string) bool { return within(w.Path, path) || w.touches(path) }

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
