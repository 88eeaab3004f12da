package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/settings"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// patient is a scratch home with a real installation, whose hook is the built binary.
type patient struct {
	t                    *testing.T
	home, project, state string
	capgate, hook        string
	env                  map[string]string
}

var built struct{ dir string }

func binaries(t *testing.T) string {
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "capgate-doctor-test")
		require.NoError(t, err)
		for _, name := range []string{"capgate", "capgate-hook"} {
			out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), "../"+name).CombinedOutput()
			require.NoError(t, err, string(out))
		}
		built.dir = dir
	}
	return built.dir
}

func newPatient(t *testing.T) *patient {
	dir := t.TempDir()
	p := &patient{t: t, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project")}
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{p.home, p.project, bin} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	for _, name := range []string{"capgate", "capgate-hook"} {
		require.NoError(t, os.Link(filepath.Join(binaries(t), name), filepath.Join(bin, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\necho '2.1.332 (Claude Code)'\n"), 0o700))
	p.capgate, p.hook = filepath.Join(bin, "capgate"), filepath.Join(bin, "capgate-hook")
	p.state = filepath.Join(p.home, ".local", "state", "capgate")
	p.env = map[string]string{"HOME": p.home, "PATH": bin + ":/usr/bin:/bin"}
	return p
}

func (p *patient) run(args ...string) (out string, exit int) {
	cmd := exec.Command(p.capgate, args...)
	cmd.Dir = p.project
	for k, v := range p.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	text, err := cmd.Output()
	if cmd.ProcessState == nil {
		require.NoError(p.t, err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func (p *patient) install(args ...string) *patient {
	out, exit := p.run(append([]string{"install"}, args...)...)
	require.Equal(p.t, 0, exit, out)
	return p
}

func (p *patient) settings(place string) string {
	switch place {
	case "user":
		return filepath.Join(p.home, ".claude", "settings.json")
	case "local":
		return filepath.Join(p.project, ".claude", "settings.local.json")
	}
	return filepath.Join(p.project, ".claude", "settings.json")
}

// edit replaces text in the user's settings.
func (p *patient) edit(from, to string) {
	path := p.settings("user")
	text, err := os.ReadFile(path)
	require.NoError(p.t, err)
	require.Regexp(p.t, from, string(text))
	require.NoError(p.t, os.WriteFile(path, []byte(regexp.MustCompile(from).ReplaceAllString(string(text), to)), 0o600))
}

func (p *patient) ledger() *ledger.File {
	return ledger.NewFile(filepath.Join(p.state, "ledger.db"), ledger.Options{})
}

func (p *patient) diagnose() diagnosis {
	out, exit := p.run("doctor", "--json")
	var d diagnosis
	require.NoError(p.t, json.Unmarshal([]byte(out), &d), out)
	want := cli.StatusDone
	if !d.Healthy {
		want = cli.StatusUnhealthy
	}
	require.Equal(p.t, want, exit)
	return d
}

func TestAFreshInstallationIsHealthy(t *testing.T) {
	p := newPatient(t).install()
	d := p.diagnose()
	require.True(t, d.Healthy, "%+v", d.Findings)
	checks := map[string]bool{}
	for _, f := range d.Findings {
		require.NotEqual(t, levelFail, f.Level, "%+v", f)
		checks[f.Check] = true
	}
	for _, check := range []string{"hook", "canary", "client", "switch", "state", "ledger"} {
		require.True(t, checks[check], check)
	}
	out, exit := p.run("doctor")
	require.Equal(t, 0, exit)
	require.Contains(t, out, "ok    canary: ")
}

// Each thing that can be wrong is found, said to be what it is, and comes with a command.
func TestTheDoctorFinds(t *testing.T) {
	for _, c := range []struct {
		name, check, level, found string
		spoil                     func(t *testing.T, p *patient)
	}{
		{"no installation", "hook", levelFail, "no settings file has the hook", func(t *testing.T, p *patient) {
			_, exit := p.run("uninstall")
			require.Equal(t, 0, exit)
		}},
		{"the hook was moved", "hook", levelFail, "there is no such file", func(t *testing.T, p *patient) { require.NoError(t, os.Remove(p.hook)) }},
		{"the hook is not executable", "hook", levelFail, "is not executable", func(t *testing.T, p *patient) {
			require.NoError(t, os.Remove(p.hook))
			require.NoError(t, os.WriteFile(p.hook, []byte("x"), 0o600))
		}},
		{"another program stands in its place", "canary", levelFail, "should end with exit status 2 ended with 0", func(t *testing.T, p *patient) {
			require.NoError(t, os.Remove(p.hook))
			require.NoError(t, os.WriteFile(p.hook, []byte("#!/bin/sh\nexit 0\n"), 0o700))
		}},
		{"it denies everything", "canary", levelFail, "not about the canary", func(t *testing.T, p *patient) {
			require.NoError(t, os.Remove(p.hook))
			require.NoError(t, os.WriteFile(p.hook, []byte("#!/bin/sh\necho no >&2; exit 2\n"), 0o700))
		}},
		{"no onFailure", "hook", levelFail, "has no onFailure: block", func(t *testing.T, p *patient) { p.edit(`,\s*"onFailure": "block"`, "") }},
		{"no timeout", "hook", levelWarn, "has a timeout of 0 s", func(t *testing.T, p *patient) { p.edit(`"timeout": 10,`, "") }},
		{"a matcher", "hook", levelFail, "stands under a matcher", func(t *testing.T, p *patient) {
			p.edit(`"PreToolUse": \[\s*\{`, `"PreToolUse": [ { "matcher": "Bash",`)
		}},
		{"a relative path", "hook", levelFail, "capgate-hook in ", func(t *testing.T, p *patient) { p.edit(regexp.QuoteMeta(p.hook), "capgate-hook") }},
		{"no SessionEnd", "hook", levelWarn, "no entry for SessionEnd", func(t *testing.T, p *patient) { p.edit(`"SessionEnd"`, `"Stop"`) }},
		{"disableAllHooks", "settings", levelFail, "has disableAllHooks", func(t *testing.T, p *patient) { p.edit(`^\{`, `{ "disableAllHooks": true,`) }},
		{"a broken file", "settings", levelFail, "line 1, column", func(t *testing.T, p *patient) {
			require.NoError(t, os.MkdirAll(filepath.Dir(p.settings("project")), 0o700))
			require.NoError(t, os.WriteFile(p.settings("project"), []byte("{,}"), 0o600))
		}},
		{"two copies", "copies", levelWarn, "2 copies", func(t *testing.T, p *patient) { p.install("--scope", "project") }},
		{"a plugin copy", "copies", levelWarn, "plugin capgate@market", func(t *testing.T, p *patient) { p.edit(`^\{`, `{ "enabledPlugins": {"capgate@market": true},`) }},
		{"an old client", "client", levelFail, "Claude Code 2.1.294", func(t *testing.T, p *patient) {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(p.hook), "claude"), []byte("#!/bin/sh\necho 2.1.294\n"), 0o700))
		}},
		{"no client", "client", levelWarn, "not on PATH", func(t *testing.T, p *patient) {
			require.NoError(t, os.Remove(filepath.Join(filepath.Dir(p.hook), "claude")))
		}},
		{"a kill switch", "switch", levelWarn, "CAPGATE_DISABLE_CAP=1, from ", func(t *testing.T, p *patient) {
			p.edit(`"CAPGATE_ENABLED"`, `"CAPGATE_DISABLE_CAP": "1", "CAPGATE_ENABLED"`)
		}},
		{"a kill switch by its old name", "switch", levelWarn, "VOYAGE_DISABLE_CAP_HOOK=1", func(t *testing.T, p *patient) { p.env["VOYAGE_DISABLE_CAP_HOOK"] = "1" }},
		{"a value that is not 1", "switch", levelFail, "CAPGATE_ENABLED=true", func(t *testing.T, p *patient) { p.edit(`"CAPGATE_ENABLED": "1"`, `"CAPGATE_ENABLED": "true"`) }},
		{"not enabled", "switch", levelFail, "CAPGATE_ENABLED is not 1", func(t *testing.T, p *patient) { p.edit(`"CAPGATE_ENABLED": "1",`, ``) }},
		{"a switch in a file of the project", "switch", levelWarn, "CAPGATE_ENABLED=0, from ", func(t *testing.T, p *patient) {
			require.NoError(t, os.MkdirAll(filepath.Dir(p.settings("local")), 0o700))
			require.NoError(t, os.WriteFile(p.settings("local"), []byte(`{"env":{"CAPGATE_ENABLED":"0"}}`), 0o600))
		}},
		{"an odd TTL", "times", levelFail, "CAPGATE_SCOPE_TTL_MS=6h", func(t *testing.T, p *patient) { p.env["CAPGATE_SCOPE_TTL_MS"] = "6h" }},
		{"a short TTL", "times", levelWarn, "CAPGATE_SCOPE_TTL_MS is 5ms", func(t *testing.T, p *patient) { p.env["CAPGATE_SCOPE_TTL_MS"] = "5" }},
		{"a deadline beyond the client's", "times", levelWarn, "CAPGATE_DEADLINE_MS is 1m0s", func(t *testing.T, p *patient) { p.env["CAPGATE_DEADLINE_MS"] = "60000" }},
		{"no state directory", "state", levelWarn, "is not there", func(t *testing.T, p *patient) { require.NoError(t, os.Remove(p.state)) }},
		{"a relative state directory", "state", levelFail, `"state"`, func(t *testing.T, p *patient) { p.edit(`"CAPGATE_DATA_DIR": "[^"]*"`, `"CAPGATE_DATA_DIR": "state"`) }},
		{"too open", "state", levelWarn, "has mode 0755", func(t *testing.T, p *patient) { require.NoError(t, os.Chmod(p.state, 0o755)) }},
		{"a file in its place", "state", levelFail, "is not a directory", func(t *testing.T, p *patient) {
			require.NoError(t, os.Remove(p.state))
			require.NoError(t, os.WriteFile(p.state, nil, 0o600))
		}},
		{"the shell has another", "state", levelWarn, "this shell's commands use", func(t *testing.T, p *patient) { p.env["CAPGATE_DATA_DIR"] = p.home + "/other" }},
		{"a damaged ledger", "ledger", levelFail, "ledger.db", func(t *testing.T, p *patient) {
			_, err := p.ledger().OpenRun(t.Context(), "r", 1, 1)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(filepath.Join(p.state, "ledger.db"), 5000))
		}},
		{"a marker without its run", "markers", levelFail, "is not in the ledger", func(t *testing.T, p *patient) {
			_, err := p.ledger().OpenRun(t.Context(), "r", 1, 1)
			require.NoError(t, err)
			require.NoError(t, scope.Write(p.state, scope.Marker{Session: "s", Run: "gone", StartedAt: time.Now()}))
		}},
		{"an expired marker", "markers", levelWarn, "expired", func(t *testing.T, p *patient) {
			require.NoError(t, scope.Write(p.state, scope.Marker{Session: "s", Run: "gone", StartedAt: time.Now().Add(-9 * time.Hour)}))
		}},
		{"an unreadable marker", "markers", levelFail, "s.json", func(t *testing.T, p *patient) {
			require.NoError(t, scope.Write(p.state, scope.Marker{Session: "s", Run: "r", StartedAt: time.Now()}))
			require.NoError(t, os.WriteFile(scope.Path(p.state, "s"), []byte("{"), 0o600))
		}},
		{"a silent hook", "markers", levelFail, "hook: silent", func(t *testing.T, p *patient) {
			_, err := p.ledger().OpenRun(t.Context(), "r", 2, 1)
			require.NoError(t, err)
			require.NoError(t, scope.Write(p.state, scope.Marker{Session: "s", Run: "r", StartedAt: time.Now()}))
			time.Sleep(20 * time.Millisecond)
			for range 2 {
				_, err = p.ledger().RecordTurn(t.Context(), "r", "", "")
				require.NoError(t, err)
			}
		}},
		{"a hook that is silent after one turn", "markers", levelWarn, "no search of it has been judged since it was armed", func(t *testing.T, p *patient) {
			_, err := p.ledger().OpenRun(t.Context(), "r", 2, 1)
			require.NoError(t, err)
			require.NoError(t, scope.Write(p.state, scope.Marker{Session: "s", Run: "r", StartedAt: time.Now()}))
			time.Sleep(20 * time.Millisecond)
			_, err = p.ledger().RecordTurn(t.Context(), "r", "", "")
			require.NoError(t, err)
		}},
		{"an async entry", "hook", levelFail, "is async", func(t *testing.T, p *patient) { p.edit(`"timeout": 10,`, `"timeout": 10, "async": true,`) }},
		{"an entry with a condition", "hook", levelFail, "has an if", func(t *testing.T, p *patient) { p.edit(`"timeout": 10,`, `"timeout": 10, "if": "Bash(git *)",`) }},
		{"an entry of another type", "hook", levelFail, `has the type "http"`, func(t *testing.T, p *patient) { p.edit(`"type": "command"`, `"type": "http"`) }},
		{"a timeout that is a text", "hook", levelWarn, "has a timeout of 0 s", func(t *testing.T, p *patient) { p.edit(`"timeout": 10,`, `"timeout": "10",`) }},
		{"the shell form of a program that is gone", "hook", levelFail, "there is no such file", func(t *testing.T, p *patient) {
			p.edit(`"command": "[^"]*",\s*"args": \[\]`, `"command": "/none/capgate-hook --client claude"`)
		}},
		{"a capped tool in other letters", "switch", levelWarn, "CAPGATE_CAP_TOOLS names websearch", func(t *testing.T, p *patient) { p.env["CAPGATE_CAP_TOOLS"] = "websearch,WebFetch" }},
		{"broken admissions", "state", levelWarn, "admissions.json", func(t *testing.T, p *patient) {
			require.NoError(t, os.WriteFile(filepath.Join(p.state, "admissions.json"), []byte("{"), 0o600))
		}},
		{"a decision log that is no file", "state", levelWarn, "decisions.jsonl is not a regular file", func(t *testing.T, p *patient) {
			require.NoError(t, os.Mkdir(filepath.Join(p.state, "decisions.jsonl"), 0o700))
		}},
		{"a hook without gates", "canary", levelFail, "should end with exit status 2 ended with 0", func(t *testing.T, p *patient) {
			real := p.hook + "-real"
			require.NoError(t, os.Rename(p.hook, real))
			require.NoError(t, os.WriteFile(p.hook, []byte("#!/bin/sh\nunset CAPGATE_ALLOWED_SUBAGENTS\nexec '"+real+"' \"$@\"\n"), 0o700))
		}},
		{"a broken spec", "spec", levelFail, "unknown key", func(t *testing.T, p *patient) {
			spec := filepath.Join(p.home, "spec.json")
			require.NoError(t, os.WriteFile(spec, []byte(`{"subagents":{"a":{}}}`), 0o600))
			p.install("--spec", spec)
			require.NoError(t, os.WriteFile(spec, []byte(`{"agents":{}}`), 0o600))
		}},
		{"the foreground gate without its variable", "foreground", levelFail, backgroundTasks, func(t *testing.T, p *patient) {
			p.edit(`"CAPGATE_ENABLED"`, `"CAPGATE_ALLOWED_SUBAGENTS": "a", "CAPGATE_ENABLED"`)
		}},
		{"Oh My Pi's hook is gone", "omp", levelFail, "cannot be run", func(t *testing.T, p *patient) {
			p.install("--client", "omp")
			require.NoError(t, os.Remove(p.hook))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t).install()
			c.spoil(t, p)
			d := p.diagnose()
			require.Equal(t, c.level == levelFail, !d.Healthy && c.level == levelFail)
			for _, f := range d.Findings {
				if f.Check == c.check && f.Level == c.level && strings.Contains(f.Found, c.found) {
					require.NotEmpty(t, f.Meaning)
					if f.Check != "client" {
						require.NotEmpty(t, f.Mend)
					}
					return
				}
			}
			require.Failf(t, "not found", "%+v", d.Findings)
		})
	}
}

// What is odd, but works, is healthy.
func TestTheDoctorIsContentWith(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, p *patient){
		"the home directory as the project": func(_ *testing.T, p *patient) { p.project = p.home },
		"a matcher for everything": func(_ *testing.T, p *patient) {
			p.edit(`"PreToolUse": \[\s*\{`, `"PreToolUse": [ { "matcher": ".*",`)
		},
		"the shell form": func(_ *testing.T, p *patient) {
			p.edit(`"command": "([^"]*)",\s*"args": \[\]`, `"command": "$1 --client claude"`)
		},
		"Oh My Pi alone": func(t *testing.T, p *patient) {
			_, exit := p.run("uninstall")
			require.Equal(t, 0, exit)
			p.install("--client", "omp", "--subagents", "scout")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t).install()
			change(t, p)
			d := p.diagnose()
			require.True(t, d.Healthy, "%+v", d.Findings)
			for _, f := range d.Findings {
				require.NotEqual(t, "copies", f.Check)
				if f.Level != levelOK && f.Check != "ledger" { // there is none yet
					require.Equal(t, "Oh My Pi alone/hook", name+"/"+f.Check, "%+v", f)
				}
			}
		})
	}
}

func TestManagedHooksOnly(t *testing.T) {
	for text, want := range map[string]int{
		`{"allowManagedHooksOnly": true}`:  1,
		`{"allowManagedHooksOnly": false}`: 0,
		`{"allowManagedHooksOnly": true, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "/x/capgate-hook"}]}]}}`: 0,
	} {
		doc, err := settings.Parse([]byte(text))
		require.NoError(t, err)
		x := &examination{files: []*settingsLayer{{place: placeManaged, path: "managed-settings.json", doc: doc}}}
		x.checkSettings()
		require.Len(t, x.found, want, text)
	}
}

// Installing again keeps what the extension says, as it does for a settings file.
func TestOMPIsInstalledAgainWithWhatItHad(t *testing.T) {
	p := newPatient(t).install("--client", "omp", "--state", t.TempDir(), "--subagents", "scout", "--admission", "ask")
	out, exit := p.run("install", "--client", "omp")
	require.Equal(t, 0, exit)
	require.Contains(t, out, "capgate.ts: unchanged")
	path := filepath.Join(p.home, ".omp", "agent", "extensions", "capgate.ts")
	spec := filepath.Join(p.home, "spec.json")
	require.NoError(t, os.WriteFile(spec, []byte(`{"subagents":{"a":{}}}`), 0o600))
	out, exit = p.run("install", "--client", "omp", "--spec", spec)
	require.Equal(t, 0, exit)
	require.Contains(t, out, `taken out: CAPGATE_ALLOWED_SUBAGENTS, which was "scout"`)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), `"CAPGATE_ALLOWED_SUBAGENTS":`)
	require.Contains(t, string(text), `"CAPGATE_SPEC":"`+spec+`"`)
	require.Contains(t, string(text), `"CAPGATE_ADMISSION":"ask"`)
	require.NotContains(t, string(text), `"CAPGATE_DATA_DIR":"`+p.state+`"`)
}

// The doctor changes nothing.
func TestTheDoctorChangesNothing(t *testing.T) {
	p := newPatient(t).install()
	list := func() string {
		out, err := exec.Command("find", p.home, p.project, "-printf", "%p %s %T@\n").Output()
		require.NoError(t, err)
		return string(out)
	}
	before := list()
	p.diagnose()
	require.Equal(t, before, list())
}

func TestOMPExtensionIsPrintedWithItsHookAndEnvironment(t *testing.T) {
	p := newPatient(t)
	out, exit := p.run("omp", "extension", "--subagents", "scout", "--admission", "ask")
	require.Equal(t, 0, exit)
	require.Contains(t, out, `const HOOK: string = "`+p.hook+`";`)
	require.Contains(t, out, `"CAPGATE_ALLOWED_SUBAGENTS":"scout"`)
	require.Contains(t, out, `"CAPGATE_DATA_DIR":"`+p.state+`"`)
	require.NotContains(t, out, backgroundTasks)
	require.NoDirExists(t, p.state, "printing makes nothing")
}
