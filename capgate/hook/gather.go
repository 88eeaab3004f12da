package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
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
		state, _ := f.Config.StateDir()
		f.Marker, f.MarkerErr = scope.Read(state, f.Call.Session)
	case capgate.StageLedger:
		var path string
		if path, f.LedgerErr = f.Config.LedgerPath(); f.LedgerErr == nil {
			f.Budget, f.LedgerErr = ledger.NewFile(path, ledger.Options{}).
				Budget(ctx, f.Marker.Run, (*ledger.Anchor)(f.Marker.Anchor))
		}
	case capgate.StageAdmission:
		state, _ := f.Config.StateDir()
		var types []string
		for _, s := range gates.Spawns(f.Call) {
			types = append(types, s.Type)
		}
		// What cannot be looked up is not admitted: the call is asked about or denied, as without admissions.
		if ids, ok, err := admission.Take(ctx, state, f.Call.Session, f.Call.UseID, types, f.Now); err == nil && ok {
			f.AdmittedBy = strings.Join(ids, ",")
		}
	}
	return f
}

// maxSpec bounds a spec file, in bytes.
const maxSpec = 1 << 20

// ReadSpec reads the spec file, which must be a regular one at an absolute path. Errors name the file.
func ReadSpec(path string) (gates.Spec, error) {
	if !filepath.IsAbs(path) {
		return gates.Spec{}, fmt.Errorf("spec %s: %w: the path is relative, and the hook runs in another directory: name an absolute one", path, gates.ErrSpec)
	}
	text, err := readRegular(path, maxSpec)
	if err != nil {
		return gates.Spec{}, fmt.Errorf("spec %s: %w", path, err)
	}
	s, err := gates.ParseSpec(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return gates.Spec{}, fmt.Errorf("spec %s: %w", path, err)
	}
	return s, nil
}

// readRegular reads a regular file of at most limit bytes; it never waits for the other end of a FIFO.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is in the caller's message
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return text, err
}

// gatherWrites fills in where a write tool's call would write, and what must not be written.
func gatherWrites(f *capgate.Facts) {
	paths := gates.WritePaths(f.Call)
	if len(paths) == 0 {
		return
	}
	var targets []string // of which a path may be another name
	if state, ok := f.Config.StateDir(); ok {
		f.Protected.StateDir = resolve(state)
		targets = append(targets, f.Protected.StateDir)
	}
	if file, err := f.Config.LedgerPath(); err == nil {
		f.Protected.Ledger = resolve(file)
		targets = append(targets, f.Protected.Ledger)
	}
	if f.Config.Spec != "" && f.Config.GatesActive() {
		f.Protected.Spec = resolve(f.Config.Spec)
		targets = append(targets, f.Protected.Spec)
	}
	f.Call.Writes = nil
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(f.Call.Dir, path)
		}
		path = resolve(path)
		for _, target := range targets {
			path = sameAncestor(path, target)
		}
		f.Call.Writes = append(f.Call.Writes, gates.FileWrite{Path: path, HoldsHook: holdsHook(path)})
	}
}

// maxLinks bounds the symlinks that are followed in one path, as the kernel does.
const maxLinks = 40

// resolve returns the path with every symlink followed, also one whose target does not exist yet: that is the file
// that a write would create. What cannot be looked at stays as it is.
func resolve(path string) string {
	path = filepath.Clean(path)
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real
		}
		// The longest part that exists, and the name after it: a dangling link, or nothing.
		dir, rest := path, ""
		for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			if target, linkErr := os.Readlink(dir); linkErr == nil {
				if !filepath.IsAbs(target) {
					target = filepath.Join(resolve(filepath.Dir(dir)), target)
				}
				path = filepath.Join(target, rest)
				break
			}
			rest = filepath.Join(filepath.Base(dir), rest)
			dir = filepath.Dir(dir)
			if real, err = filepath.EvalSymlinks(dir); err == nil {
				return filepath.Join(real, rest)
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return path
}

// sameAncestor returns path with the ancestor that is the very file target, under whatever name, called by target's:
// on file systems that ignore case one file has many names, and so it has under a second mount.
func sameAncestor(path, target string) string {
	want, err := os.Stat(target)
	if err != nil {
		return path
	}
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if info, err := os.Stat(dir); err == nil && os.SameFile(info, want) {
			return filepath.Join(target, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// settingsFiles are the names of files in which clients keep hooks: Claude Code's settings, a plugin's hooks, and the
// extension that capgate writes for Oh My Pi.
var settingsFiles = []string{"settings.json", "settings.local.json", "managed-settings.json", "hooks.json", "capgate.ts"}

// maxSettings bounds how much of a settings file is looked at, in bytes.
const maxSettings = 4 << 20

// holdsHook reports whether the file is a client's settings with our hook in it. A settings file that cannot be read
// counts as one.
func holdsHook(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	for _, s := range settingsFiles {
		if name == s {
			text, err := readRegular(path, maxSettings)
			if errors.Is(err, fs.ErrNotExist) {
				return false
			}
			return err != nil || bytes.Contains(text, []byte("capgate"))
		}
	}
	return false
}
