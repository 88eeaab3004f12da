package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		if ids, ok, err := admission.Take(ctx, state, f.Call.Session, f.Call.UseID, gates.SpawnTypes(f.Call), f.Now); err == nil && ok {
			f.AdmittedBy = strings.Join(ids, ",")
		}
	}
	return f
}

// gatherMarker reads the session's marker, or that of the session which the client has just left for this one: a background
// agent's calls carry the new id before anybody was told of it.
func gatherMarker(f *capgate.Facts) {
	state, _ := f.Config.StateDir()
	f.Marker, f.MarkerErr = scope.Read(state, f.Call.Session)
	if !errors.Is(f.MarkerErr, scope.ErrNone) {
		return
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
	f.Protected = gates.Protected{}
	if state, ok := f.Config.StateDir(); ok {
		f.Protected.StateDir = known.Add(state)
	}
	if file, err := f.Config.LedgerPath(); err == nil {
		f.Protected.Ledger = known.Add(file)
	}
	if f.Config.Spec != "" && f.Config.GatesActive() {
		f.Protected.Spec = known.Add(f.Config.Spec)
	}
	for _, program := range programs() {
		f.Protected.Programs = append(f.Protected.Programs, known.Add(program))
	}
	home, _ := os.UserHomeDir()
	bounds := gates.BoundsHook(gates.WriteTexts(f.Call))
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
		var ok bool
		if w.Path, ok = paths.Resolve(named); !ok {
			continue
		}
		if w.Path = known.Rename(w.Path); w.Tree {
			w.Path = known.Ancestor(w.Path)
		}
		w.HoldsHook = holdsHook(w.Path) || bounds && (gates.ClientSettings(w.Path) || gates.ClientSettings(named))
		f.Writes = append(f.Writes, w)
	}
}

// programs are the one that runs, and capgate's beside it. Where the one that runs cannot be told there is none.
func programs() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	self, ok := paths.Resolve(self)
	if !ok {
		return nil
	}
	return gates.Programs(self)
}

// holdsHook reads a file that may be a client's settings.
func holdsHook(path string) bool {
	if !gates.SettingsName(path) {
		return false
	}
	return gates.HoldsHook(disk.ReadRegular(path, gates.MaxSettings))
}
