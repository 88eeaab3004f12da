package gates

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// What follows says which files decide what bounds a session: the settings of the clients, and what they load hooks from.
// They are known by their names and by the folders above them, never by what a call writes into them: a text can be put
// together by several calls. Names are compared ignoring case, as some file systems do.

// Folders of the clients, as [SettingsFile] knows them.
const (
	claudeFolder  = ".claude"
	ompFolder     = ".omp"
	piFolder      = ".pi"
	codexFolder   = ".codex"
	copilotFolder = ".copilot"
)

// clientFolders are the folders below which a client reads its settings. The last two are the machine's, of Claude Code.
var clientFolders = []string{claudeFolder, ompFolder, piFolder, codexFolder, copilotFolder, "claude-code", "claudecode"}

// OwnFolder is the folder of a project in which an installation keeps its environment file.
const OwnFolder = ".capgate"

// OwnEnvFile is the name of an installation's environment file beside a client's settings.
const OwnEnvFile = "capgate.env"

// OwnFile reports whether the file at a path is an environment file of ours, by its name.
func OwnFile(path string) bool {
	names := namesOf(path)
	return slices.Contains(names[:len(names)-1], OwnFolder) || last(names) == OwnEnvFile && below(names, clientFolders...) >= 0
}

// SettingsFile reports whether a client takes the file at a path for its settings, or loads hooks, plugins or extensions
// from it. What else is in a client's folder (skills, agents, commands, memory, worktrees) is not meant.
func SettingsFile(path string) bool {
	names := namesOf(path)
	name := last(names)
	parent := names[max(len(names)-2, 0)]
	switch {
	case name == ".mcp.json", name == ".claude.json": // servers, and the trust in a project
		return true
	case name == "hooks.json" && parent == "hooks", parent == ".claude-plugin": // of a plugin
		return true
	}
	at := below(names, append([]string{".github"}, clientFolders...)...)
	if at < 0 {
		return false
	}
	in := names[at+1:] // the path in the client's folder
	switch names[at] {
	case ".github": // Copilot's
		return in[0] == "hooks"
	case ompFolder, piFolder:
		return settingsName(name) || configName(name) || slices.Contains(in[:len(in)-1], "extensions") || slices.Contains(in[:len(in)-1], "hooks")
	case codexFolder, copilotFolder:
		return len(in) == 1 && (settingsName(name) || configName(name) || name == "hooks.json") || in[0] == "hooks"
	}
	switch in[0] {
	case "hooks", "managed-settings.d":
		return true
	case "plugins": // of the client's own list of plugins, and of their programs; in data is what each keeps for itself
		return len(in) > 1 && in[1] != "data"
	}
	return len(in) == 1 && (settingsName(name) || name == "hooks.json")
}

// SettingsFolder reports whether a client reads settings from the directory at a path: a call that may write any file there
// may write those.
func SettingsFolder(path string) bool {
	return SettingsFile(filepath.Join(path, "settings.json")) || SettingsFile(filepath.Join(path, "hooks.json"))
}

func configName(name string) bool {
	return slices.Contains([]string{"config.toml", "config.yml", "config.yaml", "config.json"}, name)
}

// settingsName reports whether clients call their settings so.
func settingsName(name string) bool {
	name, isJSON := strings.CutSuffix(name, ".json")
	return isJSON && (strings.HasPrefix(name, "settings") || strings.HasPrefix(name, "managed-settings"))
}

// namesOf are the names in a path, in lower case, at least one.
func namesOf(path string) []string {
	return strings.Split(strings.ToLower(filepath.ToSlash(path)), "/")
}

func last(names []string) string { return names[len(names)-1] }

// below returns the place of the lowest folder among the names that is one of those, -1 where the file is below none.
func below(names []string, folders ...string) int {
	for i := len(names) - 2; i >= 0; i-- {
		if slices.Contains(folders, names[i]) {
			return i
		}
	}
	return -1
}

// MayHoldHook reports whether a file of this name may hold our hook, wherever it is: settings can be given to a client from
// any place. Then [HoldsHook] says whether it does.
func MayHoldHook(path string) bool {
	name := last(namesOf(path))
	return settingsName(name) || name == "hooks.json" || name == "capgate.ts"
}

// HoldsHook reports whether a file has our hook in it, by what came of reading it. One that cannot be read counts as if it
// had, and one that does not exist has none.
func HoldsHook(text []byte, err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || bytes.Contains(text, []byte("capgate"))
}

// MaxSettings bounds how much of a settings file is looked at, in bytes.
const MaxSettings = 4 << 20

// MaxWrites bounds how many paths of one call are looked at. A call that names more counts as one that may write anywhere
// ([AnyPath]).
const MaxWrites = 500

// ToldFolders are the variables by which a client is told to keep its folder elsewhere, and what the folder would be called
// else.
var ToldFolders = map[string]string{
	"CLAUDE_CONFIG_DIR":   claudeFolder,
	"CODEX_HOME":          codexFolder,
	"PI_CODING_AGENT_DIR": piFolder,
	"PI_CONFIG_DIR":       ompFolder,
}

// Programs returns the programs of ours that lie beside self, the one that runs, and self: the hook may be either of
// them, and a write to any of them is guarded. self is an absolute path.
func Programs(self string) []string {
	all := []string{self}
	for _, name := range []string{"capgate", "capgate-hook"} {
		if strings.EqualFold(filepath.Ext(self), ".exe") {
			name += ".exe"
		}
		if name != filepath.Base(self) {
			all = append(all, filepath.Join(filepath.Dir(self), name))
		}
	}
	return all
}
