package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/capgate/capgate/cmd/capgate/internal/client"
)

// apiKey is what the model on loopback takes: anything.
const apiKey = "sk-test-000"

// Sandbox is where clients run: a scratch home and a working folder below one directory, and an environment with
// nothing of the developer's but PATH.
type Sandbox struct {
	Clients Clients
	Model   *Model
	Home    string
	Work    string   // the clients' working directory
	Env     []string // K=V of the test's own, on top
	temp    string
}

// NewSandbox makes the folders below dir, which the caller removes.
func NewSandbox(dir string, clients Clients, model *Model) (*Sandbox, error) {
	dir, err := filepath.EvalSymlinks(dir) // the clients compare real paths
	if err != nil {
		return nil, err
	}
	s := &Sandbox{Clients: clients, Model: model, Home: filepath.Join(dir, "home"), Work: filepath.Join(dir, "work"), temp: filepath.Join(dir, "tmp")}
	return s, errors.Join(os.MkdirAll(s.Home, 0o700), os.MkdirAll(s.Work, 0o700), os.MkdirAll(s.temp, 0o700))
}

// Environ is the whole environment of a client.
func (s *Sandbox) Environ(extra ...string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "TMPDIR=" + s.temp, "CLAUDE_CODE_TMPDIR=" + s.temp, "LANG=C.UTF-8", "TERM=xterm-256color",
		"ANTHROPIC_BASE_URL=" + s.Model.URL(), "ANTHROPIC_API_KEY=" + apiKey,
		// No telemetry, updates or feature flags, and where a client tries all the same there is no way out.
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "http_proxy=" + nowhere, "https_proxy=" + nowhere,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}
	return append(append(env, s.Env...), extra...)
}

// nowhere is a proxy that is not there: the discard port of loopback.
const nowhere = "http://127.0.0.1:9"

// Output is what a finished client left.
type Output struct {
	Exit           int
	Stdout, Stderr string
	Duration       time.Duration
}

// run executes a client to its end, or kills it with all its children at the end of the context, which is an error.
func (s *Sandbox) run(ctx context.Context, env []string, name string, args ...string) (Output, error) {
	ended, err := client.Run(ctx, client.Command{Program: name, Args: args, Dir: s.Work, Env: env})
	out := Output{Exit: ended.Exit, Stdout: string(ended.Stdout), Stderr: string(ended.Stderr), Duration: ended.Took}
	if ctx.Err() != nil {
		return out, fmt.Errorf("%s: %w: stdout %q stderr %q", filepath.Base(name), context.Cause(ctx), tail(out.Stdout, 500), tail(out.Stderr, 500))
	}
	return out, err
}

// write stores a value as JSON below the sandbox.
func write(file string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}
