package gates

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which files hold a client's hooks, by name and place.
func TestWhatASettingsFileIs(t *testing.T) {
	for _, c := range []struct {
		path        string
		named, read bool // by its name alone; by a folder above it, too
	}{
		{"/h/.claude/settings.json", true, true},
		{"/h/.claude/settings.local.json", true, true},
		{"/h/.CLAUDE/Settings.JSON", true, true},
		{"/etc/claude-code/managed-settings.json", true, false},
		{"/h/.claude/managed-settings.json", true, true},
		{"/h/.claude/plugins/x/hooks/hooks.json", true, true},
		{"/h/.omp/agent/extensions/capgate.ts", true, true},
		{"/h/.claude/notes.md", false, false},
		{"/h/.claude/xsettings.json", false, false},
		{"/h/.claude-x/settings.json", true, false},
		{"/h/settings.json/.claude", false, false},
		{"settings.json", true, false},
		{"", false, false},
	} {
		require.Equal(t, c.named, SettingsName(c.path), c.path)
		require.Equal(t, c.read, ClientSettings(c.path), c.path)
	}
}

func TestWhatATextForSettingsSaysOfTheHook(t *testing.T) {
	for text, want := range map[string]bool{
		`{"env":{"CAPGATE_DISABLE":"1"}}`: true, `{"disableAllHooks":true}`: true, `{"model":"x"}`: false, "capgate": false, "": false,
	} {
		require.Equal(t, want, BoundsHook([]string{"a", text}), text)
	}
	require.False(t, BoundsHook(nil))
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
