package setup

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/cmd/capgate/internal/shell"
)

// variables are what an installation may set, in its environment file and, by an earlier version or a person, in the
// client's own: all settings but the kill switches, which hold wherever they stand, and the client's own one.
var variables = func() []string {
	var names []string
	for _, v := range capgate.Variables(func(string) (string, bool) { return "", false }) {
		for _, name := range []string{v.Name, v.Also} {
			if name != "" && !strings.Contains(name, "DISABLE") && name != "CLAUDE_PLUGIN_DATA" {
				names = append(names, name)
			}
		}
	}
	return append(names, claude.NoBackground)
}()

// Variable is one variable with its value.
type Variable struct{ Name, Value string }

// Wiring is what an installation is to say: the hook, and the variables that it needs.
type Wiring struct {
	Programs
	EnvFile string // the environment file, as the entry calls it; "" = none
	// Portable says that the installation is a project's, whose files other people and other clients read: where nobody
	// named a state directory it is each one's own; the entry names no absolute path, lets calls through where there is no
	// capgate, and is one command line, since those clients ignore args.
	Portable bool

	State      string // the state directory
	StateGiven bool   // by a flag or a variable: it takes the place of the one that the installation has
	Ledger     string // the ledger file, where a flag or a variable gave one

	Subagents  string // the types to allow, a comma list
	Spec       string // the spec file, an absolute path
	Foreground bool   // the gates want every subagent in the foreground
	Admission  string
}

// arguments are all that the hook is given.
func (w Wiring) arguments() []string {
	if w.EnvFile == "" {
		return w.Args
	}
	return append(slices.Clone(w.Args), "--env-file", w.EnvFile)
}

// line is the hook's command line, for people and for a shell.
func (w Wiring) line() string {
	name := w.Command
	if w.Portable {
		name = filepath.Base(strings.TrimSuffix(name, ".exe"))
	}
	words := []string{shell.Word(name)}
	for _, arg := range w.arguments() {
		words = append(words, shell.Word(arg))
	}
	line := strings.Join(words, " ")
	if w.Portable {
		return settings.Find(name, line)
	}
	return line
}

// groups are the hook's groups for an event, with a configuration. Where the hook judges some tools only, those alone are
// blocked when it cannot run.
func (w Wiring) groups(event string, c capgate.Config) []settings.Group {
	if w.Portable {
		h := settings.Entry(event, w.line(), nil)
		h.OnFailure = ""
		return []settings.Group{{Hook: h}}
	}
	h := settings.Entry(event, w.Command, w.arguments())
	tools, all := c.JudgedTools()
	if event != settings.Judged || all {
		return []settings.Group{{Hook: h}}
	}
	others := h
	others.OnFailure = ""
	judged, rest := claude.Matcher(tools)
	return []settings.Group{{Matcher: judged, Hook: h}, {Matcher: rest, Hook: others}}
}

// Variables returns what the installation sets, over the variables that it has had.
func (w Wiring) Variables(kept map[string]string) []Variable {
	state := w.State
	if had := kept["CAPGATE_DATA_DIR"]; filepath.IsAbs(had) && !w.StateGiven {
		state = had
	}
	env := []Variable{{"CAPGATE_ENABLED", "1"}}
	if had := kept["CAPGATE_DATA_DIR"]; !w.Portable || w.StateGiven || had != "" {
		env = append(env, Variable{"CAPGATE_DATA_DIR", state})
	}
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
		if !slices.Contains(drop, name) && !slices.ContainsFunc(env, func(v Variable) bool { return v.Name == name }) {
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

// state is the state directory of an installation with these variables.
func (w Wiring) state(env []Variable) string {
	if i := slices.IndexFunc(env, func(v Variable) bool { return v.Name == "CAPGATE_DATA_DIR" }); i >= 0 {
		return env[i].Value
	}
	return w.State
}
