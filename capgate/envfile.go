package capgate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxEnvFile bounds an environment file, in bytes: it is read while a call waits.
const MaxEnvFile = 64 << 10

// ErrEnvFile is wrapped by every error of [ParseEnvFile].
var ErrEnvFile = errors.New("not a usable environment file")

// ParseEnvFile reads an environment file: lines NAME=VALUE, empty ones, and comments that begin with #. White space
// around a name and a value does not count, nor do quotes of one kind around a whole value. Of a name that stands twice
// the last counts. Names that are no setting of ours are kept as well: [UnknownSettings] tells them.
//
// A line of another kind makes the whole file unusable, because nobody can say what it was meant to switch on.
func ParseEnvFile(text []byte) (map[string]string, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	switch {
	case len(text) > MaxEnvFile:
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrEnvFile, MaxEnvFile)
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, fmt.Errorf("%w: it is no UTF-8 text", ErrEnvFile)
	}
	vars := map[string]string{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || !isVariable(name) {
			return nil, fmt.Errorf("%w: line %d is not NAME=VALUE: mend it, or put a # before it", ErrEnvFile, n)
		}
		value = strings.TrimSpace(value)
		if q := len(value); q >= 2 && value[0] == value[q-1] && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : q-1]
		}
		vars[name] = value
	}
	return vars, nil
}

// isVariable reports whether the text can be the name of a variable.
func isVariable(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) < 0
}

// UnknownSettings returns the names in an environment file that are no setting of ours, in order: what they say has no
// effect there.
func UnknownSettings(vars map[string]string) []string {
	var unknown []string
	for name := range vars {
		if !isSetting(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Entry is what a hook's entry in a client's settings says of its configuration.
type Entry struct {
	Args map[string]string // from --env NAME=VALUE: defaults
	File map[string]string // from the environment file; nil where the entry names none, or it cannot be read
	// HasFile says that the entry names an environment file: then the environment of the process has no say but by its
	// kill switches.
	HasFile bool
}

// Settings returns the lookup by which [LoadConfig] reads the configuration of an entry in a process's environment.
//
// An entry with an environment file takes its settings from there, and from its arguments what the file leaves out: the
// environment, which all entries of a client share, would carry the settings of one into another. So it would for a
// plugin's entry without a file: that one's state is in the plugin's own directory, wherever another's is.
// Kill switches are read everywhere, and any 1 holds.
func (e Entry) Settings(process Lookup) Lookup {
	if len(e.Args) == 0 && !e.HasFile && unset(process, pluginData) {
		return process
	}
	first := func(name string, from ...Lookup) (string, bool) {
		for _, lookup := range from {
			if v, ok := lookup(name); ok && v != "" {
				return v, true
			}
		}
		return "", false
	}
	file, args := lookupIn(e.File), lookupIn(e.Args)
	return func(name string) (string, bool) {
		switch {
		case isKillSwitch(name):
			for _, lookup := range []Lookup{process, file, args} {
				if v, _ := lookup(name); Switch(v).On() {
					return v, true
				}
			}
			if e.HasFile {
				return first(name, file, args)
			}
			return first(name, process, args)
		case !strings.HasPrefix(name, "CAPGATE_") && !strings.HasPrefix(name, "VOYAGE_"):
			return process(name) // the client's and the system's
		case e.HasFile:
			if v, ok := first(name, file, args); ok || name != dataDir || !unset(process, pluginData) {
				return v, ok
			}
			return DefaultStateDir(process)
		case isPlace(name) && !unset(process, pluginData):
			return args(name)
		}
		return first(name, process, args)
	}
}

func lookupIn(vars map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func unset(lookup Lookup, name string) bool {
	v, _ := lookup(name)
	return v == ""
}
