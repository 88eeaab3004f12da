package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/paths"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/scope"
)

// Gather reads the facts of one stage, of which the stages before it are known. ctx bounds waiting for locks. Only
// [capgate.StageAdmission] changes anything outside: it uses an admission up.
func Gather(ctx context.Context, f capgate.Facts, stage capgate.Stage) capgate.Facts {
	f.Known = stage
	switch stage {
	case capgate.StageSpec:
		if f.NeedsSpec() {
			f.Spec, f.SpecErr = ReadSpec(f.Config.Spec)
		}
		if f.NeedsAdmitted() {
			if state, ok := f.Config.StateDir(); ok { // else nothing can have been admitted
				f.Admitted, f.AdmittedErr = admission.Types(state, f.Call.Session)
			}
		}
		if state, ok := f.Config.StateDir(); ok && f.NeedsAdmissible() {
			f.Admissible, _ = admission.Open(state, f.Call.Session, f.Now) // what cannot be read lets none start
		}
		if gates.Writes(f.Call.Tool) {
			gatherWrites(&f)
		}
	case capgate.StageMarker:
		gatherMarker(&f)
	case capgate.StageLedger:
		var path string
		if path, f.LedgerErr = f.Config.LedgerPath(); f.LedgerErr == nil {
			f.Budget, f.LedgerErr = ledger.NewFile(path, ledger.Options{}).
				Budget(ctx, f.Marker.Run, (*ledger.Anchor)(f.Marker.Anchor))
		}
	case capgate.StageAdmission:
		state, _ := f.Config.StateDir()
		// What cannot be looked up is not admitted: the call is asked about or denied, as without admissions.
		if ids, ok, err := admission.Take(ctx, state, AdmissionCall(f.Call), f.Now); err == nil && ok {
			f.AdmittedBy = strings.Join(ids, ",")
		}
	}
	return f
}

// AdmissionCall is the call as the store of admissions knows it.
func AdmissionCall(c gates.Call) admission.Call {
	return admission.Call{Session: c.Session, AgentID: c.AgentID, ToolUseID: c.UseID, Input: c.Input, Types: gates.SpawnTypes(c)}
}

// gatherMarker reads the session's marker, or that of the session which the client has just left for this one: a background
// agent's calls carry the new id before anybody was told of it.
func gatherMarker(f *capgate.Facts) {
	state, _ := f.Config.StateDir()
	f.Marker, f.MarkerErr = scope.Read(state, f.Call.Session)
	if !errors.Is(f.MarkerErr, scope.ErrNone) {
		return
	}
	if f.Parent != "" {
		if m, err := scope.Read(state, f.Parent); !errors.Is(err, scope.ErrNone) {
			f.Marker, f.MarkerErr, f.Inherited = m, err, true
			return
		}
	}
	if from, ok := scope.Left(state, f.Call.Session, f.ClientPID, f.Now); ok {
		f.Marker, f.MarkerErr = scope.Read(state, from)
		f.Cleared = true
	}
}

// maxSpec bounds a spec file, in bytes.
const maxSpec = 1 << 20

// ReadSpec reads the spec file, which must be a regular one at an absolute path. Errors name the file.
func ReadSpec(path string) (gates.Spec, error) {
	if !filepath.IsAbs(path) {
		return gates.Spec{}, fmt.Errorf("spec %s: %w: the path is relative, and the hook runs in another directory: name an absolute one", path, gates.ErrSpec)
	}
	text, err := disk.ReadRegular(path, maxSpec)
	if err != nil {
		return gates.Spec{}, fmt.Errorf("spec %s: %w", path, disk.Bare(err))
	}
	s, err := gates.ParseSpec(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return gates.Spec{}, fmt.Errorf("spec %s: %w", path, err)
	}
	return s, nil
}

// gatherWrites fills in where a write tool's call would write, and what must not be written.
func gatherWrites(f *capgate.Facts) {
	spelled := gates.WritePaths(f.Call)
	if len(spelled) == 0 {
		return
	}
	if spelled[len(spelled)-1] == gates.AnyPath {
		f.Writes = []gates.FileWrite{{Any: true}}
		return
	}
	var known paths.Known // of which a path may be another name
	f.Protected = protected(f.Config, &known)
	home, _ := os.UserHomeDir()
	project, _ := os.LookupEnv("CLAUDE_PROJECT_DIR")
	folders := clientFolders(os.LookupEnv, home, []string{home, f.Call.Dir, project}, &known)
	settings := settingsFiles(folders, &known)
	f.Writes = nil
	seen := map[gates.FileWrite]bool{}
	for _, path := range spelled {
		w := gates.FileWrite{}
		path, w.Tree = gates.WriteRoot(f.Call.Tool, path)
		w.Path = paths.Absolute(path, f.Call.Dir, home)
		if seen[w] {
			continue
		}
		seen[w] = true
		named := w.Path
		var err error
		if w.Path, err = paths.Resolve(named); errors.Is(err, paths.ErrTooLong) {
			continue
		}
		w.PerProcess = err != nil
		if w.Path = known.Rename(w.Path); w.Tree {
			w.Path = known.Ancestor(w.Path)
		}
		for _, name := range slices.Concat(folders.names(named), folders.names(w.Path)) {
			w.Own = w.Own || gates.OwnFile(name) || w.Tree && gates.OwnFolderAt(name)
			w.Settings = w.Settings || gates.SettingsFile(name) || w.Tree && gates.SettingsFolder(name)
		}
		w.Settings = w.Settings || settings[w.Path] || gates.MayHoldHook(w.Path) && gates.HoldsHook(disk.ReadRegular(w.Path, gates.MaxSettings))
		f.Writes = append(f.Writes, w)
	}
}

// protected are the files of this entry. What it names by a relative path is none of them: it is nobody's file.
func protected(c capgate.Config, known *paths.Known) (p gates.Protected) {
	add := func(path string) {
		if filepath.IsAbs(path) {
			p.Files = append(p.Files, known.Add(path))
		}
	}
	if state, ok := c.StateDir(); ok && !c.PluginState {
		p.StateDir = known.Add(state)
	} else if ok {
		for _, name := range capgate.StateNames {
			add(filepath.Join(state, name))
		}
	}
	if path, err := c.LedgerPath(); err == nil {
		for _, file := range ledger.Files(path) {
			add(file)
		}
	}
	add(c.EnvFile)
	if filepath.IsAbs(c.Spec) && c.GatesActive() {
		p.Spec = known.Add(c.Spec)
	}
	for _, program := range programs() {
		p.Programs = append(p.Programs, known.Add(program))
	}
	return p
}

// folders are those in which clients keep their settings, and we ours, by what they are called where that tells what they are.
// They have other names, too: a variable moves them, a link leads to them, they are mounted in a second place.
type folders map[string]string

// clientFolders are those which a client that was started here reads. The home is where it looks for them unless it is told
// otherwise; of the bases each may have some.
func clientFolders(lookup capgate.Lookup, home string, bases []string, known *paths.Known) folders {
	all := folders{}
	add := func(dir, usual string) {
		if !filepath.IsAbs(dir) || !exists(dir) && filepath.Base(dir) == usual {
			return // what is not there has no other name
		}
		all[filepath.Clean(dir)] = usual
		if real := known.Add(dir); real != "" {
			all[real] = usual
		}
	}
	for name, usual := range gates.ToldFolders {
		dir, _ := lookup(name)
		add(dir, usual)
	}
	for name, usual := range gates.NamedFolders {
		if dir, _ := lookup(name); dir != "" {
			add(filepath.Join(home, dir), usual)
		}
	}
	for _, base := range bases {
		for _, folder := range append([]string{gates.OwnFolder}, gates.ClientFolders...) {
			add(filepath.Join(base, folder), folder)
		}
	}
	return all
}

// settingsFiles are the settings in these folders, by the names that they really have: links to them, and other names of the
// same file, are as good as their own.
func settingsFiles(folders folders, known *paths.Known) map[string]bool {
	files := map[string]bool{}
	for folder, usual := range folders {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			if path := filepath.Join(folder, name); gates.SettingsFile("/"+usual+"/"+name) && exists(path) {
				files[known.Add(path)] = true
			}
		}
	}
	return files
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// names returns a path, and what it would be called in each such folder that it is in.
func (all folders) names(path string) []string {
	names := []string{path}
	for dir, usual := range all {
		if rest, ok := strings.CutPrefix(path, dir); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
			names = append(names, string(filepath.Separator)+usual+rest)
		}
	}
	return names
}

// programs are the one that runs, and capgate's beside it. Where the one that runs cannot be told there is none.
func programs() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	self, err = paths.Resolve(self)
	if err != nil {
		return nil
	}
	return gates.Programs(self)
}
