package setup

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"

	"github.com/capgate/capgate/cmd/capgate/internal/setup/setuptest"
)

// TestPlace runs testdata/place.txtar with the built programs: `programs DIR` puts both into a folder, and `fails REGEXP COMMAND...`
// is a command that fails so.
func TestPlace(t *testing.T) {
	binaries := setuptest.Binaries(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"programs": func(ts *testscript.TestScript, _ bool, args []string) {
				to := ts.MkAbs(args[0])
				ts.Check(os.MkdirAll(to, 0o755))
				for _, name := range []string{program, hookProgram} {
					text, err := os.ReadFile(filepath.Join(binaries, name))
					ts.Check(err)
					ts.Check(os.WriteFile(filepath.Join(to, name), text, 0o755))
				}
			},
			"fails": func(ts *testscript.TestScript, _ bool, args []string) {
				err := ts.Exec(args[1], args[2:]...)
				said := ts.ReadFile("stderr")
				if err == nil || !regexp.MustCompile(args[0]).MatchString(said) {
					ts.Fatalf("it should fail with %s: %v, %s", args[0], err, said)
				}
			},
		},
	})
}

// Programs stay where a system keeps them, and are copied from everywhere else.
func TestWhereAnInstallationRunsTheProgramsFrom(t *testing.T) {
	both := []string{"capgate", "capgate-hook"}
	for _, c := range []struct {
		from    string
		names   []string
		place   string
		command string
		args    []string
		copies  []Copy
	}{
		{"/usr/local/bin", both, "/p", "/usr/local/bin/capgate-hook", []string{}, nil},
		{"/usr/bin", both[:1], "/p", "/usr/bin/capgate", []string{"hook"}, nil},
		{"/opt/homebrew/bin", both, "/p", "/opt/homebrew/bin/capgate-hook", []string{}, nil},
		{"/opt/homebrew/Cellar/capgate/1.0/bin", both[:1], "/p", "/p/capgate", []string{"hook"}, []Copy{{From: "/opt/homebrew/Cellar/capgate/1.0/bin/capgate", To: "/p/capgate"}}},
		{"/usrx", both[:1], "/p", "/p/capgate", []string{"hook"}, []Copy{{From: "/usrx/capgate", To: "/p/capgate"}}},
		{"/clone/bin", both, "/p", "/p/capgate-hook", []string{}, []Copy{{From: "/clone/bin/capgate", To: "/p/capgate"}, {From: "/clone/bin/capgate-hook", To: "/p/capgate-hook"}}},
		{"/clone/bin", []string{"cg", "capgate-hook"}, "/p", "/p/capgate-hook", []string{}, []Copy{{From: "/clone/bin/cg", To: "/p/capgate"}, {From: "/clone/bin/capgate-hook", To: "/p/capgate-hook"}}},
		{"/clone/bin", []string{"cg"}, "", "/clone/bin/cg", []string{"hook"}, nil},
		{"/p", both, "/p", "/p/capgate-hook", []string{}, nil},
		{"/clone/bin", both, "", "/clone/bin/capgate-hook", []string{}, nil},
	} {
		assert.Equal(t, Programs{c.command, c.args, c.copies}, planPrograms(c.from, c.names, c.place), c.from)
	}
}
