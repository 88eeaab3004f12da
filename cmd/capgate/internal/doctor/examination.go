package doctor

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/cmd/capgate/internal/lazy"
	"github.com/capgate/capgate/cmd/capgate/internal/sessions"
	"github.com/capgate/capgate/cmd/capgate/internal/setup"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
)

// Examination is what the checks look at.
type Examination struct {
	Layers     []*Layer              // the client's settings files, weakest first
	Extensions []installed.Extension // ours, of Oh My Pi
	Entry      capgate.Entry         // what the strongest entry says of its configuration
	EntryErr   error                 // why its environment file cannot be used
	Client     Client
	Now        time.Time

	Shell      capgate.Lookup // this shell's environment
	ShellState string         // the state directory that this shell's commands use; "" = there is none
	Config     capgate.Config // the hook's
	Said       control.State  // what an operator says at once in the hook's state directory

	Spec          gates.Spec // that the hook's configuration names
	SpecErr       error
	AdmissionsErr error // of reading the admissions in the hook's state directory

	Ledger     string // the hook's ledger file
	LedgerErr  error  // the configuration names none that can be one
	Report     ledger.Report
	ReportErr  error
	Sessions   []sessions.Session
	MarkersErr error

	Files Files
	// Canary runs an installed entry on canary calls, in a scratch state directory, with the list of capped tools that is in force.
	Canary func(h settings.Hook, capped capgate.Tools) error
}

// Files looks at files, as package os does.
type Files interface {
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
}

// Client is the client's program.
type Client struct {
	Program string // "" = it is not on PATH
	Version string // "" = it says none
	Said    string // when it was asked for its version
	Err     error
}

// Places of layers beyond the scopes that install knows.
const (
	placeManaged = "managed"
	placeOMP     = "omp"
	placeEnvFile = "environment file"
)

// Layer is one settings file of the client.
type Layer struct {
	Place string // a scope of install, "managed", "omp" or "environment file"
	Path  string
	Text  []byte
	Doc   *settings.Doc // nil where there is no file, or a broken one
	Err   error
}

// layerOf returns the strongest settings file that sets a variable.
func (x Examination) layerOf(name string) (value string, layer *Layer) {
	for _, l := range x.Layers {
		if l.Doc == nil {
			continue
		}
		if v, ok := l.Doc.Env(name); ok {
			value, layer = v, l
		}
	}
	return value, layer
}

// effective is what the hook reads its configuration from: this shell's environment, over it the settings', and what its
// entry says.
func (x Examination) effective(name string) (string, bool) { return x.Entry.Settings(x.around)(name) }

// around is the environment that the client gives to its hooks: this shell's, and over it the settings'.
func (x Examination) around(name string) (string, bool) {
	for _, l := range slices.Backward(x.Layers) {
		if l.Doc == nil || l.Place == placeEnvFile {
			continue
		}
		if v, ok := l.Doc.Env(name); ok {
			return v, true
		}
	}
	return x.Shell(name)
}

// ignored are the settings in that environment that say something else than the entry's environment file, which counts.
func (x Examination) ignored() (all []capgate.Variable) {
	if !x.Entry.HasFile || x.EntryErr != nil {
		return nil
	}
	counts := capgate.Variables(x.effective)
	for i, v := range capgate.Variables(x.around) {
		place := v.Name == "CAPGATE_DATA_DIR" || v.Name == "CAPGATE_LEDGER" // said of the state
		if v.Value != "" && v.Value != counts[i].Value && !place && !strings.Contains(v.Name, "DISABLE") {
			all = append(all, v)
		}
	}
	return all
}

// groups returns the installed entries for an event and their matchers, with the files they stand in.
func (x Examination) groups(event string) (groups []settings.Group, layers []*Layer) {
	for _, l := range x.Layers {
		if l.Doc == nil {
			continue
		}
		for _, g := range l.Doc.Groups(event, settings.IsOurs) {
			groups, layers = append(groups, g), append(layers, l)
		}
	}
	return groups, layers
}

// hooks returns the commands that are installed for an event, with the files they stand in.
func (x Examination) hooks(event string) (hooks []settings.Hook, layers []*Layer) {
	for _, l := range x.Layers {
		if l.Doc == nil {
			continue
		}
		for _, h := range l.Doc.Hooks(event, settings.IsOurs) {
			hooks, layers = append(hooks, h), append(layers, l)
		}
	}
	return hooks, layers
}

var enabledPlugin = lazy.Regexp(`"(capgate@[^"]+)"\s*:\s*true`)

// plugins returns the capgate plugins that the settings enable.
func (x Examination) plugins() []string {
	var found []string
	for _, l := range x.Layers {
		for _, m := range enabledPlugin().FindAllSubmatch(l.Text, -1) {
			if name := "plugin " + string(m[1]); !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

// install is the command that mends the installation in a layer.
func (l *Layer) install() string {
	switch {
	case l.Place == setup.ScopeUser || l.Place == placeManaged:
		return "capgate install"
	case l.Place == placeOMP:
		return "capgate install --client omp"
	}
	return fmt.Sprintf("capgate install --scope %s (in %s)", l.Place, filepath.Dir(filepath.Dir(l.Path)))
}
