package gates

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// What follows says which files hold a client's hooks, and with them the bounds of a session. [Guard] asks before such a
// file is written.

// settingsNames are the names of files in which clients keep hooks: Claude Code's settings, a plugin's hooks, and the
// extension that capgate writes for Oh My Pi. Names are compared ignoring case, as some file systems do.
var settingsNames = []string{"settings.json", "settings.local.json", "managed-settings.json", "hooks.json", "capgate.ts"}

// clientFolders are the folders below which a client reads files of these names as its settings.
var clientFolders = []string{".claude", ".omp"}

// settingsWords are words by which a text for a settings file says something of our hook, or switches all hooks off.
var settingsWords = []string{"CAPGATE_", "disableAllHooks"}

// MaxSettings bounds how much of a settings file is looked at, in bytes.
const MaxSettings = 4 << 20

// SettingsName reports whether a client may keep hooks in a file of this name, wherever it is. The name may have a path
// in front of it.
func SettingsName(path string) bool {
	return slices.Contains(settingsNames, strings.ToLower(filepath.Base(path)))
}

// ClientSettings reports whether a client reads the file at this path as its settings, by its name and a folder above it.
func ClientSettings(path string) bool {
	folders := strings.Split(strings.ToLower(filepath.ToSlash(filepath.Dir(path))), "/")
	return SettingsName(path) && slices.ContainsFunc(folders, func(f string) bool { return slices.Contains(clientFolders, f) })
}

// BoundsHook reports whether texts for a settings file would say something of our hook, or switch all hooks off.
func BoundsHook(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(settingsWords, func(word string) bool { return strings.Contains(text, word) })
	})
}

// HoldsHook reports whether a settings file has our hook in it, by what came of reading it. One that cannot be read counts
// as if it had, and one that does not exist has none.
func HoldsHook(text []byte, err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || bytes.Contains(text, []byte("capgate"))
}

// MaxWrites bounds how many paths of one call are looked at. A call that names more counts as one that may write anywhere
// ([AnyPath]).
const MaxWrites = 500

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
