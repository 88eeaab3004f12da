// Package setuptest has scratch homes for tests of an installation: the commands are the built programs.
package setuptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/ledger"
)

// Patient is a scratch home with a real installation, whose hook is the built binary.
type Patient struct {
	Home, Project, State string
	Hook                 string            // the program capgate-hook, where install puts it
	Client               string            // a program claude that says a version
	Env                  map[string]string // the whole environment of its commands

	t       *testing.T
	capgate string
}

var built struct{ dir string }

// Main is the TestMain of a package that has patients: it removes the programs that were built for all of them.
func Main(m *testing.M) {
	status := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(status)
}

// Binaries is a folder with the built programs.
func Binaries(t *testing.T) string {
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "capgate-doctor-test")
		require.NoError(t, err)
		for _, name := range []string{"capgate", "capgate-hook"} {
			out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), "github.com/capgate/capgate/cmd/"+name).CombinedOutput()
			require.NoError(t, err, string(out))
		}
		built.dir = dir
	}
	return built.dir
}

// New returns a patient without an installation yet.
func New(t *testing.T) *Patient {
	dir := t.TempDir()
	p := &Patient{t: t, Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{p.Home, p.Project, bin} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	for _, name := range []string{"capgate", "capgate-hook"} {
		require.NoError(t, os.Link(filepath.Join(Binaries(t), name), filepath.Join(bin, name)))
	}
	p.Client = filepath.Join(bin, "claude")
	require.NoError(t, os.WriteFile(p.Client, []byte("#!/bin/sh\necho '2.1.332 (Claude Code)'\n"), 0o700))
	p.capgate = filepath.Join(bin, "capgate")
	p.Hook = filepath.Join(p.Home, ".local", "share", "capgate", "bin", "capgate-hook")
	p.State = filepath.Join(p.Home, ".local", "state", "capgate")
	p.Env = map[string]string{"HOME": p.Home, "PATH": bin + ":/usr/bin:/bin"}
	return p
}

// Run runs the patient's capgate in its project.
func (p *Patient) Run(args ...string) (out string, exit int) {
	cmd := exec.Command(p.capgate, args...)
	cmd.Dir = p.Project
	for k, v := range p.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	text, err := cmd.Output()
	if cmd.ProcessState == nil {
		require.NoError(p.t, err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// Install installs the hook there.
func (p *Patient) Install(args ...string) *Patient {
	out, exit := p.Run(append([]string{"install"}, args...)...)
	require.Equal(p.t, 0, exit, out)
	return p
}

// Settings is the settings file of a scope.
func (p *Patient) Settings(place string) string {
	switch place {
	case "user":
		return filepath.Join(p.Home, ".claude", "settings.json")
	case "local":
		return filepath.Join(p.Project, ".claude", "settings.local.json")
	}
	return filepath.Join(p.Project, ".claude", "settings.json")
}

// Edit replaces text in the user's settings.
func (p *Patient) Edit(from, to string) {
	path := p.Settings("user")
	text, err := os.ReadFile(path)
	require.NoError(p.t, err)
	require.Regexp(p.t, from, string(text))
	require.NoError(p.t, os.WriteFile(path, []byte(regexp.MustCompile(from).ReplaceAllString(string(text), to)), 0o600))
}

// EnvFile is the environment file of the user's installation.
func (p *Patient) EnvFile() string { return filepath.Join(p.Home, ".claude", "capgate.env") }

// Set adds a line to it, which counts more than those before it.
func (p *Patient) Set(line string) {
	text, err := os.ReadFile(p.EnvFile())
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(p.EnvFile(), append(text, line+"\n"...), 0o600))
}

// Ledger is the patient's ledger.
func (p *Patient) Ledger() *ledger.File {
	return ledger.NewFile(capgate.DefaultLedger(p.State), ledger.Options{})
}
