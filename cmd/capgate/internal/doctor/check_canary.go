package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/cmd/capgate/internal/shell"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// checkCanary runs each installed command line as the client would, in a scratch state directory whose run is spent.
func checkCanary(x Examination) []Finding {
	f := findings{check: "canary"}
	hooks, layers := x.hooks(settings.Judged)
	for i, h := range hooks {
		if info, err := x.Files.Stat(installed.Program(h, x.around)); err != nil || !info.Mode().IsRegular() {
			continue // said already
		}
		if err := x.Canary(h, x.Config.CapTools); err != nil {
			f.add(Fail, fmt.Sprintf("%s: %v", h.Command, err), "the installed command does not judge calls as it should", layers[i].install())
			continue
		}
		f.ok(h.Command + ": a call of " + cappedBy(x.Config.CapTools) + " at the cap comes back as exit status 2, one of another session passes, a subagent that is not allowed comes back")
	}
	return f.all
}

// canaryRun is the run of the canary's scratch ledger, its one turn spent.
const canaryRun = "capgate-doctor-canary"

// cappedBy is a tool that a list names, or that a glob in it matches.
func cappedBy(capped capgate.Tools) string {
	return strings.ReplaceAll(capped.Or(capgate.DefaultCapTools).Names()[0], "*", "capgate")
}

// canary runs an entry, under a list of capped tools, on calls whose verdict is known.
func canary(ctx context.Context, h settings.Hook, capped capgate.Tools) error {
	dir, err := os.MkdirTemp("", "capgate-doctor")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	l := ledger.NewFile(capgate.DefaultLedger(dir), ledger.Options{})
	if _, err := l.OpenRun(ctx, canaryRun, 1, 1); err != nil {
		return err
	}
	if _, err := l.RecordTurn(ctx, canaryRun, "", ""); err != nil {
		return err
	}
	if err := scope.Write(dir, scope.Marker{Session: "canary", Run: canaryRun, StartedAt: time.Now()}); err != nil {
		return err
	}
	type call struct {
		session, tool, env string
		want               int
	}
	tool := fmt.Sprintf(`%q,"tool_input":{}`, cappedBy(capped))
	for _, c := range []call{
		{"canary", tool, "CAPGATE_ENABLED=1", 2},
		{"another", tool, "CAPGATE_ENABLED=1", 0},
		{"another", `"Agent","tool_input":{"subagent_type":"capgate-doctor-y","description":"d","prompt":"p"}`, "CAPGATE_ALLOWED_SUBAGENTS=capgate-doctor-x", 2},
	} {
		test := []string{c.env, "CAPGATE_DATA_DIR=" + dir}
		if list := strings.Join(strings.Fields(string(capped)), " "); list != "" { // the file has one line for it
			test = append(test, "CAPGATE_CAP_TOOLS="+list)
		}
		h, err := withEnvFile(h, filepath.Join(dir, "canary.env"), test)
		if err != nil {
			return err
		}
		cmd := hookRun(ctx, h)
		cmd.Env = append(test, "HOME="+dir)
		cmd.Stdin = strings.NewReader(`{"hook_event_name":"PreToolUse","session_id":"` + c.session + `","tool_name":` + c.tool + `}`)
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &stderr, time.Second
		err = cmd.Run()
		if cmd.ProcessState == nil {
			return err
		}
		switch got := cmd.ProcessState.ExitCode(); {
		case got != c.want:
			return fmt.Errorf("a call that should end with exit status %d ended with %d: %.200s", c.want, got, cli.FirstLine(stderr.String()))
		case out.Len() > 0:
			return fmt.Errorf("it wrote to standard output: %.200s", cli.FirstLine(out.String()))
		case c.want == 2 && !strings.Contains(stderr.String(), canaryRun) && !strings.Contains(stderr.String(), "capgate-doctor-y"):
			return fmt.Errorf("its reason is not about the canary: %.200s", cli.FirstLine(stderr.String()))
		}
	}
	return nil
}

// withEnvFile returns the entry with another environment file in the place of its own, which holds the variables. An entry
// without one stays as it is.
func withEnvFile(h settings.Hook, path string, vars []string) (settings.Hook, error) {
	words := append([]string{h.Command}, h.Args...)
	if h.Args == nil {
		words, _ = shell.Words(h.Command)
	}
	at := slices.Index(words, "--env-file")
	if at < 0 || at+1 == len(words) {
		return h, nil
	}
	words[at+1] = path
	h.Command, h.Args = words[0], words[1:]
	return h, os.WriteFile(path, []byte(strings.Join(vars, "\n")+"\n"), 0o600)
}

// hookRun runs an entry as the client does: by itself, or in the shell form by a shell.
func hookRun(ctx context.Context, h settings.Hook) *exec.Cmd {
	if h.Args == nil && h.Command != h.Program() && runtime.GOOS != "windows" {
		return exec.CommandContext(ctx, "/bin/sh", "-c", h.Command)
	}
	return exec.CommandContext(ctx, h.Command, h.Args...)
}
