package doctor

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	process "github.com/capgate/capgate/cmd/capgate/internal/client"
	"github.com/capgate/capgate/cmd/capgate/internal/hearing"
	"github.com/capgate/capgate/cmd/capgate/internal/setup"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// gather reads all that the checks look at, as it counts in the current directory.
func gather(ctx context.Context, a *cli.App, bin string) (Examination, error) {
	x := Examination{
		Now: a.Now(), Shell: a.Lookup, Files: osFiles{},
		Canary: func(h settings.Hook) error { return canary(ctx, h) },
	}
	if err := x.gatherLayers(); err != nil {
		return x, err
	}
	x.Config = capgate.LoadConfig(x.effective)
	if state, err := a.StateDir(); err == nil {
		x.ShellState = state
	}
	if x.Config.Spec != "" {
		x.Spec, x.SpecErr = hook.ReadSpec(x.Config.Spec)
	}
	x.Client = gatherClient(ctx, bin)
	x.gatherState(ctx, max(a.Timeout(), time.Second))
	return x, nil
}

// gatherLayers reads the files of both clients.
func (x *Examination) gatherLayers() error {
	for _, place := range []string{setup.ScopeUser, setup.ScopeProject, setup.ScopeLocal} {
		path, err := setup.Path(x.Shell, client.Claude, place)
		if err != nil {
			return err
		}
		if !x.hasFile(path) { // in the home directory, the project's file is the user's
			x.Layers = append(x.Layers, readLayer(place, path))
		}
	}
	if path := managedSettings(); path != "" && !x.hasFile(path) {
		if layer := readLayer(placeManaged, path); layer.Text != nil || layer.Err != nil {
			x.Layers = append(x.Layers, layer)
		}
	}
	x.Extensions = readExtensions(x.Shell)
	if hooks, _ := x.hooks(settings.Judged); len(hooks) == 0 && len(x.plugins()) == 0 {
		for _, e := range x.Extensions { // then it is their environment that the hook gets
			x.Layers = append(x.Layers, e.layer())
		}
	}
	return nil
}

// hasFile reports whether the file at a path is one of the layers already.
func (x *Examination) hasFile(path string) bool {
	info, err := x.Files.Stat(path)
	return slices.ContainsFunc(x.Layers, func(l *Layer) bool {
		if err != nil {
			return filepath.Clean(l.Path) == filepath.Clean(path)
		}
		other, err := x.Files.Stat(l.Path)
		return err == nil && os.SameFile(info, other)
	})
}

func readLayer(place, path string) *Layer {
	l := &Layer{Place: place, Path: path}
	text, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
	case err != nil:
		l.Err = err
	default:
		l.Text = text
		l.Doc, l.Err = settings.Parse(text)
	}
	return l
}

// managedSettings is where an organisation's settings are, "" where that is not known.
func managedSettings() string {
	for _, dir := range []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"} {
		path := filepath.Join(dir, settings.ManagedFileName)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func readExtensions(lookup capgate.Lookup) (found []Extension) {
	for _, place := range []string{setup.ScopeUser, setup.ScopeProject} {
		path, err := setup.Path(lookup, client.OMP, place)
		if err != nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if command, ours := setup.ExtensionHook(text); ours {
			found = append(found, Extension{Scope: place, Path: path, Hook: command, Env: setup.ExtensionVariables(text)})
		}
	}
	return found
}

// layer is the extension as a settings file: with an env block only.
func (e Extension) layer() *Layer {
	l := &Layer{Place: placeOMP, Path: e.Path}
	text, err := json.Marshal(map[string]any{"env": e.Env})
	if err == nil {
		l.Doc, l.Err = settings.Parse(text)
	}
	return l
}

// gatherClient asks the client for its version.
func gatherClient(ctx context.Context, bin string) (c Client) {
	if bin == "" {
		found, err := exec.LookPath(client.Claude)
		if err != nil {
			return c
		}
		bin = found
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c.Program = bin
	c.Version, c.Said, c.Err = process.Version(ctx, bin)
	return c
}

// gatherState reads what is in the hook's state directory and in its ledger. wait bounds each wait for the ledger.
func (x *Examination) gatherState(ctx context.Context, wait time.Duration) {
	x.Ledger, x.LedgerErr = x.Config.LedgerPath()
	l := ledger.NewFile(x.Ledger, ledger.Options{})
	state, ok := x.Config.StateDir()
	if x.LedgerErr == nil && (ok || x.Config.Ledger != "") {
		walk, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		x.Report, x.ReportErr = l.Verify(walk)
	}
	if !ok {
		return
	}
	_, x.AdmissionsErr = admission.List(state)
	listed, err := scope.List(state)
	if x.MarkersErr = err; err != nil || x.LedgerErr != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ttl := x.Config.ScopeTTL.Duration(capgate.DefaultScopeTTL)
	for _, found := range listed {
		m := Marker{Listed: found, Expired: found.Expired(x.Now, ttl), Hearing: hearing.NotYet}
		u, err := l.Usage(ctx, m.Run)
		if m.UsageErr = err; err == nil && !m.Expired {
			m.Hearing = heard(ctx, state, l, m.Marker, u)
		}
		x.Markers = append(x.Markers, m)
	}
}

// heard says what it means that the hook of an armed session was heard or not.
func heard(ctx context.Context, state string, l ledger.Ledger, m scope.Marker, u ledger.Usage) hearing.Word {
	f := hearing.Facts{Heard: !m.Silent(state), Used: u.Used, NewestAt: u.LastAt, ArmedAt: m.ModTime}
	if hearing.Silence(hearing.Status, f) == hearing.Silent { // else the entries need not be read
		f.Since = turnsSince(ctx, l, m)
	}
	return hearing.Silence(hearing.Doctor, f)
}

// turnsSince counts the turns of a marker's run since it was written.
func turnsSince(ctx context.Context, l ledger.Ledger, m scope.Marker) (turns int) {
	var from uint64
	if m.Anchor != nil {
		from = m.Anchor.Seq + 1
	}
	_ = l.Entries(ctx, from, func(r ledger.Receipt, _ []byte) error {
		if r.Kind == ledger.KindTurn && r.Run == m.Run && r.At.After(m.ModTime) {
			turns++
		}
		return nil
	}) // what cannot be read is said of the ledger
	return turns
}

// osFiles looks at the real files.
type osFiles struct{}

func (osFiles) Stat(path string) (fs.FileInfo, error)  { return os.Stat(path) }
func (osFiles) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
