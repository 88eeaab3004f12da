package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/lazy"
	"github.com/capgate/capgate/cmd/capgate/internal/shell"
)

// NewPlugin returns the command plugin.
func NewPlugin(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "plugin",
		GroupID: cli.GroupClient,
		Short:   "Write capgate as a plugin of Claude Code",
		Long: `A plugin brings the hook, the command line and /capgate:status into a session without a change to any settings file,
for one session with claude --plugin-dir, or installed from a marketplace.`,
		Example: `  capgate plugin export ./capgate-plugin`,
	}, newExportCmd(a))
}

func newExportCmd(a *cli.App) *cobra.Command {
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
	if !marketplace && oddPath().MatchString(dir) {
		a.Warn("the client leaves a plugin's programs out of its shell where the folder's path has characters that shells read as their own: choose another than %s", dir)
	}
	if a.AsJSON {
		return a.JSON(done)
	}
	a.Printf("%s: %s, version %s\n", done.Plugin, done.Action, done.Version)
	if marketplace {
		a.Printf("next: claude plugin marketplace add %s, then claude plugin install capgate@capgate\n", shell.Quote(dir))
	} else {
		a.Printf("next: claude --plugin-dir %s\n", shell.Quote(dir))
	}
	return nil
}

// oddPath matches a path that Claude Code 2.1.332 does not put on its shell's PATH, "with shell metacharacters" in its own
// word; a path with one that it would take is named as well.
var oddPath = lazy.Regexp(`[^\w./@%+=,-]`)

var semver = lazy.Regexp(`^v?(\d+\.\d+\.\d+[-+.\w]*)$`)

// pluginVersion is this program's, as manifests have versions.
func pluginVersion(b cli.Build) string {
	if m := semver().FindStringSubmatch(b.Version); m != nil {
		return m[1]
	}
	return "0.0.0-devel"
}
