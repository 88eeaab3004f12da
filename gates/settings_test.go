package gates

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which files decide what bounds a session, by name and place, whatever is in them.
func TestWhatASettingsFileIs(t *testing.T) {
	for path, want := range map[string]bool{
		// Claude Code
		"/h/.claude/settings.json": true, "/p/.claude/settings.local.json": true, "/h/.CLAUDE/Settings.JSON": true,
		"/h/.claude/managed-settings.json": true, "/etc/claude-code/managed-settings.json": true,
		"/etc/claude-code/managed-settings.d/10-x.json": true, "/Library/Application Support/ClaudeCode/managed-settings.json": true,
		"/h/.claude/hooks/mine.sh": true, "/h/.claude/hooks/deep/mine.py": true, "/h/.claude/hooks.json": true,
		"/p/.mcp.json": true, "/h/.claude.json": true, "/h/.claude/.mcp.json": true,
		"/h/.claude/plugins/installed_plugins.json": true, "/h/.claude/plugins/known_marketplaces.json": true,
		"/h/.claude/plugins/cache/m/p/1/bin/capgate-hook": true, "/h/.claude/plugins/data/capgate-m/x": false, "/h/.claude/plugins": false,
		"/x/plugin/hooks/hooks.json": true, "/x/plugin/.claude-plugin/plugin.json": true,
		"/h/.claude/notes.md": false, "/h/.claude/xsettings.json": false, "/h/.claude/skills/x/SKILL.md": false,
		"/h/.claude/agents/a.md": false, "/h/.claude/commands/c.md": false, "/h/.claude/CLAUDE.md": false,
		"/p/.claude/worktrees/w/src/hooks/useThing.ts": false, "/p/.claude/worktrees/w/app/settings.json": false,
		"/p/.claude/worktrees/w/.claude/settings.json": true, "/h/.claude-x/settings.json": false, "/h/settings.json/.claude": false,
		// Oh My Pi, pi
		"/h/.omp/agent/extensions/capgate.ts": true, "/p/.omp/extensions/x/index.js": true, "/h/.pi/agent/extensions/x.ts": true,
		"/h/.omp/agent/config.yml": true, "/h/.pi/agent/settings.json": true, "/h/.omp/agent/hooks/pre/x.ts": true,
		"/h/.omp/agent/notes.md": false,
		// Codex, Copilot
		"/h/.codex/config.toml": true, "/h/.codex/hooks.json": true, "/h/.codex/notes/config.toml": false, "/p/.codex/hooks/x.sh": true,
		"/h/.copilot/hooks/x.json": true, "/h/.copilot/config.json": true, "/p/.github/hooks/x.json": true, "/p/.github/workflows/ci.yml": false,
		// nobody's
		"/p/.vscode/settings.json": false, "/p/app/settings.json": false, "/p/config.toml": false, "/p/hooks/x.ts": false,
		"/p/src/hooks/index.ts": false, "settings.json": false, "": false, "/": false,
	} {
		require.Equal(t, want, SettingsFile(path), path)
	}
}

func TestAFolderOfSettings(t *testing.T) {
	for path, want := range map[string]bool{
		"/p/.claude": true, "/p/.claude/hooks": true, "/h/.omp/agent/extensions": true, "/h/.codex": true, "/x/hooks": true, "/x/.claude-plugin": true,
		"/p": false, "/": false, "/p/.claude/worktrees/w/src": false, "/p/.claude/skills": false, "/p/src": false,
	} {
		require.Equal(t, want, SettingsFolder(path), path)
	}
}

func TestWhatIsOurOwnByItsName(t *testing.T) {
	for path, want := range map[string]bool{
		"/p/.capgate/env": true, "/p/.capgate/local.env": true, "/p/.CapGate/x/y": true, "/h/.claude/capgate.env": true,
		"/h/.omp/agent/capgate.env": true, "/p/capgate.env": false, "/p/.capgate": false, "/p/env": false, "": false,
	} {
		require.Equal(t, want, OwnFile(path), path)
	}
}

func TestWhichFilesMayHoldTheHookWhereverTheyAre(t *testing.T) {
	for path, want := range map[string]bool{
		"/x/settings.json": true, "settings.mine.json": true, "/x/managed-settings.json": true, "/x/hooks.json": true, "/x/capgate.ts": true,
		"/x/package.json": false, "/x/settings.yaml": false, "": false,
	} {
		require.Equal(t, want, MayHoldHook(path), path)
	}
}

// A settings file that cannot be read may hold the hook.
func TestWhatAFileHoldsByWhatCameOfReadingIt(t *testing.T) {
	for _, c := range []struct {
		text string
		err  error
		want bool
	}{
		{`{"command":"/b/capgate-hook"}`, nil, true},
		{`{"command":"/b/other"}`, nil, false},
		{"", nil, false},
		{"", errors.New("denied"), true},
		{"", fmt.Errorf("x: %w", fs.ErrNotExist), false},
	} {
		require.Equal(t, c.want, HoldsHook([]byte(c.text), c.err), "%v", c)
	}
}

func TestTheProgramsBesideTheOneThatRuns(t *testing.T) {
	for self, want := range map[string][]string{
		"/b/capgate":          {"/b/capgate", "/b/capgate-hook"},
		"/b/capgate-hook":     {"/b/capgate-hook", "/b/capgate"},
		"/b/embedded":         {"/b/embedded", "/b/capgate", "/b/capgate-hook"},
		"/b/capgate-hook.exe": {"/b/capgate-hook.exe", "/b/capgate.exe"},
	} {
		require.Equal(t, want, Programs(self))
	}
}
