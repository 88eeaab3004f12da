// Package installed knows where capgate is installed: the entries of ours in the settings of Claude Code, in its plugins,
// and the extension of ours in Oh My Pi, each with the configuration that its hook gets.
//
// It only reads, and what it cannot read it leaves out, but for an entry whose environment file it cannot read.
package installed

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// Places of an [Entry].
const (
	User    = "user"
	Project = "project"
	Local   = "local" // of Claude Code only
	Managed = "managed"
	Plugin  = "plugin"
)

// Entry is one installation.
type Entry struct {
	Client string // a name of package client
	Place  string
	File   string // the settings file, the plugin's directory or its state, the extension
	Hook   string // the program that it runs
	Plugin string // its name, "capgate@market"; "" where it is none, or not known
	Config capgate.Config

	// Settings is what the configuration was loaded by.
	Settings capgate.Lookup
}

// State is the entry's state directory, "" where it has none.
func (e Entry) State() string {
	state, _ := e.Config.StateDir()
	return state
}

// List returns the installations that count in a directory, in the order in which the clients read their settings.
func List(lookup capgate.Lookup, dir string) []Entry {
	layers := Layers(lookup, dir)
	env := Environment(lookup, layers)
	project := inProject(env, dir)
	var all []Entry
	for _, l := range layers {
		for _, h := range l.Doc.Hooks(settings.Judged, settings.IsOurs) {
			e := Entry{Client: client.Claude, Place: l.Place, File: l.Path, Hook: Program(h, project)}
			e.Config, e.Settings = read(h, project)
			all = append(all, e)
		}
	}
	all = append(all, plugins(env, ClaudeDir(lookup))...)
	for _, x := range Extensions(lookup, dir) {
		e := Entry{Client: client.OMP, Place: x.Place, File: x.Path, Hook: x.Hook}
		e.Config, e.Settings = x.read(lookup)
		all = append(all, e)
	}
	return all
}

// States returns the state directories of entries, each once.
func States(entries []Entry) []string {
	var states []string
	for _, e := range entries {
		if state := e.State(); state != "" && !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	return states
}

// read returns the configuration that an entry's hook gets in an environment, and what it is loaded by. A command line that
// the hook does not take has none.
func read(h settings.Hook, env capgate.Lookup) (capgate.Config, capgate.Lookup) {
	entry, envFile, err := hook.ParseEntry(h.Arguments())
	if err != nil {
		return capgate.Config{Problem: err}, func(string) (string, bool) { return "", false }
	}
	return hook.ReadSettings(entry, envFile, env)
}

// inProject is an environment as the client gives it to a hook in the directory.
func inProject(env capgate.Lookup, dir string) capgate.Lookup {
	return func(name string) (string, bool) {
		if name == "CLAUDE_PROJECT_DIR" {
			return dir, true
		}
		return env(name)
	}
}

// Layer is one settings file of Claude Code that can be read.
type Layer struct {
	Place, Path string
	Doc         *settings.Doc
}

// Layers returns the settings files that count in a directory, weakest first.
func Layers(lookup capgate.Lookup, dir string) []Layer {
	var found []Layer
	add := func(place, path string) {
		text, err := settings.ReadFile(path)
		if err != nil || slices.ContainsFunc(found, func(l Layer) bool { return sameFile(l.Path, path) }) {
			return // in the home directory, the project's file is the user's
		}
		if doc, err := settings.Parse(text); err == nil {
			found = append(found, Layer{place, path, doc})
		}
	}
	if user := ClaudeDir(lookup); user != "" {
		add(User, filepath.Join(user, settings.FileName))
	}
	add(Project, filepath.Join(dir, ".claude", settings.FileName))
	add(Local, filepath.Join(dir, ".claude", settings.LocalFileName))
	for _, path := range ManagedSettings() {
		add(Managed, path)
	}
	return found
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Environment is what the hooks get of a client that is started in an environment: over it the env blocks of its settings.
func Environment(lookup capgate.Lookup, layers []Layer) capgate.Lookup {
	return func(name string) (string, bool) {
		for _, l := range slices.Backward(layers) {
			if v, ok := l.Doc.Env(name); ok {
				return v, true
			}
		}
		return lookup(name)
	}
}

// ClaudeDir is the user's directory of Claude Code, "" where the environment names none.
func ClaudeDir(lookup capgate.Lookup) string {
	if dir, _ := lookup("CLAUDE_CONFIG_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	return inHome(lookup, ".claude")
}

// OMPDir is the user's directory of Oh My Pi, "" where the environment names none.
func OMPDir(lookup capgate.Lookup) string { return inHome(lookup, ".omp", "agent") }

func inHome(lookup capgate.Lookup, names ...string) string {
	home, _ := lookup(capgate.HomeVariable())
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(append([]string{home}, names...)...)
}

// ProgramDir is where install puts our programs, "" where the environment names no directory. By the XDG base directory
// specification a relative XDG_DATA_HOME is ignored.
func ProgramDir(lookup capgate.Lookup) string {
	base := inHome(lookup, ".local", "share")
	if data, _ := lookup("XDG_DATA_HOME"); filepath.IsAbs(data) {
		base = data
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, "capgate", "bin")
}

// Program is the file that an entry runs in an environment. One that is looked for and not found stays a name.
func Program(h settings.Hook, lookup capgate.Lookup) string {
	if !h.Searched() {
		return h.Program()
	}
	return Search(h.Program(), lookup)
}

// Search looks for a program that a project's settings name without a path, as they do: on PATH, then where install puts it.
// What is not found stays a name.
func Search(name string, lookup capgate.Lookup) string {
	if filepath.Base(name) != name {
		return name
	}
	path, _ := lookup("PATH")
	windows := runtime.GOOS == "windows"
	for _, dir := range append(filepath.SplitList(path), ProgramDir(lookup)) {
		file := filepath.Join(dir, name)
		if windows {
			file += ".exe"
		}
		if info, err := os.Stat(file); filepath.IsAbs(file) && err == nil && info.Mode().IsRegular() && (windows || info.Mode()&0o111 != 0) {
			return file
		}
	}
	return name
}

// ManagedSettings are the places of an organisation's settings.
func ManagedSettings() []string {
	var paths []string
	for _, dir := range []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"} {
		paths = append(paths, filepath.Join(dir, settings.ManagedFileName))
	}
	return paths
}
