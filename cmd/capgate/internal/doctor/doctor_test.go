package doctor

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

	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/setuptest"
	"github.com/capgate/capgate/scope"
)

func TestMain(m *testing.M) { setuptest.Main(m) }

func diagnose(t *testing.T, p *setuptest.Patient) Diagnosis {
	out, exit := p.Run("doctor", "--json")
	var d Diagnosis
	require.NoError(t, json.Unmarshal([]byte(out), &d), out)
	want := cli.StatusDone
	if !d.Healthy {
		want = cli.StatusUnhealthy
	}
	require.Equal(t, want, exit)
	return d
}

func TestAFreshInstallationIsHealthy(t *testing.T) {
	p := setuptest.New(t).Install()
	d := diagnose(t, p)
	require.True(t, d.Healthy, "%+v", d.Findings)
	checks := map[string]bool{}
	for _, f := range d.Findings {
		require.NotEqual(t, Fail, f.Level, "%+v", f)
		checks[f.Check] = true
	}
	for _, check := range []string{"hook", "canary", "client", "switch", "state", "ledger"} {
		require.True(t, checks[check], check)
	}
	out, exit := p.Run("doctor")
	require.Equal(t, 0, exit)
	require.Contains(t, out, "ok    canary: ")
}

// Each thing that can be wrong is found, said to be what it is, and comes with a command.
func TestTheDoctorFinds(t *testing.T) {
	for _, c := range []struct {
		name, check, level, found string
		spoil                     func(t *testing.T, p *setuptest.Patient)
	}{
		{"no installation", "hook", Fail, "no settings file has the hook", func(t *testing.T, p *setuptest.Patient) {
			_, exit := p.Run("uninstall")
			require.Equal(t, 0, exit)
		}},
		{"the hook was moved", "hook", Fail, "there is no such file", func(t *testing.T, p *setuptest.Patient) { require.NoError(t, os.Remove(p.Hook)) }},
		{"the hook is not executable", "hook", Fail, "is not executable", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.Remove(p.Hook))
			require.NoError(t, os.WriteFile(p.Hook, []byte("x"), 0o600))
		}},
		{"another program stands in its place", "canary", Fail, "should end with exit status 2 ended with 0", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.Remove(p.Hook))
			require.NoError(t, os.WriteFile(p.Hook, []byte("#!/bin/sh\nexit 0\n"), 0o700))
		}},
		{"it denies everything", "canary", Fail, "not about the canary", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.Remove(p.Hook))
			require.NoError(t, os.WriteFile(p.Hook, []byte("#!/bin/sh\necho no >&2; exit 2\n"), 0o700))
		}},
		{"no onFailure", "hook", Fail, "has no onFailure: block", func(t *testing.T, p *setuptest.Patient) { p.Edit(`,\s*"onFailure": "block"`, "") }},
		{"no timeout", "hook", Warn, "has a timeout of 0 s", func(t *testing.T, p *setuptest.Patient) { p.Edit(`"timeout": 10,`, "") }},
		{"a matcher", "hook", Fail, "stands under a matcher", func(t *testing.T, p *setuptest.Patient) {
			p.Edit(`"matcher": "\^\(\?:[^"]*"`, `"matcher": "Bash"`)
		}},
		{"one matcher is gone", "hook", Fail, "stands under a matcher", func(t *testing.T, p *setuptest.Patient) {
			p.Edit(`"matcher": "\^\(\?![^"]*"`, `"matcher": "Bash"`)
		}},
		{"more is capped than blocked", "hook", Fail, "does not block mcp__exa__*", func(t *testing.T, p *setuptest.Patient) {
			p.Set("CAPGATE_CAP_TOOLS=WebSearch,mcp__exa__*")
		}},
		{"a list by hand", "hook", Fail, "does not block the calls of subagents", func(t *testing.T, p *setuptest.Patient) {
			p.Set("CAPGATE_ALLOWED_SUBAGENTS=a")
		}},
		{"a relative path", "hook", Fail, "capgate-hook for ^(?:", func(t *testing.T, p *setuptest.Patient) { p.Edit(regexp.QuoteMeta(p.Hook), "capgate-hook") }},
		{"no SessionEnd", "hook", Warn, "no entry for SessionEnd", func(t *testing.T, p *setuptest.Patient) { p.Edit(`"SessionEnd"`, `"Stop"`) }},
		{"disableAllHooks", "settings", Fail, "has disableAllHooks", func(t *testing.T, p *setuptest.Patient) { p.Edit(`^\{`, `{ "disableAllHooks": true,`) }},
		{"a broken file", "settings", Fail, "line 1, column", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.MkdirAll(filepath.Dir(p.Settings("project")), 0o700))
			require.NoError(t, os.WriteFile(p.Settings("project"), []byte("{,}"), 0o600))
		}},
		{"two copies", "copies", Warn, "2 copies", func(t *testing.T, p *setuptest.Patient) { p.Install("--scope", "project") }},
		{"a plugin copy", "copies", Warn, "plugin capgate@market", func(t *testing.T, p *setuptest.Patient) {
			p.Edit(`^\{`, `{ "enabledPlugins": {"capgate@market": true},`)
		}},
		{"an old client", "client", Fail, "Claude Code 2.1.294", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.WriteFile(p.Client, []byte("#!/bin/sh\necho 2.1.294\n"), 0o700))
		}},
		{"no client", "client", Warn, "not on PATH", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.Remove(p.Client))
		}},
		{"a kill switch", "switch", Warn, "CAPGATE_DISABLE_CAP=1, from ", func(t *testing.T, p *setuptest.Patient) {
			p.Set("CAPGATE_DISABLE_CAP=1")
		}},
		{"a kill switch by its old name", "switch", Warn, "VOYAGE_DISABLE_CAP_HOOK=1", func(t *testing.T, p *setuptest.Patient) { p.Env["VOYAGE_DISABLE_CAP_HOOK"] = "1" }},
		{"a value that is not 1", "switch", Fail, "CAPGATE_ENABLED=true", func(t *testing.T, p *setuptest.Patient) {
			p.Set("CAPGATE_ENABLED=true")
		}},
		{"not enabled", "switch", Fail, "CAPGATE_ENABLED is not 1", func(t *testing.T, p *setuptest.Patient) { p.Set("CAPGATE_ENABLED=") }},
		{"a switch in a file of the project", "switch", Warn, "CAPGATE_DISABLE_CAP=1, from ", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.MkdirAll(filepath.Dir(p.Settings("local")), 0o700))
			require.NoError(t, os.WriteFile(p.Settings("local"), []byte(`{"env":{"CAPGATE_DISABLE_CAP":"1"}}`), 0o600))
		}},
		{"a list that does not count", "switch", Warn, "CAPGATE_ALLOWED_SUBAGENTS=a in the client's environment", func(t *testing.T, p *setuptest.Patient) {
			p.Env["CAPGATE_ALLOWED_SUBAGENTS"] = "a"
		}},
		{"a switch that does not count", "switch", Warn, "VOYAGE_STORM_ENABLED=0 in the client's environment", func(t *testing.T, p *setuptest.Patient) {
			p.Edit(`^\{`, `{ "env": {"VOYAGE_STORM_ENABLED": "0"},`)
		}},
		{"an odd TTL", "times", Fail, "CAPGATE_SCOPE_TTL_MS=6h", func(t *testing.T, p *setuptest.Patient) { p.Set("CAPGATE_SCOPE_TTL_MS=6h") }},
		{"a short TTL", "times", Warn, "CAPGATE_SCOPE_TTL_MS is 5ms", func(t *testing.T, p *setuptest.Patient) { p.Set("CAPGATE_SCOPE_TTL_MS=5") }},
		{"a deadline beyond the client's", "times", Warn, "CAPGATE_DEADLINE_MS is 1m0s", func(t *testing.T, p *setuptest.Patient) { p.Set("CAPGATE_DEADLINE_MS=60000") }},
		{"no state directory", "state", Warn, "is not there", func(t *testing.T, p *setuptest.Patient) { require.NoError(t, os.Remove(p.State)) }},
		{"a relative state directory", "state", Fail, `"state"`, func(t *testing.T, p *setuptest.Patient) {
			p.Set("CAPGATE_DATA_DIR=state")
		}},
		{"too open", "state", Warn, "has mode 0755", func(t *testing.T, p *setuptest.Patient) { require.NoError(t, os.Chmod(p.State, 0o755)) }},
		{"a file in its place", "state", Fail, "is not a directory", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.Remove(p.State))
			require.NoError(t, os.WriteFile(p.State, nil, 0o600))
		}},
		{"the shell has another", "state", Warn, "this shell's commands use", func(t *testing.T, p *setuptest.Patient) { p.Env["CAPGATE_DATA_DIR"] = p.Home + "/other" }},
		{"a damaged ledger", "ledger", Fail, "ledger.db", func(t *testing.T, p *setuptest.Patient) {
			_, err := p.Ledger().OpenRun(t.Context(), "r", 1, 1)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(filepath.Join(p.State, "ledger.db"), 5000))
		}},
		{"a marker without its run", "markers", Fail, "is not in the ledger", func(t *testing.T, p *setuptest.Patient) {
			_, err := p.Ledger().OpenRun(t.Context(), "r", 1, 1)
			require.NoError(t, err)
			require.NoError(t, scope.Write(p.State, scope.Marker{Session: "s", Run: "gone", StartedAt: time.Now()}))
		}},
		{"an expired marker", "markers", Warn, "expired", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, scope.Write(p.State, scope.Marker{Session: "s", Run: "gone", StartedAt: time.Now().Add(-9 * time.Hour)}))
		}},
		{"an unreadable marker", "markers", Fail, "s.json", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, scope.Write(p.State, scope.Marker{Session: "s", Run: "r", StartedAt: time.Now()}))
			require.NoError(t, os.WriteFile(scope.Path(p.State, "s"), []byte("{"), 0o600))
		}},
		{"a silent hook", "markers", Fail, "hook: silent", func(t *testing.T, p *setuptest.Patient) {
			_, err := p.Ledger().OpenRun(t.Context(), "r", 2, 1)
			require.NoError(t, err)
			require.NoError(t, scope.Write(p.State, scope.Marker{Session: "s", Run: "r", StartedAt: time.Now()}))
			time.Sleep(20 * time.Millisecond)
			for range 2 {
				_, err = p.Ledger().RecordTurn(t.Context(), "r", "", "")
				require.NoError(t, err)
			}
		}},
		{"searches that no turn counts", "markers", Warn, "3 searches passed and no turn was counted since it was armed (uncounted)", func(t *testing.T, p *setuptest.Patient) {
			_, err := p.Ledger().OpenRun(t.Context(), "r", 2, 1)
			require.NoError(t, err)
			require.NoError(t, scope.Write(p.State, scope.Marker{Session: "s", Run: "r", StartedAt: time.Now()}))
			time.Sleep(20 * time.Millisecond)
			for range 3 {
				scope.Touch(p.State, "s", time.Now(), true)
			}
		}},
		{"an async entry", "hook", Fail, "is async", func(t *testing.T, p *setuptest.Patient) { p.Edit(`"timeout": 10,`, `"timeout": 10, "async": true,`) }},
		{"an entry with a condition", "hook", Fail, "has an if", func(t *testing.T, p *setuptest.Patient) {
			p.Edit(`"timeout": 10,`, `"timeout": 10, "if": "Bash(git *)",`)
		}},
		{"an entry of another type", "hook", Fail, `has the type "http"`, func(t *testing.T, p *setuptest.Patient) { p.Edit(`"type": "command"`, `"type": "http"`) }},
		{"a timeout that is a text", "hook", Warn, "has a timeout of 0 s", func(t *testing.T, p *setuptest.Patient) { p.Edit(`"timeout": 10,`, `"timeout": "10",`) }},
		{"the shell form of a program that is gone", "hook", Fail, "there is no such file", func(t *testing.T, p *setuptest.Patient) {
			p.Edit(`"command": "[^"]*",\s*"args": \[[^]]*\]`, `"command": "/none/capgate-hook --client claude"`)
		}},
		{"a capped tool that can be none", "switch", Fail, "CAPGATE_CAP_TOOLS names mcp__.*", func(t *testing.T, p *setuptest.Patient) { p.Set("CAPGATE_CAP_TOOLS=WebFetch,mcp__.*") }},
		{"broken admissions", "state", Warn, "admissions.json", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.WriteFile(filepath.Join(p.State, "admissions.json"), []byte("{"), 0o600))
		}},
		{"a decision log that is no file", "state", Warn, "decisions.jsonl is not a regular file", func(t *testing.T, p *setuptest.Patient) {
			require.NoError(t, os.Mkdir(filepath.Join(p.State, "decisions.jsonl"), 0o700))
		}},
		{"a hook without gates", "canary", Fail, "should end with exit status 2 ended with 0", func(t *testing.T, p *setuptest.Patient) {
			real := p.Hook + "-real"
			require.NoError(t, os.Rename(p.Hook, real))
			require.NoError(t, os.WriteFile(p.Hook, []byte("#!/bin/sh\nsed -i /SUBAGENTS/d \"$2\"\nexec '"+real+"' \"$@\"\n"), 0o700))
		}},
		{"an environment file that is gone", "settings", Fail, "capgate.env: no such file", func(t *testing.T, p *setuptest.Patient) { require.NoError(t, os.Remove(p.EnvFile())) }},
		{"an environment file that is broken", "settings", Fail, "line 5 is not NAME=VALUE", func(t *testing.T, p *setuptest.Patient) { p.Set("CAPGATE_ADMISSION ask") }},
		{"a mistyped setting", "switch", Warn, "CAPGATE_DISABEL in the environment file", func(t *testing.T, p *setuptest.Patient) { p.Set("CAPGATE_DISABEL=1") }},
		{"everything is off", "switch", Warn, "everything is off until capgate on", func(t *testing.T, p *setuptest.Patient) {
			_, exit := p.Run("off", "--reason", "a test")
			require.Equal(t, 0, exit)
		}},
		{"halted", "switch", Warn, "halted until capgate halt --lift", func(t *testing.T, p *setuptest.Patient) {
			_, exit := p.Run("halt", "--reason", "a test")
			require.Equal(t, 0, exit)
		}},
		{"a broken spec", "spec", Fail, "unknown key", func(t *testing.T, p *setuptest.Patient) {
			spec := filepath.Join(p.Home, "spec.json")
			require.NoError(t, os.WriteFile(spec, []byte(`{"subagents":{"a":{}}}`), 0o600))
			p.Install("--spec", spec)
			require.NoError(t, os.WriteFile(spec, []byte(`{"agents":{}}`), 0o600))
		}},
		{"the foreground gate without its variable", "foreground", Fail, claude.NoBackground, func(t *testing.T, p *setuptest.Patient) {
			p.Set("CAPGATE_ALLOWED_SUBAGENTS=a")
		}},
		{"Oh My Pi's hook is gone", "omp", Fail, "cannot be run", func(t *testing.T, p *setuptest.Patient) {
			p.Install("--client", "omp")
			require.NoError(t, os.Remove(p.Hook))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := setuptest.New(t).Install()
			c.spoil(t, p)
			d := diagnose(t, p)
			require.Equal(t, c.level == Fail, !d.Healthy && c.level == Fail)
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
	for name, change := range map[string]func(t *testing.T, p *setuptest.Patient){
		"the home directory as the project": func(_ *testing.T, p *setuptest.Patient) { p.Project = p.Home },
		"a matcher for everything": func(_ *testing.T, p *setuptest.Patient) {
			p.Edit(`"PreToolUse": \[\s*\{`, `"PreToolUse": [ { "matcher": ".*",`)
		},
		"the shell form": func(_ *testing.T, p *setuptest.Patient) {
			p.Edit(`"command": "([^"]*)",\s*"args": \[[^]]*\]`, `"command": "$1 --client claude --env-file `+p.EnvFile()+`"`)
		},
		"Oh My Pi alone": func(t *testing.T, p *setuptest.Patient) {
			_, exit := p.Run("uninstall")
			require.Equal(t, 0, exit)
			p.Install("--client", "omp", "--subagents", "scout")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := setuptest.New(t).Install()
			change(t, p)
			d := diagnose(t, p)
			require.True(t, d.Healthy, "%+v", d.Findings)
			for _, f := range d.Findings {
				require.NotEqual(t, "copies", f.Check)
				if f.Level != OK && f.Check != "ledger" { // there is none yet
					require.Equal(t, "Oh My Pi alone/hook", name+"/"+f.Check, "%+v", f)
				}
			}
		})
	}
}

// A list that caps something else than the default, or nothing by a slip, is found by calling what it names.
func TestTheCanaryCallsAToolOfTheConfiguredList(t *testing.T) {
	for list, tool := range map[string]string{
		"mcp__exa__*|Read": "mcp__exa__capgate", "read websearch": "read", "*": "capgate", "x;y": "WebSearch",
	} {
		t.Run(list, func(t *testing.T) {
			p := setuptest.New(t).Install()
			p.Set("CAPGATE_CAP_TOOLS=" + list)
			var said []string
			for _, f := range diagnose(t, p).Findings {
				if f.Check == "canary" {
					require.Equal(t, OK, f.Level, "%+v", f)
					said = append(said, f.Found)
				}
			}
			require.Len(t, said, 1)
			require.Contains(t, said[0], "a call of "+tool+" at the cap comes back")
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
		x := Examination{Layers: []*Layer{{Place: placeManaged, Path: settings.ManagedFileName, Doc: doc}}}
		require.Len(t, checkSettings(x), want, text)
	}
}

// The doctor changes nothing.
func TestTheDoctorChangesNothing(t *testing.T) {
	p := setuptest.New(t).Install()
	list := func() string {
		out, err := exec.Command("find", p.Home, p.Project, "-printf", "%p %s %T@\n").Output()
		require.NoError(t, err)
		return string(out)
	}
	before := list()
	diagnose(t, p)
	require.Equal(t, before, list())
}

// What docs/wiring.md tells people to write by hand is an installation that the doctor is content with.
func TestTheDoctorIsContentWithWhatTheWiringPageSays(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/wiring.md")
	require.NoError(t, err)
	p := setuptest.New(t)
	block := func(fence string) []byte {
		_, text, found := strings.Cut(string(page), "\n```"+fence+"\n")
		text, _, closed := strings.Cut(text, "\n```")
		require.True(t, found && closed, fence)
		return []byte(strings.NewReplacer("/usr/local/bin/capgate-hook", filepath.Join(filepath.Dir(p.Client), "capgate-hook"), "/home/you", p.Home).Replace(text))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(p.EnvFile()), 0o700))
	require.NoError(t, os.WriteFile(p.Settings("user"), block("json"), 0o600))
	require.NoError(t, os.WriteFile(p.EnvFile(), block("sh"), 0o600))
	require.NoError(t, os.MkdirAll(p.State, 0o700))
	out, exit := p.Run("doctor")
	require.Equal(t, 0, exit, out)
	require.NotRegexp(t, `(?m)^fail `, out)
}
