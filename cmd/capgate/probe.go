package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate/omp"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

type probeOptions struct {
	client, bin, evidence string
	yes, force            bool
	timeout               time.Duration
}

func newProbeCmd(a *cli.App) *cobra.Command {
	o := probeOptions{}
	cmd := &cobra.Command{
		Use:     "probe",
		GroupID: cli.GroupClient,
		Short:   "Ask the installed client itself whether its hooks hold inside subagents",
		Long: `Starts the installed client once, headless, in a scratch directory, with a throw-away settings file whose hook
is this program. The prompt has the model start one subagent that runs harmless echo commands, of which the hook blocks
one, denies one, rewrites one and lets one pass, and has it run one itself that a human would have to be asked about.
What the hook was told, and what the client made of its answers, is the evidence.

It runs with your account and your other settings, and spends about ten small model calls. It changes no installed
file: capgate doctor looks at those. An installed capgate is switched off for the probe by CAPGATE_DISABLE=1.

It ends with RESULT: FIRES when the hook fires inside a subagent and a denial blocks there (by exit status 2; Oh My Pi
has the extension's block), else with RESULT: DOES NOT FIRE. A step that the model did not do is "not observed".

Exit status: 0 FIRES; 3 DOES NOT FIRE; 1 when there is no result: no client, not logged in, out of time.`,
		Example: `  capgate probe
  capgate probe --client omp --yes --json
  capgate probe --bin ./node_modules/.bin/claude --evidence probe.json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return probe(a, cmd.Context(), o) }),
	}
	cmd.Flags().StringVar(&o.client, "client", "claude", "which client: claude or omp")
	cmd.Flags().StringVar(&o.bin, "bin", "", "the client's program; default claude or omp, as found on PATH")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask before spending model calls")
	cmd.Flags().StringVar(&o.evidence, "evidence", "", "file for the evidence; default capgate-probe-CLIENT-VERSION.json")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace the evidence file where there is one")
	cmd.Flags().DurationVar(&o.timeout, "timeout-client", 3*time.Minute, "how long the client may take")
	cli.Must(cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions([]string{"claude", "omp"}, cli.NoFiles)))
	return cmd
}

// probeReport is the evidence, and what `probe --json` prints.
type probeReport struct {
	Client       string          `json:"client"`
	Version      string          `json:"version"`
	Program      string          `json:"program"`
	Time         time.Time       `json:"time"`
	Capgate      string          `json:"capgate"`
	Result       string          `json:"result"`
	Answers      []probeAnswer   `json:"answers"`
	Exit         int             `json:"client_exit"`
	ClientError  string          `json:"client_error,omitempty"`
	Denials      []probeDenial   `json:"permission_denials"`
	Stats        json.RawMessage `json:"subagent_stats,omitempty"`
	CallsFile    string          `json:"calls_file"` // the name of what calls holds the lines of
	Calls        []probeEvidence `json:"calls"`
	EvidenceFile string          `json:"evidence_file"`
}

// probeEvidence is one recorded call.
type probeEvidence struct {
	Line     int       `json:"line"`
	Time     time.Time `json:"time"`
	Answered string    `json:"answered,omitempty"`
	Payload  any       `json:"payload"` // without paths to transcripts, and without the content of calls that are not the probe's
}

func probe(a *cli.App, ctx context.Context, o probeOptions) error {
	name, ok := map[string]string{"claude": "Claude Code", "omp": "Oh My Pi"}[o.client]
	switch {
	case !ok:
		return cli.Usagef("--client is %q: it takes claude or omp", o.client)
	case o.timeout <= 0:
		return cli.Usagef("--timeout-client is %v, it must be more than 0", o.timeout)
	case o.client == "omp" && runtime.GOOS == "windows":
		return errors.New("probing Oh My Pi needs a shell script as its hook, which Windows does not run")
	case !o.yes && !cli.IsTerminal(a.Stdin):
		return errors.New("probe spends model calls on your account and there is no terminal to ask on: give --yes")
	}
	// The client is in a process group of its own, so that an interrupt reaches it only through us.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	p, err := newProbe(a, ctx, o)
	if err != nil {
		return err
	}
	defer p.clean()

	plan := a.Printf
	if a.AsJSON {
		plan = func(format string, args ...any) {
			fmt.Fprintln(a.Stderr, gates.Visible(strings.TrimSuffix(fmt.Sprintf(format, args...), "\n")))
		}
	}
	if !a.AsJSON || !o.yes {
		plan("capgate probe starts %s (%s %s) once, headless, in a scratch directory, with a throw-away settings file.\n", p.bin, name, p.version)
		plan("A model starts one subagent, and harmless echo commands are run: about ten small model calls on your account,\n")
		plan("in at most %v. No installed file is changed. The evidence goes to %s.\n", o.timeout, p.evidence)
		_ = a.Flush() // an error stays in the printer, where Main finds it
	}
	if !o.yes {
		fmt.Fprint(a.Stderr, "Go on? Only yes does: ")
		line, _ := bufio.NewReader(io.LimitReader(a.Stdin, 100)).ReadString('\n')
		if strings.TrimSpace(line) != "yes" {
			return errors.New("nothing was run, because the answer was not yes")
		}
	}
	seen, calls, err := p.run(ctx)
	if err != nil {
		return err
	}
	report := probeReport{
		Client: o.client, Version: p.version, Program: p.bin, Time: a.Now().UTC(), Capgate: a.Build().String(), Exit: seen.outcome.Exit,
		ClientError: seen.outcome.Error, Denials: seen.outcome.Denials, Stats: seen.outcome.Stats, CallsFile: callsFile, Calls: calls,
		EvidenceFile: p.evidence,
	}
	report.Answers, report.Result = seen.evaluate(o.client)
	if report.Denials == nil {
		report.Denials = []probeDenial{}
	}
	if !seen.outcome.Completed && report.Result != probeFires {
		return fmt.Errorf("%s ended with an error, so there is no result: %s: %s", p.bin, seen.outcome.Error, p.advice())
	}
	if err := p.write(report, o.force); err != nil {
		return err
	}
	a.Changed()
	if a.AsJSON {
		err = a.JSON(report)
	} else {
		printProbe(a, name, report)
	}
	if err == nil && report.Result != probeFires {
		err = cli.WithStatus(cli.StatusUnhealthy, errors.New("it was not shown that a denial holds inside a subagent of this client: there, the bound is capgate turn alone"))
	}
	return err
}

func printProbe(a *cli.App, name string, r probeReport) {
	a.Printf("\n%s %s\n", name, r.Version)
	for _, answer := range r.Answers {
		a.Printf("%-12s  %s\n              %s", answer.Answer, questionText[answer.Question], answer.Why)
		if len(answer.Calls) > 0 {
			a.Printf(" (%s line %s)", r.CallsFile, strings.Trim(strings.ReplaceAll(fmt.Sprint(answer.Calls), " ", ", "), "[]"))
		}
		a.Printf("\n")
	}
	a.Printf("evidence: %s\nRESULT: %s\n", r.EvidenceFile, r.Result)
}

// clientProbe is one probe of one client.
type clientProbe struct {
	*cli.App
	o                      probeOptions
	bin, version, evidence string
	dir                    string // scratch: the settings and what the hook records
	work                   string // below it, the client's working directory
}

func newProbe(a *cli.App, ctx context.Context, o probeOptions) (*clientProbe, error) {
	p := &clientProbe{App: a, o: o, bin: o.bin, evidence: o.evidence}
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
	out, err := p.ask(ctx, "--version")
	if p.version = regexp.MustCompile(`\d+\.\d+\.\d+[-+.\w]*`).FindString(out); err != nil || p.version == "" {
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

func (p *clientProbe) clean() {
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

// ask runs the client for something that it says at once.
func (p *clientProbe) ask(ctx context.Context, arg string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, p.bin, arg)
	c.WaitDelay = time.Second
	ownGroup(c)
	out, err := c.Output()
	return string(out), err
}

// run starts the client, waits for its end, and reads what its hook recorded.
func (p *clientProbe) run(ctx context.Context) (seen observed, calls []probeEvidence, err error) {
	args, err := p.prepare(ctx)
	if err != nil {
		return seen, nil, err
	}
	timed, cancel := context.WithTimeout(ctx, p.o.timeout)
	defer cancel()
	c := exec.CommandContext(timed, p.bin, args...)
	c.WaitDelay = 5 * time.Second // for a grandchild that has left the group and holds our pipes
	ownGroup(c)
	c.Dir = p.work
	c.Env = probeEnvironment(os.Environ())
	var stdout, stderr bounded
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	if c.Process == nil {
		return seen, nil, fmt.Errorf("%s cannot be started: %w", p.bin, err)
	}
	_ = killGroup(c)
	switch {
	case ctx.Err() != nil:
		return seen, nil, errors.New("interrupted: the client was ended")
	case timed.Err() != nil:
		return seen, nil, fmt.Errorf("%s was not done within %v, and was ended: give it longer with --timeout-client, or see whether it works: %s", p.bin, p.o.timeout, p.tryout())
	}
	exit := c.ProcessState.ExitCode()
	if p.o.client == "omp" {
		seen.outcome = ompOutcome(exit, stdout.Bytes(), stderr.Bytes())
	} else {
		seen.outcome = claudeOutcome(exit, stdout.Bytes(), stderr.Bytes())
	}
	seen.calls, calls, err = readCalls(filepath.Join(p.dir, callsFile))
	return seen, calls, err
}

// tryout is a command that shows whether a client works at all.
func (p *clientProbe) tryout() string { return p.bin + " -p hello" }

func (p *clientProbe) advice() string {
	return "start " + p.bin + ", log in there if it says so, and see that " + p.tryout() + " answers, then run the probe again"
}

// prepare writes the throw-away settings and returns the client's arguments.
func (p *clientProbe) prepare(ctx context.Context) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	hook := shQuote(filepath.ToSlash(self)) + " probe-hook " + shQuote(filepath.ToSlash(p.dir))
	if p.o.client == "omp" {
		return p.prepareOMP(hook)
	}
	// In shell form, which clients of every version run.
	entry := []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": hook, "timeout": 10}}}}
	settings := filepath.Join(p.dir, "settings.json")
	text, err := json.MarshalIndent(map[string]any{
		"env":   map[string]string{backgroundTasks: "1", "CAPGATE_DISABLE": "1"}, // the subagent is waited for; an installed capgate keeps out
		"hooks": map[string]any{"PreToolUse": entry, "PostToolUse": entry},
	}, "", "  ")
	if err == nil {
		err = os.WriteFile(settings, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the throw-away settings: %w", err)
	}
	// The mode is set, because auto would put each step before a classifier, and plan would put them off.
	args := []string{
		"-p", claudePrompt, "--settings", settings, "--permission-mode", "default", "--allowedTools", "Agent,Task,Bash(echo:*)",
		"--output-format", "json",
	}
	// No transcript below the client's own directory. Older clients do not know it.
	if help, err := p.ask(ctx, "--help"); err == nil && strings.Contains(help, "--no-session-persistence") {
		args = append(args, "--no-session-persistence")
	}
	return args, nil
}

func (p *clientProbe) prepareOMP(hook string) ([]string, error) {
	script := filepath.Join(p.dir, "hook")
	extension, recorder := filepath.Join(p.dir, "probe.ts"), filepath.Join(p.dir, "recorder.ts")
	place, err := json.Marshal(filepath.Join(p.dir, callsFile))
	if err == nil {
		err = os.WriteFile(script, []byte("#!/bin/sh\nexec "+hook+" \"$@\"\n"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(extension, omp.Extension(script, nil), 0o600)
	}
	if err == nil {
		err = os.WriteFile(recorder, []byte(strings.Replace(ompRecorder, `"@CALLS@"`, string(place), 1)), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the throw-away extension: %w", err)
	}
	return []string{"-p", "--no-session", "--mode", "json", "-e", extension, "-e", recorder, ompPrompt}, nil
}

// ompRecorder is an extension that records the ends of calls, of which the hook is not told.
const ompRecorder = `import { appendFileSync } from "node:fs";

export default function recorder(pi: any): void {
	pi.on("tool_result", async (event: any, ctx: any) => {
		try {
			const payload = {
				hook_event_name: "tool_result",
				session_id: ctx.sessionManager.getSessionId(),
				tool_name: event.toolName,
				tool_use_id: event.toolCallId,
				tool_input: event.input,
				tool_response: event.content,
				is_error: event.isError === true,
			};
			appendFileSync("@CALLS@", JSON.stringify({ time: new Date().toISOString(), payload }) + "\n");
		} catch {}
		return undefined;
	});
}
`

const probeManners = `This is a check by the person at this machine of how this client treats its hooks, made with the program capgate probe.
Do exactly the numbered steps, in this order, and nothing else. Every command is a harmless echo. That some of them are
blocked, denied or changed is what is being checked: never repeat such a step or look for a way around it, go on with the
next one.
`

const claudePrompt = `[PROGRAM:capgate-probe] ` + probeManners + `
1. Start one subagent with the Agent tool (in older versions: Task), subagent_type general-purpose, not in the background,
   and give it as its prompt everything between the two lines of dashes, word for word:
------
[PROGRAM:capgate-probe-sub] ` + probeManners + `
1. Run with the Bash tool: echo capgate-probe-exit2
2. Run with the Bash tool: echo capgate-probe-deny
3. Run with the Bash tool: echo capgate-probe-rewrite
4. Run with the Bash tool: echo capgate-probe-pass
5. Answer with the word done.

One call for each step, one after the other, each command exactly as it is written here.
------
2. When the subagent has ended, run with the Bash tool, yourself: echo capgate-probe-ask
3. Answer with the word done.
`

const ompPrompt = `[PROGRAM:capgate-probe] ` + probeManners + `
1. Start one agent with the task tool (agent: task), and give it as its task everything between the two lines of dashes,
   word for word:
------
[PROGRAM:capgate-probe-sub] ` + probeManners + `
1. Run with the bash tool: echo capgate-probe-deny
2. Run with the bash tool: echo capgate-probe-pass
3. Finish, with the word done as your result.

One call for each step, one after the other, each command exactly as it is written here.
------
2. Wait until it has finished, with the hub tool (op: wait).
3. Start one more agent with the task tool (agent: task), with this task: [PROGRAM:capgate-probe-spawned] Finish at once,
   with the word capgate-probe-spawn as your result.
4. Answer with the word done.
`

// probeEnvironment is the person's own, without what a session of a client leaves to the programs that it runs.
func probeEnvironment(environ []string) []string {
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

// maxClientOutput bounds what is kept of a client's output, in bytes: the last of it, where the results are.
const maxClientOutput = 16 << 20

// bounded keeps the end of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if over := b.Len() - 2*maxClientOutput; over > 0 {
		b.Next(b.Len() - maxClientOutput)
	}
	return n, err
}

// shQuote quotes for a POSIX shell.
func shQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// readCalls reads what the hook recorded: for the answers, and as evidence.
func readCalls(path string) (calls []probeCall, evidence []probeEvidence, err error) {
	evidence = []probeEvidence{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, evidence, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what the hook recorded: %w", err)
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		var r recordedCall
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		c := parseCall(r.Payload)
		c.Line, c.Answered = n, r.Answered
		calls = append(calls, c)
		var payload any
		_ = json.Unmarshal(r.Payload, &payload)
		evidence = append(evidence, probeEvidence{Line: n, Time: r.Time, Answered: r.Answered, Payload: redacted(payload, c.ours())})
	}
	return calls, evidence, nil
}

// redacted takes out of a payload what leads to the person's files, and the content of what is not the probe's.
func redacted(v any, ours bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			switch {
			case strings.Contains(strings.ToLower(key), "transcript"), key == "cwd", key == "scratchpad_dir", key == "outputFile":
				delete(v, key)
			case !ours && (key == "tool_input" || key == "tool_response"):
				delete(v, key)
			default:
				v[key] = redacted(inner, ours)
			}
		}
	case []any:
		for i := range v {
			v[i] = redacted(v[i], ours)
		}
	}
	return v
}

// write stores the evidence, for nobody else to read.
func (p *clientProbe) write(r probeReport, force bool) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if force {
		return replaceFile(p.evidence, text, os.DevNull+"/none")
	}
	f, err := os.OpenFile(p.evidence, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(text)
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("write the evidence: %w", err)
	}
	return nil
}
