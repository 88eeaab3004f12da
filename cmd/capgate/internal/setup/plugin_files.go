package setup

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
	"slices"

	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

//go:embed plugin/README.md plugin/status.md
var pluginFiles embed.FS

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
	ours, err := programsHere()
	if err != nil {
		w.err = err
		return
	}
	hook := "capgate" + exe()
	if len(ours.Args) == 0 {
		hook = hookProgram + exe()
		w.program(hook, ours.Command)
	}
	self, err := os.Executable()
	if err != nil {
		w.err = fmt.Errorf("find this program: %w", err)
		return
	}
	w.program("capgate"+exe(), self)
	w.json(".claude-plugin/plugin.json", map[string]any{
		"name": "capgate", "version": version, "description": pluginDescription, "license": "Apache-2.0", "author": map[string]any{"name": "capgate"},
	})
	hooks := map[string]any{}
	for _, event := range settings.Events {
		// The client puts its value in the place of ${CLAUDE_PLUGIN_ROOT}, without a shell.
		entry := settings.Entry(event, "${CLAUDE_PLUGIN_ROOT}/bin/"+hook, append(slices.Clone(ours.Args), "--env", "CAPGATE_ENABLED=1"))
		hooks[event] = []any{map[string]any{"hooks": []any{entry}}}
	}
	w.json("hooks/hooks.json", map[string]any{"hooks": hooks})
	w.template("commands/status.md", "status.md")
	w.template("README.md", "README.md")
}
