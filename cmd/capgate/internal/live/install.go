package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/capgate/capgate/cmd/capgate/internal/client"
)

// The pinned clients.
const (
	ClaudeVersion = "2.1.332"
	BunVersion    = "1.4.5"
	OMPVersion    = "18.1.21"
)

// ErrUnavailable is wrapped by what Install returns where the clients cannot be had: a reason to skip a test, by name.
var ErrUnavailable = errors.New("not available here")

// Clients are the installed programs.
type Clients struct {
	Claude string   // the executable
	OMP    []string // the command: bun and the client's script
}

// CacheDir is where clients are installed: $CAPGATE_LIVE_CACHE, else .cache/live of this repository.
func CacheDir() (string, error) {
	if dir := os.Getenv("CAPGATE_LIVE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "live"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory: set CAPGATE_LIVE_CACHE")
		}
		dir = parent
	}
}

// Install returns the pinned clients of the cache folder and installs them there first where they are not. An
// installation is made aside and moved into place, so that what is there is whole, and two at once do no harm.
func Install(ctx context.Context, cache string) (Clients, error) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return Clients{}, fmt.Errorf("%w: not run on %s", ErrUnavailable, runtime.GOOS)
	}
	dir := filepath.Join(cache, "claude-"+ClaudeVersion+"+bun-"+BunVersion+"+omp-"+OMPVersion)
	clients, err := installed(dir)
	if err == nil {
		return clients, nil
	}
	whole := func(dir string) error { _, err := installed(dir); return err }
	if err := npmInstall(ctx, cache, dir, whole, "@anthropic-ai/claude-code@"+ClaudeVersion, "bun@"+BunVersion, "@oh-my-pi/pi-coding-agent@"+OMPVersion); err != nil {
		return Clients{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	clients, err = installed(dir)
	if err != nil {
		return Clients{}, fmt.Errorf("%w: installed, but %w", ErrUnavailable, err)
	}
	return clients, nil
}

// installed finds the clients below dir, each in its pinned version.
func installed(dir string) (Clients, error) {
	modules := filepath.Join(dir, "node_modules")
	for name, want := range map[string]string{
		"@anthropic-ai/claude-code": ClaudeVersion, "bun": BunVersion, "@oh-my-pi/pi-coding-agent": OMPVersion,
	} {
		var manifest struct {
			Version string `json:"version"`
		}
		raw, err := os.ReadFile(filepath.Join(modules, filepath.FromSlash(name), "package.json"))
		if err == nil {
			err = json.Unmarshal(raw, &manifest)
		}
		if err != nil {
			return Clients{}, err
		}
		if manifest.Version != want {
			return Clients{}, fmt.Errorf("%s is %s, not %s", name, manifest.Version, want)
		}
	}
	// The files themselves, not node_modules/.bin: the folder may have been copied without its links.
	c := Clients{
		Claude: filepath.Join(modules, "@anthropic-ai", "claude-code", "bin", "claude.exe"),
		OMP: []string{
			filepath.Join(modules, "bun", "bin", "bun.exe"),
			filepath.Join(modules, "@oh-my-pi", "pi-coding-agent", "dist", "cli.js"),
		},
	}
	for _, file := range append([]string{c.Claude}, c.OMP...) {
		if _, err := os.Stat(file); err != nil {
			return Clients{}, err
		}
	}
	return c, nil
}

// npmInstall installs packages aside and moves them to dir, unless another process was faster; whole says whether a folder
// has all of them.
func npmInstall(ctx context.Context, cache, dir string, whole func(dir string) error, packages ...string) error {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("no %s in PATH to install the clients with", tool)
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(cache, "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	npm := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--prefix", aside}, packages...)...)
	npm.Dir = aside
	client.OwnGroup(npm)
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install: %w: %s", err, tail(string(out), 500))
	}
	if _, err := os.Stat(dir); err == nil {
		if whole(dir) == nil {
			return nil // another process was faster
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return os.Rename(aside, dir)
}

// tail is the last characters of a text, on one line.
func tail(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > limit {
		return "..." + text[len(text)-limit:]
	}
	return text
}
