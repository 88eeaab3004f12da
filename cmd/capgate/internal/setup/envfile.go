package setup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// envHeader begins an environment file that install makes.
const envHeader = `# Settings of capgate for this installation: lines NAME=VALUE, in force at the next tool call.
# What can stand here: capgate help environment
`

// envFilePath is where install puts the environment file of an installation, and what the entry calls it: beside the
// settings of a user, and in a folder of its own in a project, where it has no absolute path.
func envFilePath(settingsFile, name, scope string) (path, called string) {
	if scope == ScopeUser {
		dir := filepath.Dir(settingsFile)
		if name == client.OMP {
			dir = filepath.Dir(dir) // above extensions
		}
		path = filepath.Join(dir, "capgate.env")
		return path, path
	}
	file := "env"
	switch {
	case scope == ScopeLocal:
		file = "local.env"
	case name == client.OMP:
		file = "omp.env"
	}
	return filepath.Join(projectOf(settingsFile, name), ".capgate", file), ".capgate/" + file
}

// projectOf returns the project whose file of a client it is: PROJECT/.claude/settings.json, PROJECT/.omp/extensions/capgate.ts.
func projectOf(file, name string) string {
	dir := filepath.Dir(filepath.Dir(file))
	if name == client.OMP {
		dir = filepath.Dir(dir)
	}
	return dir
}

// namedEnvFile returns the environment file that an installation names already, "" where there is none.
func namedEnvFile(f File, lookup capgate.Lookup) (path, called string) {
	if f.Client == client.OMP {
		x, _ := installed.ParseExtension(f.Text)
		called = x.EnvFile
	} else if d, err := settings.Parse(f.Text); err == nil {
		for _, h := range d.Hooks(settings.Judged, settings.IsOurs) {
			if _, named, err := hook.ParseEntry(h.Arguments()); err == nil && named != "" {
				called = named
			}
		}
	}
	if called == "" {
		return "", ""
	}
	path, err := hook.EnvFilePath(called, lookup)
	if err != nil {
		return "", ""
	}
	return path, called
}

// withVariables returns an environment file in which the variables have their values and the dropped ones are gone.
// Everything else, comments and order, stays as it is.
func withVariables(text []byte, vars []Variable, drop []string) ([]byte, error) {
	left := slices.Clone(vars)
	var b strings.Builder
	if text == nil {
		b.WriteString(envHeader)
	}
	newline := "\n"
	if strings.Contains(string(text), "\r\n") {
		newline = "\r\n"
	}
	for line := range strings.Lines(string(text)) {
		name := variableOf(line)
		at := slices.IndexFunc(left, func(v Variable) bool { return v.Name == name })
		again := at < 0 && slices.ContainsFunc(vars, func(v Variable) bool { return v.Name == name })
		switch {
		case slices.Contains(drop, name), again: // of two lines the second would count
		case at >= 0:
			if err := appendVariable(&b, left[at], newline, line); err != nil {
				return nil, err
			}
			left = slices.Delete(left, at, at+1)
		default:
			b.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString(newline)
			}
		}
	}
	for _, v := range left {
		if err := appendVariable(&b, v, newline, ""); err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

// appendVariable writes a variable's line, or the line as it was where it says the same.
func appendVariable(b *strings.Builder, v Variable, newline, was string) error {
	if old, err := capgate.ParseEnvFile([]byte(was)); err == nil && was != "" && old[v.Name] == v.Value {
		b.WriteString(strings.TrimRight(was, "\r\n") + newline)
		return nil
	}
	value := v.Value
	if strings.TrimSpace(value) != value || value != "" && strings.ContainsRune(`"'`, rune(value[0])) {
		value = `"` + value + `"`
	}
	line := v.Name + "=" + value
	if back, err := capgate.ParseEnvFile([]byte(line)); err != nil || back[v.Name] != v.Value {
		return fmt.Errorf("%s is %q, which no line can hold: choose another", v.Name, v.Value)
	}
	b.WriteString(line + newline)
	return nil
}

// variableOf returns the name of the variable that a line sets, "" where it sets none.
func variableOf(line string) string {
	vars, err := capgate.ParseEnvFile([]byte(line))
	if err == nil {
		for name := range vars {
			return name
		}
	}
	return ""
}

// onlyOurs reports whether an environment file holds nothing but what install writes: then uninstall takes it away.
func onlyOurs(text []byte) bool {
	rest, ok := strings.CutPrefix(string(text), envHeader)
	if !ok {
		return false
	}
	for line := range strings.Lines(rest) {
		if name := variableOf(line); !slices.Contains(variables, name) {
			return false
		}
	}
	return true
}

// errEnvFile says that an environment file has to be mended by hand first.
var errEnvFile = errors.New("mend it by hand first, or move it away")
