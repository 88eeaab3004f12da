package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
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

func TestGuardAsksAboutSettingsThatWouldSayHowTheSessionIsBounded(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.MkdirAll(filepath.Join(p.project, "dotfiles"), 0o700))
	require.NoError(t, os.Symlink("dotfiles", filepath.Join(p.project, ".claude")))
	const off = `{"env": {"CAPGATE_DISABLE": "1"}}`
	const ask = gates.CodeGuardSettings
	for _, c := range []struct {
		path, content, code string
	}{
		{".claude/settings.json", off, ask},
		{".claude/settings.local.json", `{"disableAllHooks": true}`, ask},
		{"~/.claude/settings.json", off, ask},
		{".omp/x/hooks.json", off, ask},
		{".claude/settings.json", `{"model": "x"}`, ""},
		{".claude/notes.md", off, ""},
		{"settings.json", off, ""},
	} {
		require.Equal(t, c.code, p.code("Write", map[string]any{"file_path": c.path, "content": c.content}), c.path)
		require.Equal(t, c.code, p.code("Edit", map[string]any{"file_path": c.path, "old_string": "", "new_string": c.content}), c.path)
		require.Equal(t, c.code, p.code("MultiEdit", map[string]any{"file_path": c.path, "edits": []any{map[string]any{"new_string": c.content}}}), c.path)
		require.Equal(t, c.code, p.code("write", map[string]any{"path": c.path, "content": c.content}), c.path)
	}
	require.Empty(t, p.code("Edit", map[string]any{"file_path": ".claude/settings.json", "old_string": off, "new_string": "{}"}))
	require.NoError(t, os.WriteFile(filepath.Join(p.project, "settings.json"), []byte(`"capgate-hook"`), 0o600))
	require.Equal(t, ask, p.code("Write", map[string]any{"file_path": "settings.json", "content": "{}"}), "it holds our hook")
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
