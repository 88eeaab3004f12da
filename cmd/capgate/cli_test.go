package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

// bench runs command lines in this process, on a state directory and a clock of its own.
type bench struct {
	t   *testing.T
	env map[string]string
	now time.Time

	version string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return &bench{
		t:   t,
		env: map[string]string{"CAPGATE_DATA_DIR": t.TempDir(), "CLAUDE_CODE_SESSION_ID": "S"},
		now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC),
	}
}

func (b *bench) lookup(name string) (string, bool) {
	v, ok := b.env[name]
	return v, ok
}

func (b *bench) outside(stdout, stderr io.Writer, args ...string) cli.Outside {
	return cli.Outside{
		Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Lookup: b.lookup,
		Config: func() (capgate.Config, error) { return capgate.LoadConfig(b.lookup), nil },
		Now:    func() time.Time { return b.now }, Version: b.version,
	}
}

// root returns the commands, to be looked at.
func (b *bench) root() *cobra.Command {
	return cli.Root(cli.NewApp(b.outside(io.Discard, io.Discard)), commands)
}

func (b *bench) run(args ...string) (stdout, stderr string, status int) {
	b.t.Helper()
	var out, errs bytes.Buffer
	status = cli.Main(b.outside(&out, &errs, args...), commands)
	return out.String(), errs.String(), status
}

// done runs a command line that must be done, and returns what it printed.
func (b *bench) done(args ...string) string {
	b.t.Helper()
	out, errs, status := b.run(args...)
	require.Equal(b.t, cli.StatusDone, status, errs)
	require.Empty(b.t, errs)
	return out
}

func TestStatus(t *testing.T) {
	b := newBench(t)
	_, _, status := b.run("run", "open", "R", "--max-conv-turns", "1", "--max-dimensions", "1")
	assert.Equal(t, 0, status, "done")
	_, _, status = b.run("turn", "--run", "unknown")
	assert.Equal(t, 1, status, "error")
	_, _, status = b.run("turn", "--bogus")
	assert.Equal(t, 1, status, "usage")
	b.done("turn", "--run", "R")
	_, _, status = b.run("turn", "--run", "R")
	assert.Equal(t, 2, status, "refused by the cap")
}

// Go's own status for a panic is 2, which is our word for a refusal.
func TestAPanicIsAnErrorOfOneLine(t *testing.T) {
	b := newBench(t)
	b.done("run", "open", "R", "--max-conv-turns", "2", "--max-dimensions", "1")
	for name, tt := range map[string]struct {
		args  []string
		spoil func(o *cli.Outside)
		want  string
	}{
		"before": {[]string{"turn", "--run", "R"}, func(o *cli.Outside) {
			o.Config = func() (capgate.Config, error) { panic("one\ntwo") }
		}, `one\ntwo`},
		"a nil pointer": {[]string{"log"}, func(o *cli.Outside) { o.Config = nil }, "runtime error: invalid memory address or nil pointer dereference"},
		"after": {[]string{"turn", "--run", "R"}, func(o *cli.Outside) { o.Stdout = panicking{} },
			"no printer; what was asked is done all the same"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			o := b.outside(&out, &errs, tt.args...)
			tt.spoil(&o)
			assert.Equal(t, cli.StatusError, cli.Main(o, commands))
			assert.Equal(t, "capgate: this is a bug in capgate, please report it: "+tt.want+"\n", errs.String())
			assert.Empty(t, out.String())
		})
	}
	assert.Contains(t, b.done("run", "show", "R"), "1 of 2")
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("no printer") }

// TestTurnAlone: turn is built without its siblings, and is the same command all the same.
func TestTurnAlone(t *testing.T) {
	b := newBench(t)
	var alone, among bytes.Buffer
	var built []string
	var noting []cli.Command
	for _, c := range commands {
		noting = append(noting, cli.Command{Name: c.Name, New: func(a *cli.App) *cobra.Command {
			built = append(built, c.Name)
			return c.New(a)
		}})
	}
	require.Equal(t, cli.StatusDone, cli.Main(b.outside(&alone, io.Discard, "turn", "--help"), noting))
	assert.Equal(t, []string{"turn"}, built)
	require.Equal(t, cli.StatusDone, cli.Main(b.outside(&among, io.Discard, "help", "turn"), noting))
	assert.Len(t, built, 1+len(commands))
	assert.Equal(t, among.String(), alone.String())
}

func TestTimesArePassedIn(t *testing.T) {
	b := newBench(t)
	b.done("scope", "open", "--run", "R", "--max-conv-turns", "2", "--max-dimensions", "1")
	b.now = b.now.Add(90 * time.Minute)
	assert.JSONEq(t, `{"run":"R","used":0,"limit":2,"remaining":2,"dimensions":{},"opened_at":"2026-03-01T10:00:00Z","closed":false,
		"max_conv_turns":2,"max_dimensions":1,"granted":0,"last_at":"2026-03-01T10:00:00Z","last_seq":1}`, b.done("run", "show", "R", "--json"))
	assert.Contains(t, b.done("scope", "list"), "2026-03-01T10:00:00Z  1h30m0s\n")
	b.now = b.now.Add(5 * time.Hour)
	assert.Equal(t, "removed the marker of session S (run R, 6h30m0s old)\n", b.done("scope", "sweep"))
}

// TestExport recomputes the chain as the help of ledger export tells an outsider to.
func TestExport(t *testing.T) {
	b := newBench(t)
	b.done("run", "open", "R", "--max-conv-turns", "30", "--max-dimensions", "1")
	for range 30 {
		b.done("turn", "--run", "R")
	}
	var head struct{ Ledger, Hash string }
	require.NoError(t, json.Unmarshal([]byte(b.done("ledger", "head", "--json")), &head))

	prev := head.Ledger
	lines := strings.Split(strings.TrimSuffix(b.done("ledger", "export"), "\n"), "\n")
	require.Len(t, lines, 31)
	for i, line := range lines {
		var e struct {
			Seq                int
			Prev, Hash, Stored string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, i+1, e.Seq)
		require.Equal(t, prev, e.Prev)
		raw, err := hex.DecodeString(prev)
		require.NoError(t, err)
		sum := sha256.Sum256(append(raw, e.Stored...))
		prev = hex.EncodeToString(sum[:])
		require.Equal(t, prev, e.Hash)
	}
	assert.Equal(t, head.Hash, prev)
}

// full is standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestUnwritableResult(t *testing.T) {
	const (
		read = "capgate: cannot write the result: disk full\n"
		done = "capgate: cannot write the result: disk full; what was asked is done all the same\n"
	)
	b := newBench(t)
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"scope open", []string{"scope", "open", "--run", "R", "--max-conv-turns", "9", "--max-dimensions", "1"}, done},
		{"turn", []string{"turn", "--run", "R", "--key", "k"}, done},
		{"turn replayed", []string{"turn", "--run", "R", "--key", "k"}, read},
		{"run grant", []string{"run", "grant", "R", "--turns", "1", "--reason", "x"}, done},
		{"run close", []string{"run", "close", "R"}, done},
		{"run close again", []string{"run", "close", "R"}, read},
		{"scope close", []string{"scope", "close"}, done},
		{"scope close again", []string{"scope", "close"}, read},
		{"read only", []string{"run", "show", "R"}, read},
		{"json", []string{"run", "show", "R", "--json"}, read},
		{"lines", []string{"ledger", "export"}, read},
		{"problems", []string{"ledger", "verify"}, read},
		{"help", []string{"help", "run"}, read},
		{"topic", []string{"help", "environment"}, read},
		{"completion", []string{"completion", "bash"}, read},
		{"version", []string{"--version"}, read},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var errs bytes.Buffer
			assert.Equal(t, cli.StatusError, cli.Main(b.outside(full{}, &errs, tt.args...), commands))
			assert.Equal(t, tt.want, errs.String())
		})
	}
}

func TestConfigError(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{{"scope", "list"}, {"run", "list"}, {"log"}, {"ledger", "verify"}} {
		var out, errs bytes.Buffer
		o := b.outside(&out, &errs, args...)
		o.Config = func() (capgate.Config, error) { return capgate.Config{}, errors.New("no environment") }
		assert.Equal(t, cli.StatusError, cli.Main(o, commands), args)
		assert.Equal(t, "capgate: no environment\n", errs.String(), args)
	}
}

// TestProcessConfig holds the way the command line reads its environment against the hook's.
func TestProcessConfig(t *testing.T) {
	t.Setenv("CAPGATE_ENABLED", "")
	t.Setenv("VOYAGE_STORM_ENABLED", "1")
	t.Setenv("CAPGATE_DATA_DIR", t.TempDir())
	got, err := processConfig()
	require.NoError(t, err)
	assert.True(t, got.Enabled.On())
	assert.Equal(t, capgate.LoadConfig(os.LookupEnv), got)
}

func andBelow(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		all = append(all, andBelow(c)...)
	}
	return all
}

// TestHelp holds every command of ours to what a newcomer needs.
func TestHelp(t *testing.T) {
	b := newBench(t)
	root := b.root()
	for _, cmd := range andBelow(root) {
		if cmd.Parent() != nil && cmd.Parent().Name() == "completion" || cmd.Name() == "environment" {
			continue // cobra's own, and a topic
		}
		t.Run(strings.ReplaceAll(cmd.CommandPath(), " ", "_"), func(t *testing.T) {
			assert.NotEmpty(t, cmd.Short)
			assert.NotEmpty(t, cmd.Long)
			assert.Contains(t, cmd.Example, "capgate ", "Example")
			assert.NotRegexp(t, `\.$`, cmd.Short)
			for line := range strings.Lines(cmd.Long) {
				assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 120, line)
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				assert.NotEmpty(t, f.Usage, f.Name)
			})
		})
	}
}

// TestExamples parses every example: its command, its flags and its arguments must exist.
func TestExamples(t *testing.T) {
	b := newBench(t)
	for _, cmd := range andBelow(b.root()) {
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(line, "#")
			_, line, _ = strings.Cut(line, "capgate ")
			for _, end := range []string{"|", "<", ">", ")"} {
				line, _, _ = strings.Cut(line, end)
			}
			if args := shellWords(line); len(args) > 0 && args[0] != "hook" {
				t.Run(strings.Join(args, "_"), func(t *testing.T) {
					found, rest, err := b.root().Find(args)
					require.NoError(t, err)
					require.NoError(t, found.ParseFlags(rest))
					assert.NoError(t, found.ValidateArgs(found.Flags().Args()))
					assert.NoError(t, found.ValidateRequiredFlags())
				})
			}
		}
	}
}

// shellWords splits a line at spaces outside double quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// TestDimensionsNeverNull: the shape of run show is promised.
func TestDimensionsNeverNull(t *testing.T) {
	text, err := json.Marshal(showRun(ledger.Usage{}))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"dimensions":{}`)
}

func TestVersionFromLinker(t *testing.T) {
	b := newBench(t)
	b.version = "v1.2.3"
	assert.Regexp(t, `^capgate v1\.2\.3 .*go1\.`, b.done("version"))
	assert.Regexp(t, `^capgate v1\.2\.3 .*go1\.`, b.done("--version"))
	assert.Regexp(t, `^\{"version":"v1\.2\.3",`, b.done("version", "--json"))
}

// TestControlCharacters: nothing that comes from the command line or a file reaches a terminal as a control character.
func TestControlCharacters(t *testing.T) {
	b := newBench(t)
	hostile := "a\x1b[2J\nb\u202e"
	b.done("run", "open", "rtl\u202eR", "--max-conv-turns", "1", "--max-dimensions", "1")
	for _, args := range [][]string{
		{hostile}, {"scope", hostile}, {"--" + hostile}, {"help", hostile}, {"turn", "--run", hostile}, {"run", "show", hostile},
		{"run", "grant", hostile, "--turns", "1", "--reason", hostile}, {"scope", "close", "--session", hostile},
		{"run", "list", "--timeout", hostile}, {"run", "list"}, {"run", "show", "rtl\u202eR"}, {"ledger", "tail"},
		{"turn", "--run", "rtl\u202eR"}, {"turn", "--run", "rtl\u202eR"}, {"run", "list", "--ledger", hostile + "://x"},
	} {
		out, errs, _ := b.run(args...)
		for _, c := range []string{"\x1b", "\u202e"} {
			assert.NotContains(t, out+errs, c, args)
		}
		assert.LessOrEqual(t, strings.Count(errs, "\n"), 1, args)
	}
}
