package gates

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
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
	githubFolder  = ".github" // of a project, for Copilot
)

// ClientFolders are the folders in a home or a project below which a client reads its settings.
var ClientFolders = []string{claudeFolder, ompFolder, piFolder, codexFolder, copilotFolder, githubFolder}

// machineFolders are the ends of the folders in which an administrator keeps settings of the whole machine, and the folders that
// they are like. A project may well be called claude-code, so the folder above counts, too.
var machineFolders = []struct{ above, name, like string }{
	{"etc", "claude-code", claudeFolder},
	{"application support", "claudecode", claudeFolder},
	{"program files", "claudecode", claudeFolder},
	{"programdata", "claudecode", claudeFolder},
	{"etc", "codex", codexFolder},
}

// OwnFolder is the folder of a project in which an installation keeps its environment file.
const OwnFolder = ".capgate"

// OwnEnvFile is the name of an installation's environment file beside a client's settings.
const OwnEnvFile = "capgate.env"

// configHomes are the folders in which programs of a user keep their configuration, each in a folder of its own.
var configHomes = []string{configHome, "application support", "roaming"}

const configHome = ".config"

// OwnFile reports whether the file at a path is an environment file of ours, by its name: in a project, beside a client's
// settings, or in our folder among a user's configuration.
func OwnFile(path string) bool {
	names := namesOf(path)
	folders := names[:len(names)-1]
	n := len(folders)
	return slices.Contains(folders, OwnFolder) ||
		last(names) == OwnEnvFile && SettingsFile(strings.Join(folders, "/")+"/settings.json") ||
		n > 1 && strings.HasSuffix(last(names), ".env") && folders[n-1] == "capgate" && slices.Contains(configHomes, folders[n-2])
}

// OwnFolderAt reports whether the directory at a path is there for environment files of ours: a call that may write any file
// there may write those.
func OwnFolderAt(path string) bool { return OwnFile(filepath.Join(path, "any.env")) }

// SettingsFile reports whether a client takes the file at a path for its settings, or loads hooks, plugins or extensions
// from it. What else is in a client's folder (skills, agents, commands, memory, worktrees) is not meant.
func SettingsFile(path string) bool {
	names := namesOf(strings.TrimSuffix(path, backupSuffix))
	name := last(names)
	parent := names[max(len(names)-2, 0)]
	switch {
	case name == ".mcp.json": // servers
		return true
	case strings.HasPrefix(name, ".claude") && strings.HasSuffix(name, ".json"): // .claude.json: servers, and the trust in a project
		return true
	case name == "hooks.json" && parent == "hooks", parent == ".claude-plugin": // of a plugin
		return true
	}
	for i, folder := range names[:len(names)-1] { // each of them: one client's folder may lie in what another client loads
		for _, m := range machineFolders {
			if i > 0 && folder == m.name && names[i-1] == m.above {
				folder = m.like
			}
		}
		if loads(folder, names[i+1:]) {
			return true
		}
	}
	return false
}

// backupSuffix ends the name of the copy that an uninstallation gives back.
const backupSuffix = ".capgate-backup"

// loads reports whether a client reads settings or hooks from the file of these names in its folder.
func loads(folder string, in []string) bool {
	switch folder {
	case claudeFolder:
		switch in[0] {
		case "hooks", "managed-settings.d":
			return true
		case "plugins": // the client's own list of plugins, and their programs; in data is what each keeps for itself
			return len(in) > 1 && in[1] != "data"
		case "state":
			return settingsName(last(in))
		}
		return len(in) == 1 && (settingsName(in[0]) || in[0] == "hooks.json" || in[0] == ".config.json")
	case ompFolder, piFolder:
		if in[0] == "profiles" && len(in) > 2 {
			in = in[2:]
		}
		if in[0] == "agent" && len(in) > 1 {
			in = in[1:]
		}
		switch in[0] {
		case "extensions", "hooks", "tools", "plugins", "npm", "git": // the last two are pi's packages
			return true
		}
		return len(in) == 1 && (settingsName(in[0]) || configName(in[0]) || in[0] == "mcp.json")
	case codexFolder:
		return in[0] == "hooks" || len(in) == 1 && (configName(in[0]) || in[0] == "hooks.json" || in[0] == "requirements.toml")
	case copilotFolder:
		return in[0] == "hooks" || len(in) == 1 && (settingsName(in[0]) || configName(in[0]) || in[0] == "hooks.json" || in[0] == "mcp-config.json")
	case githubFolder:
		return in[0] == "hooks" || in[0] == "copilot" && settingsName(last(in))
	}
	return false
}

// SettingsFolder reports whether a client reads settings from the directory at a path: a call that may write any file there
// may write those.
func SettingsFolder(path string) bool {
	return SettingsFile(filepath.Join(path, "settings.json")) || SettingsFile(filepath.Join(path, "hooks.json"))
}

// configName reports whether clients call their configuration so; Codex's profiles have their own name before it.
func configName(name string) bool {
	return slices.Contains([]string{"config.yml", "config.yaml", "config.json", "config.toml", "managed_config.toml"}, name) ||
		strings.HasSuffix(name, ".config.toml")
}

// settingsNames begin the names of settings files, which end with one of settingsEnds.
var (
	settingsNames = []string{"settings", "managed-settings", "remote-settings", "cowork_settings", "hybrid-settings"}
	settingsEnds  = []string{".json", ".yml", ".yaml"}
)

// settingsName reports whether clients call their settings so.
func settingsName(name string) bool {
	return slices.Contains(settingsEnds, filepath.Ext(name)) &&
		slices.ContainsFunc(settingsNames, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// namesOf are the names in a path, at least one, each spelled in the one way that stands for all those which some file system
// takes for the same: in lower case, and without characters that it ignores.
func namesOf(path string) []string {
	return strings.Split(strings.Map(plainLetter, filepath.ToSlash(path)), "/")
}

// plainLetter returns what stands for a character, -1 for one that is ignored: HFS+ ignores those that cannot be seen, and file
// systems that ignore case do so for all letters of Unicode, of which some (ſ, K) are ASCII ones then.
func plainLetter(r rune) rune {
	if 'a' <= r && r <= 'z' || r < 0x80 && (r < 'A' || r > 'Z') {
		return r
	}
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return unicode.ToLower(least)
}

func last(names []string) string { return names[len(names)-1] }

// MayHoldHook reports whether a file of this name may hold our hook, wherever it is: settings can be given to a client from
// any place. Then [HoldsHook] says whether it does.
func MayHoldHook(path string) bool {
	name := last(namesOf(path))
	return settingsName(name) && strings.HasSuffix(name, ".json") || name == "hooks.json" || name == "capgate.ts"
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
	"CLAUDE_CONFIG_DIR":            claudeFolder,
	"CLAUDE_CODE_PLUGIN_CACHE_DIR": claudeFolder + "/plugins",
	"CODEX_HOME":                   codexFolder,
	"COPILOT_HOME":                 copilotFolder,
	"PI_CODING_AGENT_DIR":          piFolder,
	"XDG_CONFIG_HOME":              configHome,
}

// NamedFolders are the variables that give a client's folder in the home directory another name.
var NamedFolders = map[string]string{"PI_CONFIG_DIR": ompFolder}

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
