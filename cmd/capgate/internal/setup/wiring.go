package setup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client/claude"
)

// variables are what install may write into a client's file, and uninstall takes out.
var variables = []string{
	"CAPGATE_ENABLED", "CAPGATE_DATA_DIR", "CAPGATE_LEDGER", "CAPGATE_SPEC", "CAPGATE_ALLOWED_SUBAGENTS", "CAPGATE_ADMISSION", claude.NoBackground,
}

// Variable is one variable with its value.
type Variable struct{ Name, Value string }

// Wiring is what an installation is to say: the hook, and the variables that it needs.
type Wiring struct {
	Command string // the hook
	Args    []string

	State      string // the state directory
	StateGiven bool   // by a flag or a variable: it takes the place of the one that the installation has
	Ledger     string // the ledger file, where a flag or a variable gave one

	Subagents  string // the types to allow, a comma list
	Spec       string // the spec file, an absolute path
	Foreground bool   // the gates want every subagent in the foreground
	Admission  string
}

// line is the hook's command line, for people.
func (w Wiring) line() string { return strings.Join(append([]string{w.Command}, w.Args...), " ") }

// Variables returns what the installation sets, over the variables that it has had.
func (w Wiring) Variables(kept map[string]string) []Variable {
	state := w.State
	if had := kept["CAPGATE_DATA_DIR"]; filepath.IsAbs(had) && !w.StateGiven {
		state = had
	}
	env := []Variable{{"CAPGATE_ENABLED", "1"}, {"CAPGATE_DATA_DIR", state}}
	add := func(name, value string) {
		if value != "" {
			env = append(env, Variable{name, value})
		}
	}
	switch had := kept["CAPGATE_LEDGER"]; {
	case w.Ledger != "":
		if had != "" || w.Ledger != capgate.DefaultLedger(state) {
			add("CAPGATE_LEDGER", w.Ledger)
		}
	case filepath.IsAbs(had):
		add("CAPGATE_LEDGER", had)
	}
	add("CAPGATE_ALLOWED_SUBAGENTS", w.Subagents)
	add("CAPGATE_SPEC", w.Spec)
	add("CAPGATE_ADMISSION", w.Admission)
	if w.Foreground {
		add(claude.NoBackground, "1")
	}
	return env
}

// replaced names the variables that a flag takes the place of: a spec and a list say the same thing.
func (w Wiring) replaced() []string {
	switch {
	case w.Subagents != "" && w.Spec == "":
		return []string{"CAPGATE_SPEC"}
	case w.Spec != "" && w.Subagents == "":
		return []string{"CAPGATE_ALLOWED_SUBAGENTS"}
	}
	return nil
}

// merge puts env over the variables that were there, without those that are dropped.
func merge(kept map[string]string, env []Variable, drop []string) []Variable {
	var all []Variable
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if !slices.Contains(drop, name) {
			all = append(all, Variable{name, kept[name]})
		}
	}
	return append(all, env...)
}

func changes(kept map[string]string, env []Variable, drop []string) (changed []Change) {
	for _, v := range env {
		if was, ok := kept[v.Name]; ok && was != v.Value {
			changed = append(changed, Change{v.Name, was, v.Value})
		}
	}
	for _, name := range drop {
		if was, ok := kept[name]; ok {
			changed = append(changed, Change{Name: name, From: was})
		}
	}
	return changed
}

func value(env []Variable, name string) string {
	for _, v := range env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// hookProgram returns the hook beside this program: capgate-hook, or this program with the argument hook.
func hookProgram() (command string, args []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("find this program: %w", err)
	}
	beside := filepath.Join(filepath.Dir(self), "capgate-hook"+exe())
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || runtime.GOOS == "windows") {
		return beside, []string{}, nil
	}
	return self, []string{"hook"}, nil
}

// exe ends the name of a program.
func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
