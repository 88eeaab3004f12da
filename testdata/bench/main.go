// Command bench measures capgate as its users meet it: whole processes, from before the fork to after the exit. Both
// sides of a ratio are measured alternately in one run, and what counts is the ratio of their medians.
//
//	go run ./testdata/bench -bin bin [-rounds 300] [-only REGEXP]
//
// It exits with 1 when a bound of the design is missed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

var (
	binDir = flag.String("bin", "bin", "`directory` of the built binaries")
	rounds = flag.Int("rounds", 300, "processes of each kind")
	only   = flag.String("only", "", "run only the measurements whose name matches this `regexp`")
	large  = flag.Int("large", 1_000_000, "turns in the large ledger")
	writer = flag.String("writer", "", "internal: append turns to this ledger until killed")
)

const session = "5f1d2c3b-8a90-4e17-9c42-0d6b7a1e9f55"

func main() {
	flag.Parse()
	if *writer != "" {
		write(*writer)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// write appends turns in a tight loop.
func write(path string) {
	l := ledger.NewFile(path, ledger.Options{})
	for {
		if _, err := l.RecordTurn(context.Background(), "busy", "", ""); err != nil {
			fmt.Fprintln(os.Stderr, "bench writer:", err)
			os.Exit(1)
		}
	}
}

// program is one side of a comparison.
type program struct {
	args  []string
	env   []string
	stdin string // file
	exit  int    // that it must end with
}

type bench struct {
	dir       string
	hook, cli string
	empty     program
	missed    int
}

func run() error {
	dir, err := os.MkdirTemp("", "capgate-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin, err := filepath.Abs(*binDir)
	if err != nil {
		return err
	}
	b := &bench{dir: dir, hook: filepath.Join(bin, "capgate-hook"), cli: filepath.Join(bin, "capgate")}
	linked, empty := filepath.Join(dir, "linked"), filepath.Join(dir, "empty")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=exe", "-ldflags", "-s -w", "-o", linked, "./testdata/bench/empty")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the empty program: %w: %s", err, out)
	}
	// All sides are copies: a file as the linker wrote it starts slower (see the Makefile).
	for from, to := range map[string]*string{linked: &empty, b.hook: &b.hook, b.cli: &b.cli} {
		copied := filepath.Join(dir, filepath.Base(from)+"-copy")
		if err := copyFile(from, copied); err != nil {
			return err
		}
		*to = copied
	}
	b.empty = program{args: []string{empty}}

	filter, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	fmt.Printf("%s/%s, %d CPUs, %s; medians of %d processes each, both sides alternately\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), *rounds)
	fmt.Printf("| measurement | this | other | ratio | bound |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range []struct {
		name string
		run  func(*bench) error
	}{
		{"hooks", (*bench).hooks},
		{"processes", (*bench).processes},
		{"large", (*bench).largeLedger},
		{"node", (*bench).node},
		{"reader", (*bench).readerBesideWriters},
		{"burst", (*bench).burst},
	} {
		if !filter.MatchString(m.name) {
			continue
		}
		if err := m.run(b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if b.missed > 0 {
		return fmt.Errorf("%d of the bounds missed", b.missed)
	}
	return nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o700)
}

// world makes a state directory whose session is armed for run "r" with 1,000 of many turns used.
func (b *bench) world(name string) (state string, l *ledger.File, err error) {
	state = filepath.Join(b.dir, name)
	l = ledger.NewFile(filepath.Join(state, "ledger.db"), ledger.Options{})
	ctx := context.Background()
	for _, run := range []string{"r", "busy"} {
		if _, err := l.OpenRun(ctx, run, 1_000_000_000, 1); err != nil {
			return "", nil, err
		}
	}
	return state, l, b.arm(state, l)
}

func (b *bench) arm(state string, l *ledger.File) error {
	head, err := l.Head(context.Background())
	if err != nil {
		return err
	}
	return scope.Write(state, scope.Marker{Session: session, Run: "r", StartedAt: time.Now(), Anchor: (*scope.Anchor)(&head)})
}

func environment(state string) []string {
	return []string{"CAPGATE_ENABLED=1", "CAPGATE_DATA_DIR=" + state, "PATH=" + os.Getenv("PATH"), "HOME=" + state}
}

// payload writes the recorded call, for the armed session or for another one.
func (b *bench) payload(armed bool) (string, error) {
	text, err := os.ReadFile(filepath.Join("testdata", "payloads", "claude-code-2.1.332", "PreToolUse-WebSearch-general-purpose.json"))
	if err != nil {
		return "", err
	}
	name := "armed.json"
	if !armed {
		name = "other.json"
		text = bytes.ReplaceAll(text, []byte(session), []byte("00000000-0000-4000-8000-000000000000"))
	}
	path := filepath.Join(b.dir, name)
	return path, os.WriteFile(path, text, 0o600)
}

// mainThread writes the call as the main thread would make it: inside a subagent it would concern the caller gate.
func (b *bench) mainThread(payload string) (string, error) {
	text, err := os.ReadFile(payload)
	if err != nil {
		return "", err
	}
	for _, member := range []string{`"agent_id":"a0df13b51b0b99973",`, `"agent_type":"general-purpose",`} {
		text = bytes.ReplaceAll(text, []byte(member), nil)
	}
	path := filepath.Join(b.dir, "main-thread.json")
	return path, os.WriteFile(path, text, 0o600)
}

func (b *bench) hookProgram(state string, armed bool) (program, error) {
	payload, err := b.payload(armed)
	return program{args: []string{b.hook}, env: environment(state), stdin: payload}, err
}

// hooks compares the two programs that answer a tool call (docs/decisions/0009-two-binaries.md): the same call, out of
// scope, judged by the same code, in a program that links nothing else and in one that links the command line.
func (b *bench) hooks() error {
	state, _, err := b.world("hooks")
	if err != nil {
		return err
	}
	small, err := b.hookProgram(state, false)
	if err != nil {
		return err
	}
	full := small
	full.args = []string{b.cli, "hook"}
	times, err := alternate(b.empty, small, full)
	if err != nil {
		return err
	}
	b.ratio("`capgate-hook`, out of scope / empty Go program", times[1], times[0], 1.5)
	b.report("`capgate hook`, out of scope / empty Go program", times[2], times[0])
	b.report("`capgate hook` / `capgate-hook`, out of scope", times[2], times[1])
	return nil
}

func (b *bench) processes() error {
	state, l, err := b.world("small")
	if err != nil {
		return err
	}
	for range 1000 {
		if _, err := l.RecordTurn(context.Background(), "r", "", ""); err != nil {
			return err
		}
	}
	out, err := b.hookProgram(state, false)
	if err != nil {
		return err
	}
	in, err := b.hookProgram(state, true)
	if err != nil {
		return err
	}
	off := in
	off.env = append(slices.Clone(in.env), "CAPGATE_DISABLE=1")
	spec := filepath.Join(b.dir, "spec.json")
	if err := os.WriteFile(spec, []byte(`{"subagents": {"joke-finder": {"tools": ["Bash"]}}, "admission": "ask"}`), 0o600); err != nil {
		return err
	}
	gated := out
	gated.env = append(slices.Clone(out.env), "CAPGATE_SPEC="+spec)
	if gated.stdin, err = b.mainThread(out.stdin); err != nil {
		return err
	}
	turn := program{args: []string{b.cli, "turn", "--run", "busy"}, env: environment(state)}
	times, err := alternate(b.empty, off, out, gated, in, turn)
	if err != nil {
		return err
	}
	b.ratio("hook, switched off / empty Go program", times[1], times[0], 1.5)
	b.ratio("hook, out of scope / empty Go program", times[2], times[0], 1.5)
	b.ratio("hook, in scope, 1,000 turns / empty Go program", times[4], times[0], 1.7)
	b.ratio("hook, gates on, a call that concerns no gate and no scope / the same with gates off", times[3], times[2], 1.1)
	b.ratio("`capgate turn`, durable / empty Go program", times[5], times[0], 2.6)
	return nil
}

// largeLedger builds a ledger of a million turns through the ledger's own tests, which can append in bulk.
func (b *bench) largeLedger() error {
	small, l, err := b.world("thousand")
	if err != nil {
		return err
	}
	for range 1000 {
		if _, err := l.RecordTurn(context.Background(), "r", "", ""); err != nil {
			return err
		}
	}
	state := filepath.Join(b.dir, "million")
	path := filepath.Join(state, "ledger.db")
	fill := exec.Command("go", "test", "./ledger", "-run", "^TestWriteLargeLedger$", "-count=1", "-timeout=30m",
		"-args", "-large-ledger", path, "-large-turns", strconv.Itoa(*large))
	if out, err := fill.CombinedOutput(); err != nil {
		return fmt.Errorf("fill the ledger: %w: %s", err, out)
	}
	if err := b.arm(state, ledger.NewFile(path, ledger.Options{})); err != nil {
		return err
	}
	few, err := b.hookProgram(small, true)
	if err != nil {
		return err
	}
	many, err := b.hookProgram(state, true)
	if err != nil {
		return err
	}
	times, err := alternate(b.empty, few, many)
	if err != nil {
		return err
	}
	b.ratio(fmt.Sprintf("hook, in scope, %d turns / 1,000 turns", *large), times[2], times[1], 1.1)
	b.ratio(fmt.Sprintf("hook, in scope, %d turns / empty Go program", *large), times[2], times[0], 1.7)
	return nil
}

func (b *bench) node() error {
	node, err := exec.LookPath("node")
	if err != nil {
		fmt.Println("| the same decision in Node | skipped: no node on this machine | | | |")
		return nil
	}
	state, _, err := b.world("node")
	if err != nil {
		return err
	}
	usage, err := json.Marshal(map[string]any{"r": map[string]int{"used": 0, "limit": 8}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(state, "usage.json"), usage, 0o600); err != nil {
		return err
	}
	in, err := b.hookProgram(state, true)
	if err != nil {
		return err
	}
	script, err := filepath.Abs(filepath.Join("testdata", "bench", "node", "hook.mjs"))
	if err != nil {
		return err
	}
	js := program{args: []string{node, script}, env: in.env, stdin: in.stdin}
	// The empty program runs between the two, as in the other rows: a Node process leaves cold caches to whoever is next.
	times, err := alternateRounds(max(*rounds/3, 10), b.empty, in, js)
	if err != nil {
		return err
	}
	b.report("the same decision in Node / hook, in scope", times[2], times[1])
	return nil
}

// writers starts four processes that append in a tight loop.
func writers(path string) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []*exec.Cmd
	for range 4 {
		cmd := exec.Command(self, "-writer", path)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		all = append(all, cmd)
	}
	return func() error {
		for _, cmd := range all {
			if err := cmd.Process.Kill(); err != nil {
				return fmt.Errorf("a writer ended by itself: %w", err)
			}
			_ = cmd.Wait()
		}
		return nil
	}, nil
}

func (b *bench) readerBesideWriters() error {
	state, l, err := b.world("contended")
	if err != nil {
		return err
	}
	stop, err := writers(filepath.Join(state, "ledger.db"))
	if err != nil {
		return err
	}
	var waits []time.Duration
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		began := time.Now()
		budget, err := l.Budget(context.Background(), "r", nil)
		if err != nil || budget.Used != 0 {
			return errors.Join(fmt.Errorf("wrong verdict: %+v", budget), err)
		}
		waits = append(waits, time.Since(began))
	}
	in, err := b.hookProgram(state, true)
	if err != nil {
		return err
	}
	times, err := alternateRounds(*rounds, in)
	if err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	slices.Sort(waits)
	b.absolute(fmt.Sprintf("read of the budget every 5 ms beside 4 writers, p99 of %d", len(waits)), percentile(waits, 99), 10*time.Millisecond)
	b.absolute("the same, median", percentile(waits, 50), 0)
	b.absolute(fmt.Sprintf("whole hook process beside 4 writers, p99 of %d", len(times[0])), percentile(times[0], 99), 0)
	return nil
}

// burst starts 32 hooks at once.
func (b *bench) burst() error {
	state, _, err := b.world("burst")
	if err != nil {
		return err
	}
	in, err := b.hookProgram(state, true)
	if err != nil {
		return err
	}
	var spans []time.Duration
	for range 20 {
		var wg sync.WaitGroup
		errs := make(chan error, 32)
		began := time.Now()
		for range 32 {
			wg.Go(func() {
				if _, err := once(in); err != nil {
					errs <- err
				}
			})
		}
		wg.Wait()
		spans = append(spans, time.Since(began))
		select {
		case err := <-errs:
			return err
		default:
		}
	}
	slices.Sort(spans)
	b.absolute("32 hooks at once, all answered, median of 20", percentile(spans, 50), 100*time.Millisecond)
	return nil
}

// once runs the program and returns how long it took.
func once(p program) (time.Duration, error) {
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env = p.env
	if p.stdin != "" {
		f, err := os.Open(p.stdin)
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }()
		cmd.Stdin = f
	}
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != p.exit {
		return 0, fmt.Errorf("%s ended with %v", strings.Join(p.args, " "), err)
	}
	return took, nil
}

func alternate(programs ...program) ([][]time.Duration, error) {
	return alternateRounds(*rounds, programs...)
}

// alternateRounds runs each program once a round, and returns their times, sorted. The first rounds warm up.
func alternateRounds(n int, programs ...program) ([][]time.Duration, error) {
	times := make([][]time.Duration, len(programs))
	const warmUp = 5
	for round := range n + warmUp {
		for i, p := range programs {
			took, err := once(p)
			if err != nil {
				return nil, err
			}
			if round >= warmUp {
				times[i] = append(times[i], took)
			}
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	return times, nil
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

func (b *bench) ratio(name string, this, other []time.Duration, bound float64) {
	r := float64(percentile(this, 50)) / float64(percentile(other, 50))
	b.row(name, percentile(this, 50), percentile(other, 50), r, fmt.Sprintf("≤ %.1f", bound), r <= bound)
}

// report prints a ratio that has no bound.
func (b *bench) report(name string, this, other []time.Duration) {
	r := float64(percentile(this, 50)) / float64(percentile(other, 50))
	b.row(name, percentile(this, 50), percentile(other, 50), r, "-", true)
}

func (b *bench) row(name string, this, other time.Duration, r float64, bound string, ok bool) {
	fmt.Printf("| %s | %.2f ms | %.2f ms | %.2f | %s%s |\n", name, ms(this), ms(other), r, bound, b.judge(ok))
}

// absolute prints a time that has a bound of its own; 0 = none.
func (b *bench) absolute(name string, t, bound time.Duration) {
	text := "-"
	if bound > 0 {
		text = fmt.Sprintf("≤ %.0f ms%s", ms(bound), b.judge(t <= bound))
	}
	fmt.Printf("| %s | %.2f ms | | | %s |\n", name, ms(t), text)
}

func (b *bench) judge(ok bool) string {
	if ok {
		return ""
	}
	b.missed++
	return " **missed**"
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
