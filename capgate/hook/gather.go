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
	"slices"
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
		// What cannot be looked up is not admitted: the call is asked about or denied, as without admissions.
		if ids, ok, err := admission.Take(ctx, state, f.Call.Session, f.Call.UseID, gates.SpawnTypes(f.Call), f.Now); err == nil && ok {
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

// maxWrites bounds how many paths of one call are looked at. A call that names more counts as one that may write
// anywhere: looking at all of them would outlast the deadline.
const maxWrites = 500

// gatherWrites fills in where a write tool's call would write, and what must not be written.
func gatherWrites(f *capgate.Facts) {
	paths := gates.WritePaths(f.Call)
	if len(paths) == 0 {
		return
	}
	var targets []target // of which a path may be another name
	protect := func(path string) string {
		path, _ = resolve(path)
		if path != "" {
			info, _ := os.Stat(path)
			targets = append(targets, target{path, info})
		}
		return path
	}
	f.Protected = gates.Protected{}
	if state, ok := f.Config.StateDir(); ok {
		f.Protected.StateDir = protect(state)
	}
	if file, err := f.Config.LedgerPath(); err == nil {
		f.Protected.Ledger = protect(file)
	}
	if f.Config.Spec != "" && f.Config.GatesActive() {
		f.Protected.Spec = protect(f.Config.Spec)
	}
	for _, program := range programs() {
		f.Protected.Programs = append(f.Protected.Programs, protect(program))
	}
	home, _ := os.UserHomeDir()
	says := bounds(gates.WriteTexts(f.Call))
	f.Call.Writes = nil
	seen := map[gates.FileWrite]bool{}
	for _, path := range paths {
		w := gates.FileWrite{}
		path, w.Tree = gates.WriteRoot(f.Call.Tool, path)
		w.Path = absolute(path, f.Call.Dir, home)
		if seen[w] {
			continue
		}
		if seen[w] = true; len(seen) > maxWrites {
			f.Call.Writes = append(f.Call.Writes, gates.FileWrite{Path: root(w.Path), Tree: true})
			return
		}
		spelled := w.Path
		var ok bool
		if w.Path, ok = resolve(spelled); !ok {
			continue
		}
		if w.Path = sameFile(w.Path, targets); w.Tree {
			w.Path = sameAsAncestor(w.Path, targets)
		}
		w.HoldsHook = holdsHook(w.Path) || says && (clientSettings(w.Path) || clientSettings(spelled))
		f.Call.Writes = append(f.Call.Writes, w)
	}
}

// programs are the one that runs, and capgate's beside it: the hook may be either, and capgate explain answers for it.
func programs() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	self, ok := resolve(self)
	if !ok {
		return nil
	}
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

// absolute returns the path that a client makes of one that its model spelled.
func absolute(path, dir, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		path = home + rest
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

const (
	maxPath  = 4096 // bytes of a path; nothing can be written where it is longer
	maxLinks = 40   // symlinks that are followed in one path, as the kernel does
)

// resolve returns the path with every symlink followed, also one whose target does not exist yet: that is the file
// that a write would create. What cannot be looked at stays as it is. ok is false for a path that is too long to be one.
//
// It looks at each component once, and at none below one that is missing.
func resolve(path string) (resolved string, ok bool) {
	path = filepath.Clean(path)
	if len(path) > maxPath {
		return "", false
	}
	const separator = string(filepath.Separator)
	done := root(path)
	rest := strings.Split(path[len(done):], separator)
	slices.Reverse(rest) // the next component is the last one
	links, missing := 0, false
	for len(rest) > 0 {
		name := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		switch name {
		case "", ".":
			continue
		case "..":
			done, missing = filepath.Dir(done), false
			continue
		}
		next := done + name
		if done != "" && !os.IsPathSeparator(done[len(done)-1]) {
			next = done + separator + name
		}
		if !missing {
			info, err := os.Lstat(next)
			missing = err != nil
			if err == nil && info.Mode()&fs.ModeSymlink != 0 {
				to, err := os.Readlink(next)
				if links++; err != nil || links > maxLinks {
					return path, true
				}
				to = filepath.FromSlash(to)
				if filepath.IsAbs(to) {
					done = root(to)
					to = to[len(done):]
				}
				names := strings.Split(to, separator)
				slices.Reverse(names)
				rest = append(rest, names...)
				continue
			}
		}
		done = next
	}
	return done, true
}

// root returns the root that an absolute path begins with, "" for a relative one.
func root(path string) string {
	volume := len(filepath.VolumeName(path))
	if len(path) > volume && os.IsPathSeparator(path[volume]) {
		volume++
	}
	return path[:volume]
}

// target is a path that may have other names.
type target struct {
	path string
	info fs.FileInfo // nil where it does not exist
}

// sameFile returns path with the lowest ancestor that is the very file of a target, under whatever name, called by the
// target's: on file systems that ignore case one file has many names, and so it has under a second mount.
func sameFile(path string, targets []target) string {
	same := path
	for end := len(root(path)); end <= len(path); end++ {
		if end < len(path) && end > len(root(path)) && !os.IsPathSeparator(path[end]) {
			continue
		}
		info, err := os.Stat(path[:end])
		if errors.Is(err, fs.ErrNotExist) {
			break // and so is all below it
		}
		for _, t := range targets {
			if err == nil && t.info != nil && os.SameFile(info, t.info) {
				same = filepath.Join(t.path, path[end:])
			}
		}
	}
	return same
}

// sameAsAncestor returns the ancestor of a target that is the very directory at path, else path.
func sameAsAncestor(path string, targets []target) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	for _, t := range targets {
		for dir := t.path; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if at, err := os.Stat(dir); err == nil && os.SameFile(info, at) {
				return dir
			}
		}
	}
	return path
}

// clientSettings reports whether a client reads the file as its settings, by its name and a directory above it.
func clientSettings(path string) bool {
	names := strings.Split(strings.ToLower(filepath.ToSlash(path)), "/")
	last := len(names) - 1
	return slices.Contains(settingsFiles, names[last]) &&
		(slices.Contains(names[:last], ".claude") || slices.Contains(names[:last], ".omp"))
}

// bounds reports whether text for a settings file would say something of our hook, or switch all hooks off.
func bounds(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(text, "CAPGATE_") || strings.Contains(text, "disableAllHooks")
	})
}

// settingsFiles are the names of files in which clients keep hooks: Claude Code's settings, a plugin's hooks, and the
// extension that capgate writes for Oh My Pi.
var settingsFiles = []string{"settings.json", "settings.local.json", "managed-settings.json", "hooks.json", "capgate.ts"}

// maxSettings bounds how much of a settings file is looked at, in bytes.
const maxSettings = 4 << 20

// holdsHook reports whether the file is a client's settings with our hook in it. A settings file that cannot be read
// counts as one.
func holdsHook(path string) bool {
	if !slices.Contains(settingsFiles, strings.ToLower(filepath.Base(path))) {
		return false
	}
	text, err := readRegular(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || bytes.Contains(text, []byte("capgate"))
}
