package setup

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
)

var wiring = Wiring{Programs: Programs{Command: "/bin/capgate-hook", Args: []string{}}, State: "/state"}

func plan(t *testing.T, f File, w Wiring) Plan {
	t.Helper()
	p, err := PlanInstall(f, w)
	require.NoError(t, err)
	return p
}

const envPath = "/home/.claude/capgate.env"

func claudeFile(text string) File {
	return File{Client: client.Claude, Path: "/home/.claude/settings.json", Text: []byte(text), EnvPath: envPath, EnvCalled: envPath}
}

// after are the files as a plan leaves them.
func (f File) after(p Plan) File {
	f.Text, f.EnvText, f.HasBackup = p.New, p.Env.New, p.Backup != ""
	if f.HasBackup {
		f.Backup = p.Old
	}
	return f
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

			again := plan(t, f.after(there), wiring)
			assert.Equal(t, actionUnchanged, again.Action)
			assert.Empty(t, again.Backup)

			back, err := PlanUninstall(f.after(there))
			require.NoError(t, err)
			assert.Equal(t, actionRemoved, back.Action)
			assert.Equal(t, before, string(back.New))
			assert.True(t, back.Env.Remove)
		})
	}
	t.Run("no file", func(t *testing.T) {
		f := File{Client: client.Claude, Path: "/s", EnvPath: envPath, EnvCalled: envPath}
		there := plan(t, f, wiring)
		assert.Empty(t, there.Backup)
		back, err := PlanUninstall(f.after(there))
		require.NoError(t, err)
		assert.True(t, back.Remove)
	})
}

func TestPlanSaysWhatChanges(t *testing.T) {
	w := wiring
	w.Subagents, w.Foreground = "scout", true
	f := claudeFile("{}")
	f = f.after(plan(t, f, w))

	w = wiring
	w.State, w.StateGiven, w.Spec = "/other", true, "/spec.json"
	p := plan(t, f, w)
	assert.Equal(t, actionUpdated, p.Action)
	assert.Equal(t, "/other", p.State)
	assert.Equal(t, []Change{{"CAPGATE_DATA_DIR", "/state", "/other"}, {Name: "CAPGATE_ALLOWED_SUBAGENTS", From: "scout"}}, p.Changed)

	w = wiring
	w.State = "/default"
	assert.Equal(t, "/state", plan(t, f, w).State, "what was installed stays")
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
	f := File{Client: client.OMP, Path: "/e.ts", EnvPath: envPath, EnvCalled: envPath}
	p := plan(t, f, w)
	assert.Equal(t, actionInstalled, p.Action)
	x, ours := installed.ParseExtension(p.New)
	assert.Equal(t, installed.Extension{Hook: "/bin/capgate-hook", Env: map[string]string{}, EnvFile: envPath}, x)
	assert.True(t, ours)
	vars, err := capgate.ParseEnvFile(p.Env.New)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": "/state", "CAPGATE_ALLOWED_SUBAGENTS": "scout"}, vars)
	assert.False(t, strings.Contains(string(p.New), claude.NoBackground), "that is Claude Code's")
	back, err := PlanUninstall(f.after(p))
	require.NoError(t, err)
	assert.True(t, back.Remove)
}

// An earlier version kept its settings in the client's own: they move, and uninstall knows what was before it.
func TestPlanMovesSettingsThatStoodInTheClientsOwn(t *testing.T) {
	f := claudeFile(`{"env":{"A":"b","CAPGATE_ENABLED":"1","CAPGATE_DATA_DIR":"/old","CAPGATE_CAP_TOOLS":"X","CAPGATE_DISABLE_CAP":"1","CAPGATE_ADMISSION":"ask"}}`)
	p := plan(t, f, wiring)
	assert.Contains(t, string(p.New), `"env":{"A":"b","CAPGATE_DISABLE_CAP":"1"}`, "a kill switch holds wherever it stands")
	assert.Equal(t, envHeader+"CAPGATE_ADMISSION=ask\nCAPGATE_CAP_TOOLS=X\nCAPGATE_DATA_DIR=/old\nCAPGATE_ENABLED=1\n", sorted(p.Env.New))
	assert.Equal(t, "/old", p.State)
	back, err := PlanUninstall(f.after(p))
	require.NoError(t, err)
	assert.Equal(t, string(f.Text), string(back.New))
}

// sorted is an environment file with its variables in the order of their names.
func sorted(text []byte) string {
	head, rest, _ := strings.Cut(string(text), "environment\n")
	lines := strings.SplitAfter(rest, "\n")
	slices.Sort(lines)
	return head + "environment\n" + strings.Join(lines, "")
}

// What people write into an environment file stays, whatever install changes in it, and uninstall then leaves the file.
func TestPlanKeepsWhatPeopleWriteIntoTheEnvironmentFile(t *testing.T) {
	f := claudeFile("{}")
	f.EnvText = []byte("# mine\r\n  CAPGATE_ENABLED = '1'\r\n\r\nCAPGATE_SPEC=/s\r\nCAPGATE_DATA_DIR=/mine # x\r\nCAPGATE_SPEC=/t\r\nOTHER=1")
	w := wiring
	w.Subagents, w.StateGiven = "a", true
	p := plan(t, f, w)
	assert.Equal(t, "# mine\r\n  CAPGATE_ENABLED = '1'\r\n\r\nCAPGATE_DATA_DIR=/state\r\nOTHER=1\r\nCAPGATE_ALLOWED_SUBAGENTS=a\r\n", string(p.Env.New))
	assert.Equal(t, []Change{{"CAPGATE_DATA_DIR", "/mine # x", "/state"}, {Name: "CAPGATE_SPEC", From: "/t"}}, p.Changed)
	back, err := PlanUninstall(f.after(p))
	require.NoError(t, err)
	assert.False(t, back.Env.Remove)
	assert.Equal(t, envPath, back.Kept)
	assert.Equal(t, string(p.Env.New), string(back.Env.New))

	f.EnvText = []byte("CAPGATE_ENABLED")
	_, err = PlanInstall(f, w)
	assert.ErrorContains(t, err, envPath+": not a usable environment file: line 1 is not NAME=VALUE")
	assert.ErrorContains(t, err, "mend it by hand first")
}

func TestAValueIsWrittenSoThatItIsReadBack(t *testing.T) {
	for _, value := range []string{"", "a", "a b", " a ", `"a"`, "'a'", `"`, "a=b#c", "ü", `'a"`} {
		text, err := withVariables(nil, []Variable{{"CAPGATE_SPEC", value}}, nil)
		require.NoError(t, err, value)
		vars, err := capgate.ParseEnvFile(text)
		require.NoError(t, err, value)
		assert.Equal(t, value, vars["CAPGATE_SPEC"])
	}
	_, err := withVariables(nil, []Variable{{"CAPGATE_SPEC", "a\nb"}}, nil)
	assert.ErrorContains(t, err, `CAPGATE_SPEC is "a\nb", which no line can hold`)
}

// Other clients run a project's settings, too, and ignore args: there the entry is one command line, and says nothing of
// this machine's directories. A null in the place of the args would make Claude Code drop the whole file.
func TestPlanOfAProjectIsOneCommandLineWithoutAStateDirectory(t *testing.T) {
	f := claudeFile("{}")
	f.EnvPath, f.EnvCalled = "/p/.capgate/env", ".capgate/env"
	w := wiring
	w.Command, w.Portable = "/a b/capgate-hook", true
	p := plan(t, f, w)
	assert.Contains(t, string(p.New), `"command": "PATH=\"$PATH:${XDG_DATA_HOME:-$HOME/.local/share}/capgate/bin\"; command -v capgate-hook >/dev/null || exit 0; exec capgate-hook --env-file .capgate/env",`)
	for _, not := range []string{"args", "onFailure", "matcher", "/a b"} {
		assert.NotContains(t, string(p.New), not)
	}
	assert.Equal(t, envHeader+"CAPGATE_ENABLED=1\n", string(p.Env.New))
	assert.Equal(t, "/state", p.State)
	assert.Equal(t, actionUnchanged, plan(t, f.after(p), w).Action)
	w.StateGiven = true
	assert.Contains(t, string(plan(t, f.after(p), w).Env.New), "CAPGATE_DATA_DIR=/state\n")
}
