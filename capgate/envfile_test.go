package capgate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEnvFileHasLinesOfNameAndValue(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                     {},
		"\n\n# a comment\n#\n": {},
		"CAPGATE_ENABLED=1":    {"CAPGATE_ENABLED": "1"},
		"\ufeffCAPGATE_ENABLED=1\r\nCAPGATE_SPEC=/a b/c\r\n": {"CAPGATE_ENABLED": "1", "CAPGATE_SPEC": "/a b/c"},
		"  A = b  \n\tC\t=\td=e\t":                           {"A": "b", "C": "d=e"},
		"A=\"1\"\nB='x y'\nC=\"\nD='\"\nE=\"\"":              {"A": "1", "B": "x y", "C": `"`, "D": `'"`, "E": ""},
		"A=1\nA=2":                                           {"A": "2"},
		"A=1 # no comment":                                   {"A": "1 # no comment"},
		"_a9=ü":                                              {"_a9": "ü"},
		"A=":                                                 {"A": ""},
	} {
		got, err := ParseEnvFile([]byte(text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
}

func TestAnEnvFileThatSaysSomethingElseIsUnusableAndSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\nCAPGATE_ENABLED":            "line 2 is not NAME=VALUE",
		"=1":                              "line 1 is not NAME=VALUE",
		"export A=1":                      "line 1 is not NAME=VALUE",
		"9A=1":                            "line 1 is not NAME=VALUE",
		"A.B=1":                           "line 1 is not NAME=VALUE",
		"{\"A\": 1}":                      "line 1 is not NAME=VALUE",
		"A=\xff":                          "no UTF-8",
		"A=\x00":                          "no UTF-8",
		strings.Repeat("#", MaxEnvFile+1): "more than 65536 bytes",
	} {
		_, err := ParseEnvFile([]byte(text))
		require.ErrorIs(t, err, ErrEnvFile, "%.20q", text)
		require.ErrorContains(t, err, want, "%.20q", text)
	}
	_, err := ParseEnvFile([]byte("#" + strings.Repeat(" ", MaxEnvFile-1)))
	require.NoError(t, err)
}

func TestNamesThatAreNoSettingAreTold(t *testing.T) {
	require.Equal(t, []string{"CAPGATE_DISABEL", "PATH"},
		UnknownSettings(map[string]string{"PATH": "/", "CAPGATE_DISABEL": "1", "CAPGATE_ENABLED": "1", "VOYAGE_STORM_ENABLED": "1"}))
	require.Empty(t, UnknownSettings(nil))
}

// One client runs the hooks of several entries in one environment: what one of them says must not change another.
func TestWhatOneEntrySaysDoesNotReachAnother(t *testing.T) {
	type vars = map[string]string
	home := vars{"HOME": "/home/u"}
	plugin := vars{"CLAUDE_PLUGIN_DATA": "/plugin"}
	for _, c := range []struct {
		name    string
		entry   Entry
		process []vars
		want    Config
	}{
		{"no entry of its own: the environment",
			Entry{}, []vars{{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": "/a"}}, Config{Enabled: "1", DataDir: "/a"}},
		{"a file is all that counts",
			Entry{HasFile: true, File: vars{"CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": "/f"}},
			[]vars{{"CAPGATE_ENABLED": "0", "CAPGATE_DATA_DIR": "/a", "CAPGATE_LEDGER": "/l", "CAPGATE_SPEC": "/s", "CAPGATE_ADMISSION": "deny"}},
			Config{Enabled: "1", DataDir: "/f"}},
		{"a file, and the second names",
			Entry{HasFile: true, File: vars{"VOYAGE_STORM_ENABLED": "1", "VOYAGE_CAP_SCOPE_TTL_MS": "5"}}, []vars{home, {"VOYAGE_STORM_ENABLED": "0"}},
			Config{Enabled: "1", ScopeTTL: "5", DataDir: "/home/u/.local/state/capgate"}},
		{"a file without a state directory: the command line's",
			Entry{HasFile: true, File: vars{}}, []vars{home, {"CAPGATE_DATA_DIR": "/a", "XDG_STATE_HOME": "/x"}}, Config{DataDir: "/x/capgate"}},
		{"a file without a state directory, of a plugin: the plugin's",
			Entry{HasFile: true, File: vars{}}, []vars{home, plugin, {"CAPGATE_DATA_DIR": "/a"}}, Config{DataDir: "/plugin", PluginState: true}},
		{"a file over the arguments, which say the rest",
			Entry{HasFile: true, File: vars{"CAPGATE_SPEC": "/f"}, Args: vars{"CAPGATE_SPEC": "/g", "CAPGATE_ENABLED": "1", "CAPGATE_DATA_DIR": "/g"}},
			[]vars{home}, Config{Spec: "/f", Enabled: "1", DataDir: "/g"}},
		{"a plugin keeps its state where it is, wherever another's is",
			Entry{Args: vars{"CAPGATE_ENABLED": "1"}}, []vars{plugin, {"CAPGATE_DATA_DIR": "/a", "CAPGATE_LEDGER": "/a/l"}},
			Config{Enabled: "1", DataDir: "/plugin", PluginState: true}},
		{"a plugin without arguments, too",
			Entry{}, []vars{plugin, {"CAPGATE_DATA_DIR": "/a", "CAPGATE_LEDGER": "/a/l", "CAPGATE_ENABLED": "1"}},
			Config{Enabled: "1", DataDir: "/plugin", PluginState: true}},
		{"a plugin whose arguments name another",
			Entry{Args: vars{"CAPGATE_DATA_DIR": "/g", "CAPGATE_LEDGER": "/g/l"}}, []vars{plugin, {"CAPGATE_DATA_DIR": "/a"}},
			Config{DataDir: "/g", Ledger: "/g/l"}},
		{"arguments are defaults",
			Entry{Args: vars{"CAPGATE_ENABLED": "1", "CAPGATE_ADMISSION": "ask", "CAPGATE_DATA_DIR": "/g"}},
			[]vars{{"CAPGATE_ADMISSION": "deny", "CAPGATE_ENABLED": "", "CAPGATE_DATA_DIR": "/a"}}, Config{Enabled: "1", Admission: "deny", DataDir: "/a"}},
		{"a kill switch of the environment holds over a file that says 0",
			Entry{HasFile: true, File: vars{"CAPGATE_DISABLE_CAP": "0", "CAPGATE_DATA_DIR": "/f"}}, []vars{{"VOYAGE_DISABLE_CAP_HOOK": "1"}},
			Config{DisableCap: "1", DataDir: "/f"}},
		{"a kill switch of the file holds over an environment that says 0",
			Entry{HasFile: true, File: vars{"VOYAGE_DISABLE_CAP_HOOK": "1", "CAPGATE_DATA_DIR": "/f"}}, []vars{{"CAPGATE_DISABLE_CAP": "0"}},
			Config{DisableCap: "1", DataDir: "/f"}},
		{"a kill switch of one name holds over the other's 0",
			Entry{}, []vars{{"CAPGATE_DISABLE_CAP": "0", "VOYAGE_DISABLE_CAP_HOOK": "1"}}, Config{DisableCap: "1"}},
		{"a kill switch among the arguments holds over the environment's 0",
			Entry{Args: vars{"CAPGATE_DISABLE": "1"}}, []vars{{"CAPGATE_DISABLE": "0"}}, Config{Disable: "1"}},
		{"another kill switch of the environment is not on",
			Entry{HasFile: true, File: vars{"CAPGATE_DATA_DIR": "/f"}}, []vars{{"CAPGATE_DISABLE_GATES": "true", "CAPGATE_DISABLE": "0"}}, Config{DataDir: "/f"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := vars{}
			for _, some := range c.process {
				for k, v := range some {
					env[k] = v
				}
			}
			require.Equal(t, c.want, LoadConfig(c.entry.Settings(fromMap(env))))
		})
	}
}

// What the hook asks of the client and of the system is not for an entry to say.
func TestAnEntrySaysNothingOfTheClient(t *testing.T) {
	e := Entry{HasFile: true, File: map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": "1", "HOME": "/x"}, Args: map[string]string{"CLAUDE_PID": "1"}}
	lookup := e.Settings(fromMap(map[string]string{"HOME": "/home/u"}))
	for name, want := range map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": "", "HOME": "/home/u", "CLAUDE_PID": ""} {
		got, _ := lookup(name)
		require.Equal(t, want, got, name)
	}
}
