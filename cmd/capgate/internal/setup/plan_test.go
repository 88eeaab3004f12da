package setup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
)

var wiring = Wiring{Command: "/bin/capgate-hook", Args: []string{}, State: "/state"}

func plan(t *testing.T, f File, w Wiring) Plan {
	t.Helper()
	p, err := PlanInstall(f, w)
	require.NoError(t, err)
	return p
}

func claudeFile(text string) File {
	return File{Client: client.Claude, Path: "/home/.claude/settings.json", Text: []byte(text)}
}

// What install writes, uninstall takes back, byte for byte.
func TestPlanThereAndBack(t *testing.T) {
	for name, before := range map[string]string{
		"other settings":  `{"model":"x"}`,
		"odd white space": "{\n\t\"env\" : { \"OTHER\":\"1\" },\n   \"hooks\": {}\n}\n\n",
		"empty":           "",
	} {
		t.Run(name, func(t *testing.T) {
			f := claudeFile(before)
			there := plan(t, f, wiring)
			assert.Equal(t, actionInstalled, there.Action)
			assert.Equal(t, f.Path+backupSuffix, there.Backup)

			again := plan(t, File{Client: f.Client, Path: f.Path, Text: there.New, HasBackup: true}, wiring)
			assert.Equal(t, actionUnchanged, again.Action)
			assert.Empty(t, again.Backup)

			back, err := PlanUninstall(File{Client: f.Client, Path: f.Path, Text: there.New, HasBackup: true, Backup: f.Text})
			require.NoError(t, err)
			assert.Equal(t, actionRemoved, back.Action)
			assert.Equal(t, before, string(back.New))
		})
	}
	t.Run("no file", func(t *testing.T) {
		there := plan(t, File{Client: client.Claude, Path: "/s"}, wiring)
		assert.Empty(t, there.Backup)
		back, err := PlanUninstall(File{Client: client.Claude, Path: "/s", Text: there.New})
		require.NoError(t, err)
		assert.True(t, back.Remove)
	})
}

func TestPlanSaysWhatChanges(t *testing.T) {
	w := wiring
	w.Subagents, w.Foreground = "scout", true
	installed := plan(t, File{Client: client.Claude, Path: "/s"}, w)

	w = wiring
	w.State, w.StateGiven, w.Spec = "/other", true, "/spec.json"
	p := plan(t, File{Client: client.Claude, Path: "/s", Text: installed.New}, w)
	assert.Equal(t, actionUpdated, p.Action)
	assert.Equal(t, "/other", p.State)
	assert.Equal(t, []Change{{"CAPGATE_DATA_DIR", "/state", "/other"}, {Name: "CAPGATE_ALLOWED_SUBAGENTS", From: "scout"}}, p.Changed)

	w = wiring
	w.State = "/default"
	assert.Equal(t, "/state", plan(t, File{Client: client.Claude, Path: "/s", Text: installed.New}, w).State, "what was installed stays")
}

func TestPlanLeavesAloneWhatItCannotRead(t *testing.T) {
	_, err := PlanInstall(claudeFile("{,}"), wiring)
	assert.ErrorContains(t, err, "/home/.claude/settings.json is left as it is: ")
	_, err = PlanUninstall(claudeFile("{,}"))
	assert.ErrorContains(t, err, "is left as it is: ")
	foreign := File{Client: client.OMP, Path: "/e.ts", Text: []byte("// another's")}
	_, err = PlanInstall(foreign, wiring)
	assert.ErrorContains(t, err, "is no extension of capgate's: move it away first")
	_, err = PlanUninstall(foreign)
	assert.ErrorContains(t, err, "is no extension of capgate's: it stays")
}

func TestPlanExtension(t *testing.T) {
	w := wiring
	w.Subagents, w.Foreground = "scout", true
	p := plan(t, File{Client: client.OMP, Path: "/e.ts"}, w)
	assert.Equal(t, actionInstalled, p.Action)
	command, ours := ExtensionHook(p.New)
	assert.Equal(t, "/bin/capgate-hook", command)
	assert.True(t, ours)
	assert.Equal(t, map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": "/state", "CAPGATE_ALLOWED_SUBAGENTS": "scout"}, ExtensionVariables(p.New))
	assert.False(t, strings.Contains(string(p.New), claude.NoBackground), "that is Claude Code's")
	back, err := PlanUninstall(File{Client: client.OMP, Path: "/e.ts", Text: p.New})
	require.NoError(t, err)
	assert.True(t, back.Remove)
}
