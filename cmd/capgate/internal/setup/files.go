package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// Scopes are the places where a client's settings are.
const (
	ScopeUser    = "user"
	ScopeProject = "project"
	ScopeLocal   = "local" // of Claude Code only
)

// Path returns the file of a client in a scope: the settings of Claude Code, our extension of Oh My Pi.
func Path(lookup capgate.Lookup, name, scope string) (string, error) {
	base, err := clientDir(lookup, name, scope)
	if err != nil {
		return "", err
	}
	switch {
	case name == client.OMP:
		return filepath.Join(base, "extensions", "capgate.ts"), nil
	case scope == ScopeLocal:
		return filepath.Join(base, settings.LocalFileName), nil
	}
	return filepath.Join(base, settings.FileName), nil
}

// clientDir returns the directory in which a client looks for its settings.
func clientDir(lookup capgate.Lookup, name, scope string) (string, error) {
	if err := cli.CheckClient(name); err != nil {
		return "", err
	}
	switch {
	case scope == ScopeUser:
		dir := installed.ClaudeDir(lookup)
		if name == client.OMP {
			dir = installed.OMPDir(lookup)
		}
		if dir == "" {
			return "", fmt.Errorf("%s names no directory, so the user's settings cannot be found: set it, or use --scope project", capgate.HomeVariable())
		}
		return dir, nil
	case scope == ScopeProject, scope == ScopeLocal && name == client.Claude:
		dir, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("find the current directory: %w", err)
		}
		return filepath.Join(dir, map[string]string{client.Claude: ".claude", client.OMP: ".omp"}[name]), nil
	case scope == ScopeLocal:
		return "", cli.Usagef("--scope local is Claude Code's: with --client omp it takes user or project")
	}
	return "", cli.Usagef("--scope is %q: it takes user, project or local", scope)
}

// read reads a file that is to be replaced: nil where there is none, an error where replacing it would do harm. A symbolic link,
// as those who keep their settings elsewhere have, is read through and written through.
func read(file string) ([]byte, error) {
	file, err := throughLinks(file)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read settings: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: move it away first", file)
	case info.Size() > settings.MaxFile:
		return nil, fmt.Errorf("%s has %d bytes, more than a settings file can have", file, info.Size())
	case info.Mode().Perm()&0o200 == 0:
		return nil, fmt.Errorf("%s is read-only: chmod u+w it first, or use another --scope", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// maxLinks bounds a chain of symbolic links, as Linux does.
const maxLinks = 40

// throughLinks returns the file that a path means. That one need not exist.
func throughLinks(path string) (string, error) {
	for range maxLinks {
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link, or nothing at all
		}
		if !filepath.IsAbs(target) {
			// The folder of a link may be reached by a link itself, from which .. leads elsewhere.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", fmt.Errorf("follow the link %s: %w", path, err)
			}
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many symbolic links: mend them first", path)
}
