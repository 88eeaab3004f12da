package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/settings"
)

func newDoctorCmd(a *cli.App) *cobra.Command {
	var bin string
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: cli.GroupClient,
		Short:   "Check that the installed hook works, and say how to mend what does not",
		Long: `Looks at the client's settings (user, project and local, as they count in the current directory), runs the
installed command line itself with canary calls in a scratch state directory and requires that a denial comes back as
exit status 2, and checks the client's version, the switches and where they come from, the state directory, the ledger,
the markers and the spec. Each line says what was found, what it means, and the command that mends it. Nothing is
changed.

Exit status: 0 healthy, perhaps with warnings; 3 when something must be mended; 1 when the check itself failed.`,
		Example: `  capgate doctor
  capgate doctor --json | jq '.findings[] | select(.level != "ok")'`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return doctor(a, cmd.Context(), bin) }),
	}
	cmd.Flags().StringVar(&bin, "bin", "", "the client's program; default claude, as found on PATH")
	return cmd
}

// Levels of a finding.
const (
	levelOK   = "ok"
	levelWarn = "warn"
	levelFail = "fail"
)

// finding is one line of the doctor.
type finding struct {
	Check   string `json:"check"`
	Level   string `json:"level"`          // "ok", "warn" or "fail"
	Found   string `json:"found"`          // what is
	Meaning string `json:"meaning"`        // what that means; "" where it is plain
	Mend    string `json:"mend,omitempty"` // the command that mends it
}

// diagnosis is what `doctor --json` prints.
type diagnosis struct {
	Healthy  bool      `json:"healthy"`
	Findings []finding `json:"findings"`
}

// examination is what the checks look at, gathered once.
type examination struct {
	*cli.App
	ctx    context.Context
	bin    string // the client's program, "" = as found
	config capgate.Config
	files  []*settingsLayer
	found  []finding

	extensions []extension // Oh My Pi's
}

// Places of layers beyond those that install knows.
const (
	placeManaged = "managed"
	placeOMP     = "omp"
)

// settingsLayer is one settings file of the client, weakest first.
type settingsLayer struct {
	place string // "user", "project", "local", "managed" or "omp"
	path  string
	text  []byte
	doc   *settings.Doc // nil where there is no file, or a broken one
	err   error
}

func (x *examination) add(check, level, found, meaning, mend string) {
	x.found = append(x.found, finding{Check: check, Level: level, Found: found, Meaning: meaning, Mend: mend})
}

func doctor(a *cli.App, ctx context.Context, bin string) error {
	x := &examination{App: a, ctx: ctx, bin: bin}
	if err := x.gather(); err != nil {
		return err
	}
	for _, check := range []func(){
		x.checkSettings, x.checkHook, x.checkCopies, x.checkCanary, x.checkClient, x.checkSwitches, x.checkTimes, x.checkState, x.checkLedger,
		x.checkMarkers, x.checkSpec, x.checkOMP,
	} {
		check()
	}
	d := diagnosis{Healthy: true, Findings: x.found}
	failed := 0
	for _, f := range x.found {
		if f.Level == levelFail {
			d.Healthy = false
			failed++
		}
	}
	if a.AsJSON {
		if err := a.JSON(d); err != nil {
			return err
		}
	} else {
		for _, f := range d.Findings {
			a.Printf("%-4s  %s: %s\n", f.Level, f.Check, f.Found)
			if f.Meaning != "" {
				a.Printf("      %s\n", f.Meaning)
			}
			if f.Mend != "" {
				a.Printf("      mend: %s\n", f.Mend)
			}
		}
	}
	if failed > 0 {
		return cli.WithStatus(cli.StatusUnhealthy, fmt.Errorf("%s to mend", cli.Plural(failed, "thing")))
	}
	return nil
}

// gather reads the settings files that count in the current directory.
func (x *examination) gather() error {
	for _, place := range []string{scopeUser, scopeProject, scopeLocal} {
		path, err := settingsFile(x.App, installOptions{client: "claude", scope: place})
		if err != nil {
			return err
		}
		if !x.hasFile(path) { // in the home directory, the project's file is the user's
			x.files = append(x.files, readLayer(place, path))
		}
	}
	if path := managedSettings(); path != "" && !x.hasFile(path) {
		if layer := readLayer(placeManaged, path); layer.text != nil || layer.err != nil {
			x.files = append(x.files, layer)
		}
	}
	x.extensions = x.readExtensions()
	if hooks, _ := x.hooks("PreToolUse"); len(hooks) == 0 && len(x.plugins()) == 0 {
		for _, e := range x.extensions { // then it is their environment that the hook gets
			x.files = append(x.files, e.layer())
		}
	}
	lookup := x.effective()
	x.config = capgate.LoadConfig(lookup)
	return nil
}

// hasFile reports whether the file at a path is one of the layers already.
func (x *examination) hasFile(path string) bool {
	info, err := os.Stat(path)
	return slices.ContainsFunc(x.files, func(l *settingsLayer) bool {
		if err != nil {
			return filepath.Clean(l.path) == filepath.Clean(path)
		}
		other, err := os.Stat(l.path)
		return err == nil && os.SameFile(info, other)
	})
}

// extension is Oh My Pi's extension of ours in one place.
type extension struct {
	place, path, command string
	env                  map[string]string
}

var extensionHookLine = regexp.MustCompile(`const HOOK: string = ("[^\n]*");`)

func (x *examination) readExtensions() (found []extension) {
	for _, place := range []string{scopeUser, scopeProject} {
		path, err := settingsFile(x.App, installOptions{client: "omp", scope: place})
		if err != nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(text, []byte(extensionMark)) {
			continue
		}
		e := extension{place: place, path: path, env: extensionEnv(text)}
		if m := extensionHookLine.FindSubmatch(text); m != nil {
			e.command, _ = strconv.Unquote(string(m[1]))
		}
		found = append(found, e)
	}
	return found
}

// layer is the extension as a settings file: with an env block only.
func (e extension) layer() *settingsLayer {
	l := &settingsLayer{place: placeOMP, path: e.path}
	text, err := json.Marshal(map[string]any{"env": e.env})
	if err == nil {
		l.doc, l.err = settings.Parse(text)
	}
	return l
}

func readLayer(place, path string) *settingsLayer {
	l := &settingsLayer{place: place, path: path}
	text, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
	case err != nil:
		l.err = err
	default:
		l.text = text
		l.doc, l.err = settings.Parse(text)
	}
	return l
}

// managedSettings is where an organisation's settings are, "" where that is not known.
func managedSettings() string {
	for _, path := range []string{"/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// layerOf returns the strongest settings file that sets a variable.
func (x *examination) layerOf(name string) (value string, layer *settingsLayer) {
	for _, l := range x.files {
		if l.doc == nil {
			continue
		}
		if v, ok := l.doc.Env(name); ok {
			value, layer = v, l
		}
	}
	return value, layer
}

// effective is the environment that a hook gets: this shell's, and over it the settings'.
func (x *examination) effective() capgate.Lookup {
	return func(name string) (string, bool) {
		if v, l := x.layerOf(name); l != nil {
			return v, true
		}
		return x.Lookup(name)
	}
}

// hooks returns the installed entries for an event, with the files they stand in.
func (x *examination) hooks(event string) (hooks []settings.Hook, layers []*settingsLayer) {
	for _, l := range x.files {
		if l.doc == nil {
			continue
		}
		for _, h := range l.doc.Hooks(event, isOurs) {
			hooks, layers = append(hooks, h), append(layers, l)
		}
	}
	return hooks, layers
}

// installFor is the command that mends an installation in one place.
func installFor(l *settingsLayer) string {
	switch {
	case l == nil || l.place == scopeUser || l.place == placeManaged:
		return "capgate install"
	case l.place == placeOMP:
		return "capgate install --client omp"
	}
	return fmt.Sprintf("capgate install --scope %s (in %s)", l.place, filepath.Dir(filepath.Dir(l.path)))
}
