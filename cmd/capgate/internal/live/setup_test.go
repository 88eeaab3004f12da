//go:build live

package live_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/cmd/capgate/internal/live"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// The live tests run the real clients: `make live`. Where those cannot be installed the tests are skipped by name, or
// fail, with CAPGATE_LIVE_REQUIRED=1.

// What install writes, for tests that edit settings.
var (
	hookEvents  = settings.Events
	hookTimeout = settings.Timeout
)

// liveTimeout bounds one test's clients. Installation, once, has its own time.
const liveTimeout = 2 * time.Minute

// installClients tries it once for all tests.
var installClients = sync.OnceValues(func() (live.Clients, error) {
	if why := os.Getenv(live.UnavailableVariable); why != "" {
		return live.Clients{}, fmt.Errorf("%w: %s", live.ErrUnavailable, strings.TrimPrefix(why, live.ErrUnavailable.Error()+": "))
	}
	cache, err := live.CacheDir()
	if err != nil {
		return live.Clients{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), live.InstallTimeout)
	defer cancel()
	return live.Install(ctx, cache)
})

// startLive returns a sandbox whose clients talk to a model that runs the programs.
func startLive(t *testing.T, programs live.Programs) (context.Context, *live.Sandbox) {
	t.Helper()
	clients, err := installClients()
	unavailable(t, err)
	model, err := live.StartModel(programs)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	sandbox, err := live.NewSandbox(t.TempDir(), clients, model)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), liveTimeout)
	t.Cleanup(cancel)
	return ctx, sandbox
}

// unavailable skips the test where a client or tool is missing, and fails it for any other error.
func unavailable(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, live.ErrUnavailable) && os.Getenv("CAPGATE_LIVE_REQUIRED") != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// oneResult returns the only result of the program's calls of a tool.
func oneResult(t *testing.T, model *live.Model, program, tool string) live.Result {
	t.Helper()
	results := model.ResultsOf(program, tool)
	require.Len(t, results, 1, "%s of %s; all: %v", tool, program, model.Results())
	return results[0]
}

// fresh is capgate as the tree has it now, built once for all tests that run at the time.
var fresh struct {
	sync.Mutex
	users int
	dir   string
}

// freshBuild returns a folder with capgate and capgate-hook, for as long as the test runs.
func freshBuild(t *testing.T) string {
	t.Helper()
	fresh.Lock()
	defer fresh.Unlock()
	if fresh.users == 0 {
		dir, err := os.MkdirTemp("", "capgate-live")
		require.NoError(t, err)
		c := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator),
			"github.com/capgate/capgate/cmd/capgate", "github.com/capgate/capgate/cmd/capgate-hook")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, err, "%s", out)
		}
		fresh.dir = dir
	}
	fresh.users++
	t.Cleanup(func() {
		fresh.Lock()
		defer fresh.Unlock()
		if fresh.users--; fresh.users == 0 {
			require.NoError(t, os.RemoveAll(fresh.dir))
		}
	})
	return fresh.dir
}

// setup is a sandbox with capgate's commands on PATH, also the clients'.
type setup struct {
	*live.Sandbox
	t   *testing.T
	ctx context.Context
	bin string
}

func withCommands(ctx context.Context, t *testing.T, s *live.Sandbox) *setup {
	t.Helper()
	x := &setup{Sandbox: s, t: t, ctx: ctx, bin: filepath.Join(filepath.Dir(s.Home), "bin")}
	built := freshBuild(t)
	require.NoError(t, os.MkdirAll(x.bin, 0o700))
	for _, name := range []string{"capgate", "capgate-hook"} {
		// A link, so that a test can take its own away.
		require.NoError(t, os.Link(filepath.Join(built, name), filepath.Join(x.bin, name)))
	}
	s.Env = append(s.Env, x.path())
	return x
}

// withInstall runs `capgate install` with the arguments in the sandbox's home and working folder, too.
func withInstall(ctx context.Context, t *testing.T, s *live.Sandbox, args ...string) *setup {
	t.Helper()
	x := withCommands(ctx, t, s)
	x.capgate(append([]string{"install"}, args...)...)
	return x
}

func (x *setup) path() string {
	return "PATH=" + x.bin + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// command is one of a person's in a terminal of the sandbox.
func (x *setup) command(env []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(x.ctx, name, args...)
	c.Dir, c.WaitDelay = x.Work, 5*time.Second
	c.Env = append([]string{"HOME=" + x.Home, "LANG=C.UTF-8", "TMPDIR=" + x.t.TempDir(), x.path()}, env...)
	return c
}

// run executes a command to its end.
func (x *setup) run(env []string, name string, args ...string) (stdout, stderr string, exit int) {
	x.t.Helper()
	c := x.command(env, name, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState == nil || x.ctx.Err() != nil {
		require.NoError(x.t, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// capgate runs a command that must succeed, and returns what it printed.
func (x *setup) capgate(args ...string) string {
	x.t.Helper()
	out, errs, exit := x.run(nil, filepath.Join(x.bin, "capgate"), args...)
	require.Zero(x.t, exit, "capgate %v: %s", args, errs)
	return out
}

// run and limit of the sessions that arm arms: one turn.
const liveRun = "storm"

// arm arms a session, whose id is returned, for a run of one turn.
func (x *setup) arm() string {
	x.t.Helper()
	return x.armFor(liveRun)
}

// armFor arms a session, whose id is returned, for a run of one turn.
func (x *setup) armFor(run string) string {
	x.t.Helper()
	session := newUUID()
	x.capgate("scope", "open", "--session", session, "--run", run, "--max-conv-turns", "1", "--max-dimensions", "1")
	return session
}

// armSpent arms a session for a run of one turn, and spends it.
func (x *setup) armSpent() string {
	x.t.Helper()
	session := x.arm()
	x.capgate("turn", "--run", liveRun)
	return session
}

// spend is the call of a loop's shell that records the run's last turn.
var spend = live.Call("Bash", live.M{"command": "capgate turn --run " + liveRun})

const spent = "turn budget spent (1 of 1, run " + liveRun + ")"

// newUUID is a random session id of the form that Claude Code takes for --session-id.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// decisions is what the hook has logged, oldest first.
func (x *setup) decisions() []decisionlog.Record {
	x.t.Helper()
	raw, err := os.ReadFile(filepath.Join(x.state(), "decisions.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(x.t, err)
	var all []decisionlog.Record
	for line := range strings.Lines(string(raw)) {
		var r decisionlog.Record
		require.NoError(x.t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
}

// state is the state directory that the installer chooses.
func (x *setup) state() string { return filepath.Join(x.Home, ".local", "state", "capgate") }

// userSettings is the file that `capgate install` writes by default.
func (x *setup) userSettings() string { return filepath.Join(x.Home, ".claude", "settings.json") }

// hook is the program that an installation runs.
func (x *setup) hook() string {
	return filepath.Join(x.Home, ".local", "share", "capgate", "bin", "capgate-hook")
}

// projectSettings is the file that `capgate install --scope project` writes.
func (x *setup) projectSettings() string { return filepath.Join(x.Work, ".claude", "settings.json") }

// set adds lines to the environment file of the user's installation, as a person would; of two the later one counts.
func (x *setup) set(lines ...string) {
	x.t.Helper()
	f, err := os.OpenFile(x.envFile(), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(x.t, err)
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	require.NoError(x.t, err)
	require.NoError(x.t, f.Close())
}

// envFile is the environment file that `capgate install` writes by default.
func (x *setup) envFile() string { return filepath.Join(x.Home, ".claude", "capgate.env") }

// edit changes installed settings, as a person would by hand.
func (x *setup) edit(file string, change func(settings live.M)) {
	x.t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(x.t, err)
	var settings live.M
	require.NoError(x.t, json.Unmarshal(raw, &settings))
	change(settings)
	raw, err = json.Marshal(settings)
	require.NoError(x.t, err)
	require.NoError(x.t, os.WriteFile(file, raw, 0o600))
}
