package hook

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/ledger/disk"
)

// configure finds what this entry is to judge by: its settings, and what an operator says of them at once. It starts the
// watchdog first, since a file may be as slow as any other, and returns it. What is known by then is what the watchdog judges by.
func (r *run) configure() *time.Timer {
	var unread error
	if r.EnvFile != "" {
		unread = fmt.Errorf("the environment file was %w", capgate.ErrOverdue)
	}
	r.facts.Config = loadConfig(r.entry(nil), r.Lookup, unread)
	watchdog := time.AfterFunc(r.watchdogIn(), r.overdue)
	c := ReadConfig(r.entry(nil), r.EnvFile, r.Lookup)
	r.configured(c, nil)
	watchdog.Reset(r.watchdogIn())
	if state, ok := c.StateDir(); ok && c.GuardActive() {
		_, r.release = control.Hold(state) // before it is read what holds: a halt waits for a call that an off lets go on, too
		said := control.Read(state, r.facts.Now)
		r.configured(c.Under(said.Off), said.Halt)
	}
	return watchdog
}

// configured publishes the configuration.
func (r *run) configured(c capgate.Config, halt *control.Word) {
	r.mu.Lock()
	r.facts.Config, r.facts.Halt = c, halt
	r.mu.Unlock()
}

func (r *run) entry(file map[string]string) capgate.Entry {
	return capgate.Entry{Args: r.Args, File: file, HasFile: r.EnvFile != ""}
}

// ParseEntry reads what a hook's command line says of its configuration: its own variables, and the path of its environment
// file, "" = it names none.
func ParseEntry(args []string) (e capgate.Entry, envFile string, err error) {
	a, err := parseArguments(args)
	return capgate.Entry{Args: a.env, HasFile: a.envFile != ""}, a.envFile, err
}

// ReadConfig returns the configuration of an entry, whose environment file is at a path, "" = it names none. Where that
// cannot be read the configuration says so.
func ReadConfig(e capgate.Entry, envFile string, lookup capgate.Lookup) capgate.Config {
	c, _ := ReadSettings(e, envFile, lookup)
	return c
}

// ReadSettings is [ReadConfig], with the lookup that the configuration was loaded by.
func ReadSettings(e capgate.Entry, envFile string, lookup capgate.Lookup) (capgate.Config, capgate.Lookup) {
	if envFile == "" {
		settings := e.Settings(lookup)
		return capgate.LoadConfig(settings), settings
	}
	path, err := EnvFilePath(envFile, lookup)
	if err == nil {
		e.File, err = ReadEnvFile(path)
	}
	e.HasFile = true
	c := loadConfig(e, lookup, err)
	c.EnvFile = path
	if c.Spec != "" && !filepath.IsAbs(c.Spec) { // so that a project's needs no absolute path
		c.Spec = filepath.Join(filepath.Dir(path), c.Spec)
	}
	return c, e.Settings(lookup)
}

// loadConfig is the configuration of an entry with an environment file, or without it where it cannot be read. Then
// nothing is known of the state directory.
func loadConfig(e capgate.Entry, lookup capgate.Lookup, problem error) capgate.Config {
	c := capgate.LoadConfig(e.Settings(lookup))
	if c.Problem = problem; problem != nil {
		c.DataDir, c.Ledger = "", ""
	}
	return c
}

// EnvFilePath returns where the environment file is that an entry names. A relative path, as entries have that are
// committed with a project, begins in the project's directory.
func EnvFilePath(path string, lookup capgate.Lookup) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	if project, _ := lookup("CLAUDE_PROJECT_DIR"); filepath.IsAbs(project) {
		return filepath.Join(project, path), nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path, fmt.Errorf("environment file %s: %w", path, err)
	}
	return full, nil
}

// ReadEnvFile reads an environment file, which must be a regular one. Errors name it.
func ReadEnvFile(path string) (map[string]string, error) {
	text, err := disk.ReadRegular(path, capgate.MaxEnvFile)
	if err != nil {
		return nil, fmt.Errorf("environment file %s: %w", path, disk.Bare(err))
	}
	vars, err := capgate.ParseEnvFile(text)
	if err != nil {
		return nil, fmt.Errorf("environment file %s: %w", path, err)
	}
	return vars, nil
}
