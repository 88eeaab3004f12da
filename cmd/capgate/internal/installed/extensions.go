package installed

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/lazy"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// Extension is Oh My Pi's extension of ours.
type Extension struct {
	Place, Path string
	Hook        string            // the program that it runs; a name alone = it looks for it
	Env         map[string]string // what it sets for it
	EnvFile     string            // and the environment file that it names; "" = none
}

// Extensions returns the extensions of ours that count in a directory.
func Extensions(lookup capgate.Lookup, dir string) []Extension {
	var found []Extension
	add := func(place, base string) {
		path := filepath.Join(base, "extensions", "capgate.ts")
		text, err := settings.ReadFile(path)
		if x, ours := ParseExtension(text); err == nil && ours {
			x.Place, x.Path = place, path
			x.Hook = Search(x.Hook, lookup)
			if x.EnvFile != "" && !filepath.IsAbs(x.EnvFile) {
				x.EnvFile = filepath.Join(base, "..", x.EnvFile) // begins in the project, as the extension has it
			}
			found = append(found, x)
		}
	}
	if user := OMPDir(lookup); user != "" {
		add(User, user)
	}
	add(Project, filepath.Join(dir, ".omp"))
	return found
}

// read returns what the extension's hook gets in an environment, and what it is loaded by.
func (x Extension) read(env capgate.Lookup) (capgate.Config, capgate.Lookup) {
	return hook.ReadSettings(capgate.Entry{}, x.EnvFile, func(name string) (string, bool) {
		if v, ok := x.Env[name]; ok {
			return v, true
		}
		return env(name)
	})
}

// extensionMark is in every extension that we wrote, and says that it may be replaced and removed.
const extensionMark = "// capgate's gate for Oh My Pi"

// IsExtension reports whether the text is an extension that we wrote.
func IsExtension(text []byte) bool { return strings.HasPrefix(string(text), extensionMark) }

var (
	extensionEnv     = lazy.Regexp(`(?m)^const ENV: Record<string, string> = (\{.*\});$`)
	extensionEnvFile = lazy.Regexp(`(?m)^const ENV_FILE: string = ("[^\n]*");$`)
	extensionHook    = lazy.Regexp(`(?m)^const HOOK: string = ("[^\n]*");$`)
)

// ParseExtension reads what an extension that we wrote was filled in with. ours is false where it is no extension of ours.
func ParseExtension(text []byte) (x Extension, ours bool) {
	x.Env = map[string]string{}
	if m := extensionEnv().FindSubmatch(text); m != nil {
		_ = json.Unmarshal(m[1], &x.Env)
	}
	if m := extensionEnvFile().FindSubmatch(text); m != nil {
		x.EnvFile, _ = strconv.Unquote(string(m[1]))
	}
	if m := extensionHook().FindSubmatch(text); m != nil {
		x.Hook, _ = strconv.Unquote(string(m[1]))
	}
	return x, IsExtension(text)
}
