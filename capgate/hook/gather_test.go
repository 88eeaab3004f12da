package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/gates"
)

// place is a home with a state directory, a spec, and settings; the working directory is the project in it.
type place struct {
	t                          *testing.T
	home, state, spec, project string
}

func newPlace(t *testing.T) place {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	p := place{t, home, filepath.Join(home, "share", "state"), filepath.Join(home, "etc", "spec.json"), filepath.Join(home, "project")}
	for _, dir := range []string{p.state, filepath.Dir(p.spec), filepath.Join(p.project, "src")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(p.spec, []byte(`{"subagents":{}}`), 0o600))
	return p
}

// code is what Guard says of a call; "" is nothing.
func (p place) code(tool string, input map[string]any) string {
	p.t.Helper()
	text, err := json.Marshal(input)
	require.NoError(p.t, err)
	f := Gather(p.t.Context(), capgate.Facts{
		Config: capgate.Config{DataDir: p.state, Spec: p.spec},
		Call:   gates.Call{Tool: tool, Input: text, Dir: p.project},
	}, capgate.StageSpec)
	return gates.Guard(f.Protected, f.Writes)(f.Call).Code
}

// What a client makes short again before it writes is not too long.
func TestALongSpellingOfAShortPathIsResolved(t *testing.T) {
	p := newPlace(t)
	for _, middle := range []string{"/.", "/x/.."} {
		require.Equal(t, gates.CodeGuardState, p.code("Write", map[string]any{"file_path": p.home + strings.Repeat(middle, 20_000) + "/share/state/x"}))
	}
	require.Empty(t, p.code("Write", map[string]any{"file_path": p.state + strings.Repeat("/c", 20_000)}), "nothing can be written there")
}

func TestGuardKnowsTheSpellingsOfAPath(t *testing.T) {
	p := newPlace(t)
	const state, spec = gates.CodeGuardState, gates.CodeGuardSpec
	for _, c := range []struct{ path, code string }{
		{p.state + "/x", state},
		{"~/share/state/x", state},
		{"../share/state/x", state},
		{"@" + p.state + "/x", state},
		{"@~/share/state/x", state},
		{":" + p.state + "/x", state},
		{":../share/state/x", state},
		{"file://" + p.state + "/x", state},
		{"FILE://localhost" + p.home + "/%73hare/state/x", state},
		{"[" + p.state + "/x#A1B2]", state},
		{"[~/share/state/x#A1B2]", state},
		{"~share/state/x", state},
		{`"` + p.state + `/x"`, state},
		{p.spec, spec},
		{"[~/etc/spec.json#1F]", spec},
		{"src/[id].ts", ""},
		{"~/other", ""},
		{"~", ""},
	} {
		require.Equal(t, c.code, p.code("write", map[string]any{"path": c.path, "content": "x"}), c.path)
		require.Equal(t, c.code, p.code("edit", map[string]any{"path": c.path}), c.path)
		require.Equal(t, c.code, p.code("edit", map[string]any{"path": "a", "edits": []any{map[string]any{"rename": c.path}}}), c.path)
		require.Equal(t, c.code, p.code("edit", map[string]any{"edits": []any{map[string]any{"path": c.path}}}), c.path)
		require.Equal(t, c.code, p.code("edit", map[string]any{"input": "*** Begin Patch\n*** Update File: a\n*** Move to: " + c.path + "\r\n*** End Patch\n"}), c.path)
	}
	require.Equal(t, state, p.code("Write", map[string]any{"file_path": "~/share/state/x"}))
	require.Equal(t, spec, p.code("Edit", map[string]any{"file_path": "~/etc/spec.json"}))
	require.Empty(t, p.code("Write", map[string]any{"file_path": "../*/x"}), "Claude Code knows no globs")
}

func TestGuardKnowsDirectoriesAndGlobs(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.Symlink("../share", filepath.Join(p.project, "linked")))
	for path, touched := range map[string]bool{
		p.home: true, "..": true, "~": true, "../share": true, "../etc/spec.json": true, "linked": true, "linked/*": true,
		"../sha*/**": true, "../{share,x}/state/ledger.db": true, "src/*/../../../etc/*.json": true, "{/x,y}": true,
		".": false, "src": false, "src/**/*.ts": false, "src/{a,b}.ts": false, "../other/*": false,
	} {
		require.Equal(t, touched, p.code("ast_edit", map[string]any{"paths": []string{"src/a.ts", path}}) != "", path)
	}
	require.Empty(t, p.code("ast_edit", map[string]any{"ops": []any{}}), "without a path it is the project")
	p.project = p.home
	require.NotEmpty(t, p.code("ast_edit", map[string]any{"ops": []any{}}))
}

func TestGuardKeepsThePrograms(t *testing.T) {
	p := newPlace(t)
	hook, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(hook, filepath.Join(p.home, "link")))
	for _, path := range []string{hook, filepath.Join(filepath.Dir(hook), "capgate"), filepath.Join(filepath.Dir(hook), "capgate-hook"), "~/link"} {
		require.Equal(t, gates.CodeGuardState, p.code("Write", map[string]any{"file_path": path}), path)
	}
	require.Empty(t, p.code("Write", map[string]any{"file_path": hook + ".txt"}))
}

// Settings are known by where they are, whatever is written into them.
func TestGuardAsksAboutSettingsByTheirNames(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.MkdirAll(filepath.Join(p.project, "dotfiles"), 0o700))
	require.NoError(t, os.Symlink("dotfiles", filepath.Join(p.project, ".claude")))
	require.NoError(t, os.WriteFile(filepath.Join(p.project, "dotfiles", "settings.json"), []byte("{}"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(p.home, ".claude"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.home, "mine"), []byte("{}"), 0o600))
	require.NoError(t, os.Symlink("../mine", filepath.Join(p.home, ".claude", "settings.json")))
	require.NoError(t, os.Link(filepath.Join(p.home, "mine"), filepath.Join(p.home, "hard")))
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(p.home, "profile"))
	t.Setenv("CODEX_HOME", "relative")
	const ask = gates.CodeGuardSettings
	for path, code := range map[string]string{
		".claude/settings.json": ask, ".claude/settings.local.json": ask, "~/.claude/settings.json": ask, "~/.claude/settings.local.json": ask,
		".omp/extensions/x.ts": ask, ".mcp.json": ask, "plugin/hooks/hooks.json": ask, "../profile/settings.json": ask, "../profile/hooks/x.sh": ask,
		"dotfiles/settings.json": ask, // what .claude is a link to
		"~/mine":                 ask, // what the settings are a link to
		"~/hard":                 ask, // another name of the same file
		"../profile/capgate.env": gates.CodeGuardState, "~/.claude/capgate.env": gates.CodeGuardState, ".capgate/env": gates.CodeGuardState,
		".claude/notes.md": "", "settings.json": "", ".vscode/settings.json": "", "relative/config.toml": "", "dotfiles/notes": "", "../profile/x.md": "",
	} {
		for _, content := range []string{"{}", `{"env": {"CAPGATE_DISABLE": "1"}}`} {
			require.Equal(t, code, p.code("Write", map[string]any{"file_path": path, "content": content}), path)
			require.Equal(t, code, p.code("Edit", map[string]any{"file_path": path, "old_string": "", "new_string": content}), path)
			require.Equal(t, code, p.code("write", map[string]any{"path": path, "content": content}), path)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(p.project, "settings.json"), []byte(`"capgate-hook"`), 0o600))
	require.Equal(t, ask, p.code("Write", map[string]any{"file_path": "settings.json", "content": "{}"}), "it holds our hook")
	require.Equal(t, ask, p.code("ast_edit", map[string]any{"paths": []string{".claude"}}))
	require.Equal(t, ask, p.code("ast_edit", map[string]any{"paths": []string{".omp/extensions/**/*.ts"}}))
}

// A client's folder has other names: it is a link, it is called otherwise, it lies in another one that was moved. What is new in it
// is known by them, too.
func TestGuardKnowsAClientsFolderByItsOtherNames(t *testing.T) {
	p := newPlace(t)
	const ask = gates.CodeGuardSettings
	for link, to := range map[string]string{"project/.claude": "../dotfiles/claude", ".codex": "dotfiles/codex", "project/.capgate": "../dotfiles/own"} {
		require.NoError(t, os.MkdirAll(filepath.Join(p.home, filepath.Dir(link), to), 0o700))
		require.NoError(t, os.Symlink(to, filepath.Join(p.home, link)))
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(p.home, "conf"))
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(p.home, "conf", "claude"))
	t.Setenv("COPILOT_HOME", filepath.Join(p.home, "pilot"))
	t.Setenv("PI_CONFIG_DIR", ".omp-work")
	for path, code := range map[string]string{
		"~/dotfiles/claude/settings.local.json": ask, "~/dotfiles/claude/hooks/new.sh": ask, "~/dotfiles/codex/config.toml": ask,
		"~/conf/claude/settings.json": ask, "~/conf/claude/capgate.env": gates.CodeGuardState, "~/conf/capgate/mine.env": gates.CodeGuardState,
		"~/dotfiles/own/env": gates.CodeGuardState, "~/pilot/hooks/x.json": ask, "~/.omp-work/agent/extensions/x.ts": ask,
		"~/dotfiles/claude/notes.md": "", "~/dotfiles/settings.json": "", "~/conf/other/settings.json": "", "~/conf/capgate/x.md": "",
	} {
		for range 5 { // in whatever order they are looked at
			require.Equal(t, code, p.code("Write", map[string]any{"file_path": path}), path)
		}
	}
	require.Equal(t, gates.CodeGuardState, p.code("ast_edit", map[string]any{"paths": []string{".capgate"}}))
	require.Equal(t, ask, p.code("ast_edit", map[string]any{"paths": []string{"~/dotfiles/claude"}}))
}

// A ledger elsewhere has its companions there.
func TestGuardKeepsALedgersCompanions(t *testing.T) {
	p := newPlace(t)
	for name, want := range map[string]string{"count.db": gates.CodeGuardState, "count.lock": gates.CodeGuardState, "count.head": gates.CodeGuardState, "count.txt": ""} {
		f := Gather(t.Context(), capgate.Facts{
			Config: capgate.Config{DataDir: p.state, Enabled: "1", Ledger: filepath.Join(p.home, "count.db")},
			Call:   gates.Call{Tool: "Write", Input: []byte(`{"file_path":"` + filepath.Join(p.home, name) + `"}`)},
		}, capgate.StageSpec)
		require.Equal(t, want, gates.Guard(f.Protected, f.Writes)(f.Call).Code, name)
	}
}

// A name that each process reads in its own way says nothing of what the client would write.
func TestGuardDeniesNamesThatMeanAnotherFileInEachProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other names there")
	}
	p := newPlace(t)
	require.NoError(t, os.Symlink("/proc/self/cwd", filepath.Join(p.project, "here")))
	require.NoError(t, os.Symlink("here", filepath.Join(p.project, "there")))
	for _, path := range []string{
		"/proc/self/cwd/x", "/proc/thread-self/root/tmp/x", "/proc/1/cwd/x", "/proc/self/fd/3", "/dev/fd/1", "/dev/stdout", "/dev/stderr", "/dev/stdin",
		"/tmp/../proc/self/cwd/x", "here/x", "there/x", "here/../x/../here/y", "//proc//self/cwd/x",
	} {
		require.Equal(t, gates.CodeGuardPath, p.code("Write", map[string]any{"file_path": path}), path)
		require.Equal(t, gates.CodeGuardPath, p.code("write", map[string]any{"path": "@" + path}), path)
	}
	for _, path := range []string{"proc/self/cwd", "/processes/x", "/dev/null", "/dev/fdx", "here"} {
		if path == "here" { // the link itself is replaced or followed: it cannot be told either
			require.Equal(t, gates.CodeGuardPath, p.code("Write", map[string]any{"file_path": path}), path)
			continue
		}
		require.Empty(t, p.code("Write", map[string]any{"file_path": path}), path)
	}
}

// What is named by no absolute path is nobody's: not even a file of the hook's own working directory.
func TestGuardTakesNoRelativePathForOurs(t *testing.T) {
	p := newPlace(t)
	t.Chdir(p.project)
	for _, c := range []capgate.Config{
		{AllowedSubagents: "a"}, {AllowedSubagents: "a", DataDir: "state"}, {Enabled: "1", Ledger: "ledger.db"}, {Spec: "spec.json"},
	} {
		for _, path := range []string{"ledger.db", "ledger.lock", "spec.json", "state/ledger.db", "state/off.json"} {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700)) // a file that is there is known by more than its name
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			f := Gather(t.Context(), capgate.Facts{
				Config: c, Call: gates.Call{Tool: "Write", Input: []byte(`{"file_path":"` + filepath.Join(p.project, path) + `"}`)},
			}, capgate.StageSpec)
			require.Empty(t, gates.Guard(f.Protected, f.Writes)(f.Call).Code, "%s %+v", path, c)
		}
	}
}

// In a plugin's data directory our files are ours, and the rest is the plugin's.
func TestGuardLeavesAPluginItsOwnFiles(t *testing.T) {
	p := newPlace(t)
	for path, want := range map[string]string{
		"ledger.db": gates.CodeGuardState, "ledger.head": gates.CodeGuardState, "trekresearch-loop-scope/s.json": gates.CodeGuardState,
		"decisions.jsonl": gates.CodeGuardState, "admissions.json": gates.CodeGuardState, "off.json": gates.CodeGuardState, "halt.json": gates.CodeGuardState,
		"hook-heard/x": gates.CodeGuardState, "loops/x.json": gates.CodeGuardState, "cleared/1.json": gates.CodeGuardState,
		"cache.json": "", "notes/x.md": "", "ledger.db.txt": "",
	} {
		c := capgate.LoadConfig(func(name string) (string, bool) {
			return map[string]string{"CLAUDE_PLUGIN_DATA": p.state, "CAPGATE_ENABLED": "1"}[name], true
		})
		f := Gather(t.Context(), capgate.Facts{
			Config: c, Call: gates.Call{Tool: "Write", Input: []byte(`{"file_path":"` + filepath.Join(p.state, path) + `"}`)},
		}, capgate.StageSpec)
		require.Equal(t, want, gates.Guard(f.Protected, f.Writes)(f.Call).Code, path)
	}
}

// A path that says nothing hides none that comes after it.
func TestEachPathOfACallIsLookedAt(t *testing.T) {
	p := newPlace(t)
	for name, before := range map[string]string{"named before": "src/x", "too long": strings.Repeat("/c", 20_000)} {
		require.Equal(t, gates.CodeGuardState, p.code("edit", map[string]any{"paths": []string{"src/x", before, "src/y/../x", p.state + "/x"}}), name)
	}
}

// However many paths a call names, they are looked at in time, or it counts as one that may write anywhere.
func TestACallWithTooManyPaths(t *testing.T) {
	p := newPlace(t)
	many := func(n int) string {
		var patch strings.Builder
		for i := range n {
			patch.WriteString("*** Add File: " + strings.Repeat("d/", i%100) + strings.Repeat("x", i/100+1) + "\n")
		}
		return patch.String()
	}
	require.Empty(t, p.code("edit", map[string]any{"input": many(gates.MaxWrites)}))
	require.NotEmpty(t, p.code("edit", map[string]any{"input": many(gates.MaxWrites + 1)}))
	require.Empty(t, p.code("edit", map[string]any{"input": strings.Repeat("MV a\n", 10*gates.MaxWrites)}), "all the same")
}

// A spec that cannot be used is an error that names the file; an absolute, regular one of at most 1 MiB is read, a byte order
// mark or not.
func TestReadSpec(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "spec.json")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("\ufeff" + `{"subagents":{"a":{}}}`)
	s, err := ReadSpec(file)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, s.Allowed())
	write(`{"subagents":{}}` + strings.Repeat(" ", maxSpec-16))
	_, err = ReadSpec(file)
	require.NoError(t, err)

	for name, text := range map[string]string{"too long": `{"subagents":{}}` + strings.Repeat(" ", maxSpec-15), "wrong": `{}`, "empty": ``} {
		write(text)
		_, err := ReadSpec(file)
		require.ErrorContains(t, err, "spec "+file+": ", name)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		_, err := ReadSpec(path)
		require.ErrorContains(t, err, "spec "+path+": ")
	}
	t.Chdir(dir)
	write(`{"subagents":{}}`)
	_, err = ReadSpec("spec.json")
	require.ErrorIs(t, err, gates.ErrSpec)
	require.ErrorContains(t, err, "the path is relative")
}

// Of the second stage no more is read than the call needs.
func TestTheSpecStageReadsWhatTheCallNeeds(t *testing.T) {
	p := newPlace(t)
	config := capgate.Config{DataDir: p.state, Spec: p.spec}
	require.NoError(t, os.WriteFile(p.spec, []byte(`{"subagents":{"a":{}}}`), 0o600))
	for tool, want := range map[string]struct{ spec, writes bool }{"Agent": {spec: true}, "Write": {writes: true}, "Read": {}} {
		f := Gather(t.Context(), capgate.Facts{Config: config, Call: gates.Call{Tool: tool, Input: json.RawMessage(`{"file_path":"/x"}`)}}, capgate.StageSpec)
		require.Equal(t, capgate.StageSpec, f.Known)
		require.NoError(t, f.SpecErr)
		require.Equal(t, want.spec, len(f.Spec.Subagents) == 1, tool)
		require.Equal(t, want.writes, len(f.Writes) == 1, tool)
		require.Equal(t, want.writes, f.Protected.Spec != "", tool)
	}
	config.DisableGates = "1"
	config.Enabled = "1"
	f := Gather(t.Context(), capgate.Facts{Config: config, Call: gates.Call{Tool: "Write", Input: json.RawMessage(`{"file_path":"/x"}`)}}, capgate.StageSpec)
	require.Empty(t, f.Protected.Spec, "the spec is of no effect")
	require.Equal(t, p.state, f.Protected.StateDir)
	require.Contains(t, f.Protected.Files, filepath.Join(p.state, "ledger.db"))
	require.Len(t, f.Protected.Programs, 3)
	f = Gather(t.Context(), capgate.Facts{Config: capgate.Config{Enabled: "1"}, Call: gates.Call{Tool: "Write", Input: json.RawMessage(`{"file_path":"/x"}`)}}, capgate.StageSpec)
	require.Empty(t, f.Protected.StateDir)
	f = Gather(t.Context(), capgate.Facts{Config: config, Call: gates.Call{Tool: "Write", Input: json.RawMessage(`{}`)}}, capgate.StageSpec)
	require.Empty(t, f.Writes)
	require.Zero(t, f.Protected)
}

func TestTheLedgerStageSaysWhyThereIsNoPath(t *testing.T) {
	f := Gather(t.Context(), capgate.Facts{Config: capgate.Config{Ledger: "relative.db"}}, capgate.StageLedger)
	require.ErrorContains(t, f.LedgerErr, "relative")
}

// What was admitted is read for the calls that are judged by it, and for no others.
func TestTheSpecStageReadsWhatWasAdmitted(t *testing.T) {
	state := t.TempDir()
	now := time.Now()
	require.NoError(t, admission.Add(t.Context(), state, admission.Admission{ID: "A", Type: "finder", Uses: 2, At: now, Until: now.Add(time.Hour), Reason: "r"}))
	_, ok, err := admission.Take(t.Context(), state, admission.Call{Session: "s", ToolUseID: "u", Types: []string{"finder"}}, now)
	require.NoError(t, err)
	require.True(t, ok)
	deny := capgate.Config{DataDir: state, Admission: "deny"}
	list := capgate.Config{DataDir: state, Admission: "deny", AllowedSubagents: "finder"}
	nowhere := capgate.Config{Admission: "deny"}
	agent, main := gates.Call{Session: "s", Tool: "Bash", AgentID: "a", AgentType: "finder"}, gates.Call{Session: "s", Tool: "Bash"}
	for _, c := range []struct {
		name                 string
		config               capgate.Config
		call                 gates.Call
		admitted, admissible []string
	}{
		{"an agent, and no list", deny, agent, []string{"finder"}, nil},
		{"the main thread, and no list", deny, main, nil, nil},
		{"an agent, and a list", list, agent, nil, nil},
		{"a shell on the main thread, and a list", list, main, nil, []string{"finder"}},
		{"no state directory", nowhere, agent, nil, nil},
	} {
		f := Gather(t.Context(), capgate.Facts{Config: c.config, Call: c.call, Now: now}, capgate.StageSpec)
		require.NoError(t, f.AdmittedErr)
		require.Equal(t, c.admitted, f.Admitted, c.name)
		require.Equal(t, c.admissible, f.Admissible, c.name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(state, admission.FileName), []byte("damaged"), 0o600))
	f := Gather(t.Context(), capgate.Facts{Config: deny, Call: agent, Now: now}, capgate.StageSpec)
	require.Error(t, f.AdmittedErr)
}

func TestTheEnvironmentFileIsProtected(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.home, "env")
	f := Gather(t.Context(), capgate.Facts{
		Config: capgate.Config{DataDir: p.state, Enabled: "1", EnvFile: file},
		Call:   gates.Call{Tool: "Write", Input: json.RawMessage(`{"file_path":"/x"}`)},
	}, capgate.StageSpec)
	require.Contains(t, f.Protected.Files, file)
}
