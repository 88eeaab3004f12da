package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	process "github.com/capgate/capgate/cmd/capgate/internal/client"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/cmd/capgate/internal/sessions"
	"github.com/capgate/capgate/cmd/capgate/internal/setup"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/ledger"
)

// gather reads all that the checks look at, as it counts in the current directory.
func gather(ctx context.Context, a *cli.App, bin string) (Examination, error) {
	x := Examination{
		Now: a.Now(), Shell: a.Lookup, Files: osFiles{},
	}
	x.Canary = func(h settings.Hook, capped capgate.Tools) error { return canary(ctx, h, capped) }
	if err := x.gatherLayers(); err != nil {
		return x, err
	}
	x.Config = capgate.LoadConfig(x.effective)
	x.Config.Problem = x.EntryErr
	if state, err := a.StateDir(); err == nil {
		x.ShellState = state
	}
	if hooks, _ := x.hooks(settings.Judged); x.Config.DataDir == "" && len(hooks)+len(x.plugins())+len(x.Extensions) == 0 {
		x.Config.DataDir = x.ShellState // no hook has one: what the loop counts is looked at all the same
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
	for _, path := range installed.ManagedSettings() {
		if x.hasFile(path) {
			continue
		}
		if layer := readLayer(placeManaged, path); layer.Text != nil || layer.Err != nil {
			x.Layers = append(x.Layers, layer)
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	x.Extensions = installed.Extensions(x.Shell, dir)
	x.gatherEntry(dir)
	return nil
}

// gatherEntry finds what the installation's own environment file says: of the strongest entry, or of Oh My Pi's extension
// where no settings file has one.
func (x *Examination) gatherEntry(dir string) {
	hooks, _ := x.hooks(settings.Judged)
	var envFile string
	switch {
	case len(hooks) > 0:
		var err error
		if x.Entry, envFile, err = hook.ParseEntry(hooks[len(hooks)-1].Arguments()); err != nil {
			return // the canary says so
		}
	case len(x.plugins()) == 0 && len(x.Extensions) > 0:
		e := x.Extensions[len(x.Extensions)-1]
		x.Layers = append(x.Layers, envLayer(placeOMP, e.Path, e.Env, nil))
		envFile = e.EnvFile
		x.Entry.HasFile = envFile != ""
	}
	if envFile == "" {
		return
	}
	path, err := hook.EnvFilePath(envFile, func(name string) (string, bool) {
		if name == "CLAUDE_PROJECT_DIR" {
			return dir, true
		}
		return x.Shell(name)
	})
	if err == nil {
		x.Entry.File, err = hook.ReadEnvFile(path)
	}
	x.EntryErr = err
	x.Layers = append(x.Layers, envLayer(placeEnvFile, path, x.Entry.File, err))
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
	text, err := settings.ReadFile(path)
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

// envLayer is an environment file as a settings file: with an env block only.
func envLayer(place, path string, vars map[string]string, err error) *Layer {
	l := &Layer{Place: place, Path: path, Err: err}
	if err != nil {
		return l
	}
	text, err := json.Marshal(map[string]any{"env": vars})
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
	x.Said = control.Read(state, x.Now)
	_, x.AdmissionsErr = admission.List(state)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	x.Sessions, x.MarkersErr = sessions.List(ctx, state, x.Config.ScopeTTL.Duration(capgate.DefaultScopeTTL), x.Now, l)
	if x.LedgerErr != nil {
		x.Sessions = nil // what is wrong with the ledger is said of the ledger
	}
}

// osFiles looks at the real files.
type osFiles struct{}

func (osFiles) Stat(path string) (fs.FileInfo, error)  { return os.Stat(path) }
func (osFiles) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
