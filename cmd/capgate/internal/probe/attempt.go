package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	process "github.com/capgate/capgate/cmd/capgate/internal/client"
)

// attempt is one probe of one client.
type attempt struct {
	o                      options
	bin, version, evidence string
	dir                    string // scratch: the settings and what the hook records
	work                   string // below it, the client's working directory
}

// patience is how long a client may take for what it says at once.
const patience = 20 * time.Second

// newAttempt finds the client and makes a scratch directory, which clean removes.
func newAttempt(ctx context.Context, o options) (*attempt, error) {
	p := &attempt{o: o, bin: o.bin, evidence: o.evidence}
	if p.bin == "" {
		p.bin = o.client
	}
	found, err := exec.LookPath(p.bin)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no client to probe: %w: install it, or name it with --bin", err)
	}
	p.bin = found
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	version, out, err := process.Version(asking, p.bin)
	if p.version = version; err != nil || version == "" {
		return nil, fmt.Errorf("%s --version says no version but %q (%v): is it %s? Name it with --bin", p.bin, cli.FirstLine(out), err, o.client)
	}
	if p.evidence == "" {
		p.evidence = fmt.Sprintf("capgate-probe-%s-%s.json", o.client, p.version)
	}
	if p.evidence, err = filepath.Abs(p.evidence); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(p.evidence); err == nil && !o.force {
		return nil, fmt.Errorf("%s is there already: move it away, name another with --evidence, or give --force", p.evidence)
	}
	if info, err := os.Stat(filepath.Dir(p.evidence)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory for the evidence: make it first", filepath.Dir(p.evidence))
	}
	dir, err := os.MkdirTemp("", "capgate-probe-")
	if err == nil {
		p.dir = dir
		dir, err = filepath.EvalSymlinks(dir) // clients compare real paths
	}
	if err == nil {
		p.dir, p.work = dir, filepath.Join(dir, "work")
		err = os.Mkdir(p.work, 0o700)
	}
	if err != nil {
		p.clean()
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	return p, nil
}

func (p *attempt) clean() {
	if p.dir == "" {
		return
	}
	// Claude Code keeps a folder for each working directory; the scratch directory's is of no use to anybody.
	calls, _, _ := readCalls(filepath.Join(p.dir, callsFile))
	for _, c := range calls {
		folder := filepath.Dir(c.Transcript)
		if strings.HasSuffix(filepath.Base(folder), "-"+filepath.Base(p.dir)+"-"+filepath.Base(p.work)) {
			_ = os.RemoveAll(folder)
			break
		}
	}
	_ = os.RemoveAll(p.dir)
}

// run starts the client, waits for its end, and reads what its hook recorded.
func (p *attempt) run(ctx context.Context) (seen observed, calls []Evidence, err error) {
	args, err := p.prepare(ctx)
	if err != nil {
		return seen, nil, err
	}
	timed, cancel := context.WithTimeout(ctx, p.o.timeout)
	defer cancel()
	ended, err := process.Run(timed, process.Command{Program: p.bin, Args: args, Dir: p.work, Env: environment(os.Environ())})
	if err != nil {
		return seen, nil, fmt.Errorf("%s cannot be run: %w", p.bin, err)
	}
	switch {
	case ctx.Err() != nil:
		return seen, nil, errors.New("interrupted: the client was ended")
	case timed.Err() != nil:
		return seen, nil, fmt.Errorf("%s was not done within %v, and was ended: give it longer with --timeout-client, or see whether it works: %s", p.bin, p.o.timeout, p.tryout())
	}
	if p.o.client == client.OMP {
		seen.outcome = ompOutcome(ended.Exit, ended.Stdout, ended.Stderr)
	} else {
		seen.outcome = claudeOutcome(ended.Exit, ended.Stdout, ended.Stderr)
	}
	seen.calls, calls, err = readCalls(filepath.Join(p.dir, callsFile))
	return seen, calls, err
}

// tryout is a command that shows whether a client works at all.
func (p *attempt) tryout() string { return p.bin + " -p hello" }

func (p *attempt) advice() string {
	return "start " + p.bin + ", log in there if it says so, and see that " + p.tryout() + " answers, then run the probe again"
}

// environment is the person's own, without what a session of a client leaves to the programs that it runs.
func environment(environ []string) []string {
	var env []string
	for _, v := range environ {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED",
			"CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CAPGATE_DISABLE":
		default:
			env = append(env, v)
		}
	}
	return append(env, "CAPGATE_DISABLE=1") // an installed capgate keeps out
}
