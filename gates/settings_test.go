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
		"/h/.claude/remote-settings.json": true, "/h/.claude/cowork_settings.json": true, "/h/.claude/state/hybrid-settings.json": true,
		"/h/.claude/.config.json": true, "/h/.claude-local-oauth.json": true, "/h/.claude/settings.json.capgate-backup": true,
		"/h/.claude/settings.yml": true, "C:/Program Files/ClaudeCode/managed-settings.json": true, "C:/ProgramData/ClaudeCode/managed-settings.json": true,
		// A project may be called as the client is.
		"/src/claude-code/settings.json": false, "/src/claude-code/hooks/x.ts": false, "/src/claude-code/plugins/x/a.md": false, "/src/claudecode/hooks/x.ts": false,
		// What a client loads is not hidden by a folder of another client's in it.
		"/h/.omp/agent/extensions/.claude/index.ts": true, "/h/.claude/hooks/.github/x.sh": true, "/h/.claude/plugins/cache/.codex/x.js": true,
		// On some file systems these are other spellings of the same names.
		"/h/.claude/\u017fettings.json": true, "/h/.claude/hoo\u212as/x.sh": true, "/h/.cl\u200caude/settings.json": true, "/h/.claude/hooks/\ufeffx": true,
		// Oh My Pi, pi
		"/h/.omp/agent/extensions/capgate.ts": true, "/p/.omp/extensions/x/index.js": true, "/h/.pi/agent/extensions/x.ts": true,
		"/h/.omp/agent/config.yml": true, "/h/.pi/agent/settings.json": true, "/h/.omp/agent/hooks/pre/x.ts": true,
		"/h/.omp/agent/notes.md": false, "/h/.omp/profiles/work/agent/config.yaml": true, "/h/.omp/profiles/work/agent/tools/x/index.ts": true,
		"/h/.omp/plugins/package.json": true, "/h/.omp/agent/mcp.json": true, "/p/.omp/.mcp.json": true, "/h/.pi/agent/npm/node_modules/x/index.js": true,
		"/h/.omp/wt/w/src/extensions/view.ts": false, "/h/.omp/wt/w/config.json": false, "/h/.omp/agent/skills/x/hooks/y.md": false,
		// Codex, Copilot
		"/h/.codex/config.toml": true, "/h/.codex/hooks.json": true, "/h/.codex/notes/config.toml": false, "/p/.codex/hooks/x.sh": true,
		"/h/.codex/review.config.toml": true, "/etc/codex/requirements.toml": true, "/etc/codex/managed_config.toml": true, "/x/codex/config.toml": false,
		"/p/.github/copilot/settings.json": true, "/p/.github/copilot-instructions.md": false,
		"/h/.copilot/hooks/x.json": true, "/h/.copilot/config.json": true, "/p/.github/hooks/x.json": true, "/p/.github/workflows/ci.yml": false,
		// nobody's
		"/p/.vscode/settings.json": false, "/p/app/settings.json": false, "/p/config.toml": false, "/p/hooks/x.ts": false,
		"/p/src/hooks/index.ts": false, "settings.json": false, "": false, "/": false,
	} {
		require.Equal(t, want, SettingsFile(path), path)
	}
}

func TestAFolderOfOurOwn(t *testing.T) {
	for path, want := range map[string]bool{
		"/p/.capgate": true, "/p/.capgate/x": true, "/h/.config/capgate": true, "/p/.claude": false, "/p/.claude/worktrees/w/src": false, "/p": false, "/p/src": false, "/src/capgate": false, "": false,
	} {
		require.Equal(t, want, OwnFolderAt(path), path)
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
		"/h/.omp/agent/capgate.env": true, "/p/capgate.env": false, "/p/.capgate": false, "/h/.config/capgate/mine.env": true, "/Users/h/Library/Application Support/capgate/x.env": true,
		"/h/AppData/Roaming/capgate/x.env": true, "/src/capgate/test.env": false, "/h/.config/capgate/notes.md": false, "/h/.config/other/x.env": false,
		"/p/.claude/worktrees/w/capgate.env": false, "/h/.pi/agent/capgate.env": true, "/p/env": false, "": false,
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
