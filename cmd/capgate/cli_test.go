package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/cli/clitest"
)

func TestStatus(t *testing.T) {
	b := clitest.New(t, commands)
	_, _, status := b.Run("run", "open", "R", "--max-conv-turns", "1", "--max-dimensions", "1")
	assert.Equal(t, 0, status, "done")
	_, _, status = b.Run("turn", "--run", "unknown")
	assert.Equal(t, 1, status, "error")
	_, _, status = b.Run("turn", "--bogus")
	assert.Equal(t, 1, status, "usage")
	b.Done("turn", "--run", "R")
	_, _, status = b.Run("turn", "--run", "R")
	assert.Equal(t, 2, status, "refused by the cap")
}

// Go's own status for a panic is 2, which is our word for a refusal.
func TestAPanicIsAnErrorOfOneLine(t *testing.T) {
	b := clitest.New(t, commands)
	b.Done("run", "open", "R", "--max-conv-turns", "2", "--max-dimensions", "1")
	for name, tt := range map[string]struct {
		args  []string
		spoil func(o *cli.Outside)
		want  string
	}{
		"before": {[]string{"turn", "--run", "R"}, func(o *cli.Outside) {
			o.Environment = func() (capgate.Config, error) { panic("one\ntwo") }
		}, `one\ntwo`},
		"a nil pointer": {[]string{"log"}, func(o *cli.Outside) { o.Environment = nil }, "runtime error: invalid memory address or nil pointer dereference"},
		"after": {[]string{"turn", "--run", "R"}, func(o *cli.Outside) { o.Stdout = panicking{} },
			"no printer; what was asked is done all the same"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			o := b.Outside(&out, &errs, tt.args...)
			tt.spoil(&o)
			assert.Equal(t, cli.StatusError, cli.Main(o, commands))
			assert.Equal(t, "capgate: this is a bug in capgate, please report it: "+tt.want+"\n", errs.String())
			assert.Empty(t, out.String())
		})
	}
	assert.Contains(t, b.Done("run", "show", "R"), "1 of 2")
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("no printer") }

// TestTurnAlone: turn is built without its siblings, and is the same command all the same.
func TestTurnAlone(t *testing.T) {
	b := clitest.New(t, commands)
	var alone, among bytes.Buffer
	var built []string
	var noting []cli.Command
	for _, c := range commands {
		noting = append(noting, cli.Command{Name: c.Name, New: func(a *cli.App) *cobra.Command {
			built = append(built, c.Name)
			return c.New(a)
		}})
	}
	require.Equal(t, cli.StatusDone, cli.Main(b.Outside(&alone, io.Discard, "turn", "--help"), noting))
	assert.Equal(t, []string{"turn"}, built)
	require.Equal(t, cli.StatusDone, cli.Main(b.Outside(&among, io.Discard, "help", "turn"), noting))
	assert.Len(t, built, 1+len(commands))
	assert.Equal(t, among.String(), alone.String())
}

func TestTimesArePassedIn(t *testing.T) {
	b := clitest.New(t, commands)
	b.Done("scope", "open", "--run", "R", "--max-conv-turns", "2", "--max-dimensions", "1")
	b.Now = b.Now.Add(90 * time.Minute)
	assert.JSONEq(t, `{"run":"R","used":0,"limit":2,"remaining":2,"dimensions":{},"opened_at":"2026-03-01T10:00:00Z","closed":false,
		"max_conv_turns":2,"max_dimensions":1,"granted":0,"last_at":"2026-03-01T10:00:00Z","last_seq":1,"open":0}`, b.Done("run", "show", "R", "--json"))
	assert.Contains(t, b.Done("scope", "list"), "2026-03-01T10:00:00Z  1h30m0s\n")
	b.Now = b.Now.Add(5 * time.Hour)
	assert.Equal(t, "removed the marker of session S (run R, 6h30m0s old)\n", b.Done("scope", "sweep"))
}

// TestExport recomputes the chain as the help of ledger export tells an outsider to.
func TestExport(t *testing.T) {
	b := clitest.New(t, commands)
	b.Done("run", "open", "R", "--max-conv-turns", "30", "--max-dimensions", "1")
	for range 30 {
		b.Done("turn", "--run", "R")
	}
	var head struct{ Ledger, Hash string }
	require.NoError(t, json.Unmarshal([]byte(b.Done("ledger", "head", "--json")), &head))

	prev := head.Ledger
	lines := strings.Split(strings.TrimSuffix(b.Done("ledger", "export"), "\n"), "\n")
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
	b := clitest.New(t, commands)
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
			assert.Equal(t, cli.StatusError, cli.Main(b.Outside(full{}, &errs, tt.args...), commands))
			assert.Equal(t, tt.want, errs.String())
		})
	}
}

func TestConfigError(t *testing.T) {
	b := clitest.New(t, commands)
	for _, args := range [][]string{{"scope", "list"}, {"run", "list"}, {"log"}, {"ledger", "verify"}} {
		var out, errs bytes.Buffer
		o := b.Outside(&out, &errs, args...)
		o.Environment = func() (capgate.Config, error) { return capgate.Config{}, errors.New("no environment") }
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
	b := clitest.New(t, commands)
	root := cli.Root(cli.NewApp(b.Outside(io.Discard, io.Discard)), commands)
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
	b := clitest.New(t, commands)
	for _, cmd := range andBelow(cli.Root(cli.NewApp(b.Outside(io.Discard, io.Discard)), commands)) {
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(line, "#")
			_, line, _ = strings.Cut(line, "capgate ")
			for _, end := range []string{"|", "<", ">", ")"} {
				line, _, _ = strings.Cut(line, end)
			}
			if args := shellWords(line); len(args) > 0 && args[0] != "hook" {
				t.Run(strings.Join(args, "_"), func(t *testing.T) {
					found, rest, err := cli.Root(cli.NewApp(b.Outside(io.Discard, io.Discard)), commands).Find(args)
					require.NoError(t, err)
					require.NoError(t, found.ParseFlags(rest))
					assert.NoError(t, found.ValidateArgs(found.Flags().Args()))
					assert.NoError(t, found.ValidateRequiredFlags())
				})
			}
		}
	}
}

// shellWords splits a line at spaces outside quotes.
func shellWords(line string) []string {
	words := regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(line, -1)
	for i, word := range words {
		words[i] = strings.Trim(word, `"'`)
	}
	return words
}

func TestVersionFromLinker(t *testing.T) {
	b := clitest.New(t, commands)
	b.Version = "v1.2.3"
	assert.Regexp(t, `^capgate v1\.2\.3 .*go1\.`, b.Done("version"))
	assert.Regexp(t, `^capgate v1\.2\.3 .*go1\.`, b.Done("--version"))
	assert.Regexp(t, `^\{"version":"v1\.2\.3",`, b.Done("version", "--json"))
}

// TestControlCharacters: nothing that comes from the command line or a file reaches a terminal as a control character.
func TestControlCharacters(t *testing.T) {
	b := clitest.New(t, commands)
	hostile := "a\x1b[2J\nb\u202e"
	b.Done("run", "open", "rtl\u202eR", "--max-conv-turns", "1", "--max-dimensions", "1")
	for _, args := range [][]string{
		{hostile}, {"scope", hostile}, {"--" + hostile}, {"help", hostile}, {"turn", "--run", hostile}, {"run", "show", hostile},
		{"run", "grant", hostile, "--turns", "1", "--reason", hostile}, {"scope", "close", "--session", hostile},
		{"run", "list", "--timeout", hostile}, {"run", "list"}, {"run", "show", "rtl\u202eR"}, {"ledger", "tail"},
		{"turn", "--run", "rtl\u202eR"}, {"turn", "--run", "rtl\u202eR"}, {"run", "list", "--ledger", hostile + "://x"},
	} {
		out, errs, _ := b.Run(args...)
		for _, c := range []string{"\x1b", "\u202e"} {
			assert.NotContains(t, out+errs, c, args)
		}
		assert.LessOrEqual(t, strings.Count(errs, "\n"), 1, args)
	}
}
