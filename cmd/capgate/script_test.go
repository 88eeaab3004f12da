package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what scripts expect with cmp to what they get")

func TestMain(m *testing.M) {
	// Scripts try what a hangup does to a shell. Under nohup it is ignored, and a shell that starts so cannot trap it.
	// What starts below a program that catches it has it as usual.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Main(m, map[string]func(){
		"capgate": main,
	})
}

// TestScripts runs testdata/script at the top of the module, one file a behaviour. Beside testscript's commands there
// are
//
//	exits STATUS COMMAND...          the command ends with exactly this status
//	fails STATUS REGEXP COMMAND...   so it does, and says why in one line on standard error, which matches
//	masked FILE                      standard output is FILE, with what differs between runs replaced; see mask
//
// In fails, standard output is empty too.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		Deadline:            time.Now().Add(3 * time.Minute), // a command that hangs fails its script
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("CAPGATE_DATA_DIR", e.WorkDir+"/state")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // or each command of a -race build takes a second to end
			return writeGuide(e.WorkDir)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition " + cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  cmdExits,
			"fails":  cmdFails,
			"masked": cmdMasked,
		},
	})
}

// writeGuide puts the code blocks of the guide where a script can run them: guide.sh, after.sh and guide.md.
func writeGuide(dir string) error {
	text, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		return err
	}
	for name, fence := range map[string]string{"guide.sh": "```sh\n", "after.sh": "```bash\n", "guide.md": "```markdown\n"} {
		_, block, found := strings.Cut(string(text), fence)
		block, _, closed := strings.Cut(block, "\n```")
		if !found || !closed {
			return errors.New("docs/guide.md has no block " + fence)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(block+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, not %d; stdout:\n%sstderr:\n%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func cmdFails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: fails status regexp command [args...]")
	}
	cmdExits(ts, false, append([]string{args[0]}, args[2:]...))
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("output beside an error:\n%s", out)
	}
	line := ts.ReadFile("stderr")
	rest, found := strings.CutPrefix(line, "capgate: ")
	switch {
	case !found || strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n"):
		ts.Fatalf("not one line that begins with \"capgate: \":\n%s", line)
	case !strings.HasPrefix(rest, "CAPGATE_") && !strings.HasPrefix(rest, "CLAUDE_") && rest != strings.ToLower(rest[:1])+rest[1:] || strings.HasSuffix(rest, ".\n"):
		ts.Fatalf("begins upper case or ends with a full stop:\n%s", line)
	case !regexp.MustCompile(args[1]).MatchString(strings.TrimSuffix(line, "\n")):
		ts.Fatalf("no match for %s:\n%s", args[1], line)
	}
}

var masks = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`"age_seconds":[0-9.e-]+`), `"age_seconds":AGE`},
	{regexp.MustCompile(`(?m) (\d+h)?(\d+m)?\d+s$`), " AGE"},
}

// mask replaces times, hashes, ages, and the script's own directory.
func mask(text, work string) string {
	text = strings.ReplaceAll(text, work, "$WORK")
	for _, m := range masks {
		text = m.from.ReplaceAllString(text, m.to)
	}
	return text
}

func cmdMasked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: masked file")
	}
	got := mask(ts.ReadFile("stdout"), ts.Getenv("WORK"))
	if want := ts.ReadFile(args[0]); got != want {
		ts.Fatalf("stdout is not %s; got:\n%swant:\n%s", args[0], got, want)
	}
}
