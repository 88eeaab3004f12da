package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/settings"
)

//go:embed plugin/README.md plugin/status.md
var pluginFiles embed.FS

func newPluginCmd(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "plugin",
		GroupID: cli.GroupClient,
		Short:   "Write capgate as a plugin of Claude Code",
		Long: `A plugin brings the hook, the command line and /capgate:status into a session without a change to any settings file,
for one session with claude --plugin-dir, or installed from a marketplace.`,
		Example: `  capgate plugin export ./capgate-plugin`,
	}, newPluginExportCmd(a))
}

func newPluginExportCmd(a *cli.App) *cobra.Command {
	var marketplace bool
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the plugin into a directory, or update it there",
		Long: `Writes a plugin that claude --plugin-dir DIR loads: its manifest, the hook for PreToolUse, SessionStart and SessionEnd,
this program and capgate-hook from beside it, the command /capgate:status, and a README. The cap is switched on in it,
and its state is in the plugin's data directory.

With --marketplace, DIR is a marketplace that holds the plugin in DIR/capgate: claude plugin marketplace add DIR.

DIR must be new, empty, or an earlier export with nothing else in it, which is replaced as a whole. A crash on the way
leaves the old plugin, the new one, or none, and never half of one.`,
		Example: `  capgate plugin export ./capgate-plugin   # then: claude --plugin-dir ./capgate-plugin
  capgate plugin export ./market --marketplace --json`,
		Args:              cli.OneArg("a directory", "one directory"),
		ValidArgsFunction: cli.Directories,
		RunE:              a.Do(func(_ *cobra.Command, args []string) error { return pluginExport(a, args[0], marketplace) }),
	}
	cmd.Flags().BoolVar(&marketplace, "marketplace", false, "make DIR a marketplace, with the plugin in DIR/capgate")
	return cmd
}

// exported is what `plugin export --json` prints.
type exported struct {
	Plugin      string   `json:"plugin"` // its directory
	Marketplace string   `json:"marketplace,omitempty"`
	Version     string   `json:"version"`
	Action      string   `json:"action"` // "exported" or "updated"
	Files       []string `json:"files"`  // below the directory that was named
}

// pluginMark is the file, in an export's directory, that lists the others, one a line.
const pluginMark = ".capgate-export"

const pluginDescription = "Stops a research loop at its turn cap: counts turns in a ledger, and denies searches and subagents at the cap"

func pluginExport(a *cli.App, dir string, marketplace bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	was, err := checkExport(dir)
	if err != nil {
		return err
	}
	done := exported{Plugin: dir, Version: pluginVersion(a.Build()), Action: map[bool]string{true: "updated", false: "exported"}[was]}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".capgate-plugin-*.tmp")
	if err != nil {
		return fmt.Errorf("write the plugin: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	next := filepath.Join(temp, "new")
	w := &pluginWriter{root: next, sub: "."}
	if marketplace {
		done.Marketplace, done.Plugin = dir, filepath.Join(dir, "capgate")
		w.json(".claude-plugin/marketplace.json", map[string]any{
			"name": "capgate", "owner": map[string]any{"name": "capgate"}, "description": "capgate, written by capgate plugin export",
			"plugins": []any{map[string]any{"name": "capgate", "source": "./capgate", "description": pluginDescription, "version": done.Version}},
		})
		w.sub = "capgate"
	}
	w.plugin(done.Version)
	w.sub = "."
	slices.Sort(w.files)
	done.Files = slices.Clone(w.files)
	w.write(pluginMark, []byte(strings.Join(done.Files, "\n")+"\n"), 0o644)
	if w.err != nil {
		return fmt.Errorf("write the plugin: %w", w.err)
	}
	if err := swapDir(next, dir, filepath.Join(temp, "old")); err != nil {
		return fmt.Errorf("put the plugin in its place: %w", err)
	}
	a.Changed()
	if a.AsJSON {
		return a.JSON(done)
	}
	a.Printf("%s: %s, version %s\n", done.Plugin, done.Action, done.Version)
	if marketplace {
		a.Printf("next: claude plugin marketplace add %s, then claude plugin install capgate@capgate\n", shQuote(dir))
	} else {
		a.Printf("next: claude --plugin-dir %s\n", shQuote(dir))
	}
	return nil
}

// checkExport says whether a directory holds an earlier export. It is an error where it holds anything else.
func checkExport(dir string) (was bool, err error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at the directory: %w", err)
	case !info.IsDir():
		return false, fmt.Errorf("%s is not a directory: name another", dir)
	}
	if here, err := os.Getwd(); err == nil {
		if real, err := filepath.EvalSymlinks(here); err == nil {
			here = real
		}
		if rel, err := filepath.Rel(dir, here); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return false, fmt.Errorf("%s is where you are, and would be replaced under your feet: go elsewhere first", dir)
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, pluginMark))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at the directory: %w", err)
	}
	was = err == nil
	known := append(strings.Split(string(list), "\n"), pluginMark)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			return err
		}
		if !was {
			return fmt.Errorf("%s is not empty, and no earlier export: name another directory", dir)
		}
		if !slices.Contains(known, filepath.ToSlash(rel)) {
			return fmt.Errorf("%s is not part of the earlier export that it lies in, and would be lost: move it away first", path)
		}
		return nil
	})
	if err == nil && !was {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			err = fmt.Errorf("%s is not empty, and no earlier export: name another directory", dir)
		}
	}
	return was, err
}

// swapDir puts next in the place of dir, and what was there into old.
func swapDir(next, dir, old string) error {
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	had := err == nil
	if err := os.Rename(next, dir); err != nil {
		if had {
			err = errors.Join(err, os.Rename(old, dir))
		}
		return err
	}
	return nil
}

var semver = regexp.MustCompile(`^v?(\d+\.\d+\.\d+[-+.\w]*)$`)

// pluginVersion is this program's, as manifests have versions.
func pluginVersion(b cli.Build) string {
	if m := semver.FindStringSubmatch(b.Version); m != nil {
		return m[1]
	}
	return "0.0.0-devel"
}

// pluginWriter writes files below root and keeps the first error.
type pluginWriter struct {
	root, sub string
	files     []string
	err       error
}

func (w *pluginWriter) write(name string, text []byte, mode fs.FileMode) {
	w.copy(name, bytes.NewReader(text), mode)
}

func (w *pluginWriter) copy(name string, from io.Reader, mode fs.FileMode) {
	if w.err != nil {
		return
	}
	name = filepath.ToSlash(filepath.Join(w.sub, name))
	path := filepath.Join(w.root, filepath.FromSlash(name))
	if w.err = os.MkdirAll(filepath.Dir(path), 0o755); w.err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err == nil {
		_, err = io.Copy(f, from)
		if err == nil {
			err = f.Chmod(mode) // whatever the umask
		}
		if err == nil {
			err = f.Sync()
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	w.err = err
	w.files = append(w.files, name)
}

func (w *pluginWriter) json(name string, v any) {
	text := &bytes.Buffer{}
	enc := json.NewEncoder(text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); w.err == nil {
		w.err = err
	}
	w.write(name, text.Bytes(), 0o644)
}

func (w *pluginWriter) template(name, from string) {
	text, err := pluginFiles.ReadFile("plugin/" + from)
	if w.err == nil {
		w.err = err
	}
	w.write(name, text, 0o644)
}

// program copies a program into bin.
func (w *pluginWriter) program(name, from string) {
	f, err := os.Open(from)
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.copy("bin/"+name, f, 0o755)
	_ = f.Close()
}

// plugin writes all files of the plugin.
func (w *pluginWriter) plugin(version string) {
	command, args, err := hookCommand()
	if err != nil {
		w.err = err
		return
	}
	exe := ""
	if runtime.GOOS == "windows" {
		exe = ".exe"
	}
	hook := "capgate" + exe
	if len(args) == 0 {
		hook = "capgate-hook" + exe
		w.program(hook, command)
	}
	self, err := os.Executable()
	if err != nil {
		w.err = fmt.Errorf("find this program: %w", err)
		return
	}
	w.program("capgate"+exe, self)
	w.json(".claude-plugin/plugin.json", map[string]any{
		"name": "capgate", "version": version, "description": pluginDescription, "license": "Apache-2.0", "author": map[string]any{"name": "capgate"},
	})
	hooks := map[string]any{}
	for _, event := range hookEvents {
		// The client puts its value in the place of ${CLAUDE_PLUGIN_ROOT}, without a shell.
		entry := settings.Hook{
			Type: "command", Command: "${CLAUDE_PLUGIN_ROOT}/bin/" + hook, Args: append(slices.Clone(args), "--env", "CAPGATE_ENABLED=1"), Timeout: hookTimeout,
		}
		if event == hookEvents[0] {
			entry.OnFailure = "block"
		}
		hooks[event] = []any{map[string]any{"hooks": []any{entry}}}
	}
	w.json("hooks/hooks.json", map[string]any{"hooks": hooks})
	w.template("commands/status.md", "status.md")
	w.template("README.md", "README.md")
}
