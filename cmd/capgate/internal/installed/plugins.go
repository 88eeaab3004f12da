package installed

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/cmd/capgate/internal/lazy"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/scope"
)

// plugins returns the plugins whose hook is ours: those that are installed from a marketplace, and those of which there is
// no more to be seen than the state that their hook keeps, as of a folder that was given by --plugin-dir.
func plugins(env capgate.Lookup, claude string) []Entry {
	if claude == "" {
		return nil
	}
	data := filepath.Join(claude, "plugins", "data")
	var found []Entry
	add := func(name, file, dir string, h settings.Hook) {
		e := Entry{Client: client.Claude, Place: Plugin, File: file, Plugin: name}
		e.Config, e.Settings = read(h, func(name string) (string, bool) {
			if name == "CLAUDE_PLUGIN_DATA" {
				return filepath.Join(data, dir), true
			}
			return env(name)
		})
		if !slices.ContainsFunc(found, func(other Entry) bool { return other.State() == e.State() }) {
			found = append(found, e)
		}
	}
	list := installedPlugins(filepath.Join(claude, "plugins", "installed_plugins.json"))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		for _, h := range pluginHooks(list[name]) {
			add(name, list[name], DataName(name), h)
		}
	}
	kept, _ := os.ReadDir(data)
	for _, dir := range kept {
		if path := filepath.Join(data, dir.Name()); hasState(path) {
			add("", path, dir.Name(), settings.Hook{Args: []string{"--env", "CAPGATE_ENABLED=1"}})
		}
	}
	return found
}

// DataName is what Claude Code 2.1.332 calls the data directory of a plugin, "capgate-market" for "capgate@market".
func DataName(plugin string) string { return notInNames().ReplaceAllString(plugin, "-") }

var notInNames = lazy.Regexp(`[^A-Za-z0-9_-]`)

// hasState reports whether a directory is the state of a hook of ours.
func hasState(dir string) bool {
	for _, name := range []string{"ledger.db", scope.DirName, decisionlog.FileName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// installedPlugins returns the directories of the client's installed plugins by their names.
func installedPlugins(path string) map[string]string {
	var file struct {
		Plugins map[string]json.RawMessage `json:"plugins"`
	}
	text, err := settings.ReadFile(path)
	if err != nil || json.Unmarshal(text, &file) != nil {
		return nil
	}
	type install struct {
		Path string `json:"installPath"`
	}
	dirs := map[string]string{}
	for name, value := range file.Plugins {
		var all []install
		if json.Unmarshal(value, &all) != nil { // older clients have one in the place of a list
			all = make([]install, 1)
			_ = json.Unmarshal(value, &all[0])
		}
		for _, i := range all {
			if i.Path != "" {
				dirs[name] = i.Path
			}
		}
	}
	return dirs
}

// pluginHooks returns the entries of ours in a plugin.
func pluginHooks(dir string) []settings.Hook {
	text, err := settings.ReadFile(filepath.Join(dir, "hooks", "hooks.json"))
	if err != nil {
		return nil
	}
	doc, err := settings.Parse(text)
	if err != nil {
		return nil
	}
	return doc.Hooks(settings.Judged, settings.IsOurs)
}
