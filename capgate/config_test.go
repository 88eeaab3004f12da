package capgate

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"
	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/gates"
)

func fromMap(env map[string]string) Lookup {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func TestASwitchIsOnExactlyAtOne(t *testing.T) {
	for value, want := range map[string]bool{
		"1": true,
		"":  false, "0": false, "true": false, "TRUE": false, "yes": false, "on": false, " 1": false, "1 ": false, "01": false,
		"1\n": false, "１": false, "2": false, "-1": false, "1.0": false,
	} {
		for _, name := range []string{"CAPGATE_DISABLE", "CAPGATE_DISABLE_CAP", "CAPGATE_ENABLED", "VOYAGE_DISABLE_CAP_HOOK", "VOYAGE_STORM_ENABLED"} {
			c := LoadConfig(fromMap(map[string]string{name: value}))
			got := c.Disable.On() || c.DisableCap.On() || c.Enabled.On()
			require.Equal(t, want, got, "%s=%q", name, value)
		}
	}
}

func TestASuspectSwitchIsSetButNeitherOnNorOff(t *testing.T) {
	for value, want := range map[Switch]bool{"": false, "0": false, "1": false, "true": true, " 1": true, "off": true} {
		require.Equal(t, want, value.Suspect(), "%q", value)
	}
}

func TestMillisOtherThanAPositiveNumberAreTheDefault(t *testing.T) {
	const otherwise = 42 * time.Second
	for text, want := range map[Millis]time.Duration{
		"1":                              1 * time.Millisecond,
		"21600000":                       6 * time.Hour,
		"1500.5":                         1500500 * time.Microsecond,
		"007":                            7 * time.Millisecond,
		"0.0000001":                      1,
		"9223372036854":                  math.MaxInt64,
		"99999999999999999999":           math.MaxInt64,
		Millis(strings.Repeat("9", 400)): math.MaxInt64,
		"":                               otherwise,
		"0":                              otherwise,
		"0.0":                            otherwise,
		"-5":                             otherwise,
		"+5":                             otherwise,
		"6h":                             otherwise,
		"1000ms":                         otherwise,
		"1e3":                            otherwise,
		"0x10":                           otherwise,
		"inf":                            otherwise,
		"NaN":                            otherwise,
		"1_000":                          otherwise,
		" 5":                             otherwise,
		"5 ":                             otherwise,
		".":                              otherwise,
		"1.2.3":                          otherwise,
		"٣":                              otherwise,
	} {
		require.Equal(t, want, text.Duration(otherwise), "%q", text)
	}
}

func TestAnotherClientsToolIsCappedAsWhatItCountsAs(t *testing.T) {
	call := gates.Call{Tool: "web_search", CountsAs: "WebSearch"}
	require.True(t, Config{}.Caps(call))
	require.True(t, Config{CapTools: "web_search"}.Caps(call))
	require.False(t, Config{CapTools: "WebFetch"}.Caps(call))
	require.False(t, Config{}.Caps(gates.Call{Tool: "read"}))
}

func TestFallbackNamesCountWhereTheFirstIsUnsetOrEmpty(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want Config
	}{
		{"the old names alone", map[string]string{
			"VOYAGE_DISABLE_CAP_HOOK": "1", "VOYAGE_STORM_ENABLED": "1", "VOYAGE_CAP_SCOPE_TTL_MS": "5", "CLAUDE_PLUGIN_DATA": "/p",
		}, Config{DisableCap: "1", Enabled: "1", ScopeTTL: "5", DataDir: "/p", PluginState: true}},
		{"the first name wins", map[string]string{
			"CAPGATE_ENABLED": "0", "VOYAGE_STORM_ENABLED": "1", "CAPGATE_DATA_DIR": "/d", "CLAUDE_PLUGIN_DATA": "/p",
		}, Config{Enabled: "0", DataDir: "/d"}},
		{"empty is unset", map[string]string{"CAPGATE_ENABLED": "", "VOYAGE_STORM_ENABLED": "1"}, Config{Enabled: "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, LoadConfig(fromMap(c.env)))
		})
	}
}

// The hook's own reader and envconfig, which the command line uses, agree on every variable and every odd value.
func TestLoadConfigAgreesWithEnvconfig(t *testing.T) {
	names := map[string]bool{}
	for _, v := range Variables(fromMap(nil)) {
		names[v.Name] = true
		if v.Also != "" {
			names[v.Also] = true
		}
	}
	require.Len(t, names, 16)
	for name := range names {
		require.NoError(t, os.Unsetenv(name))
	}
	for name := range names {
		for _, value := range []string{"", "1", " 1", "true", "a,b", "-5", "/x/ÿ\xff", "a=b", "$HOME"} {
			t.Run(name+"="+value, func(t *testing.T) {
				t.Setenv(name, value)
				var c Config
				require.NoError(t, envconfig.Process("", &c))
				c.Fallbacks(os.LookupEnv)
				require.Equal(t, c, LoadConfig(os.LookupEnv))
			})
		}
	}
}

func TestVariablesSayWhereAValueComesFrom(t *testing.T) {
	vars := Variables(fromMap(map[string]string{"CAPGATE_ENABLED": "", "VOYAGE_STORM_ENABLED": "1", "CAPGATE_DISABLE": "x"}))
	from := map[string]string{}
	for _, v := range vars {
		require.NotEmpty(t, v.Meaning, v.Name)
		from[v.Name] = v.From + "=" + v.Value
	}
	require.Equal(t, "VOYAGE_STORM_ENABLED=1", from["CAPGATE_ENABLED"])
	require.Equal(t, "CAPGATE_DISABLE=x", from["CAPGATE_DISABLE"])
	require.Equal(t, "=", from["CAPGATE_LEDGER"])
	require.Equal(t, reflect.TypeFor[Config]().NumField()-3, len(vars), "all but those that no variable sets")
}

func TestGatesAreActiveWithASpecOrAList(t *testing.T) {
	for _, c := range []struct {
		name string
		c    Config
		want bool
	}{
		{"neither", Config{}, false},
		{"spec", Config{Spec: "/s.json"}, true},
		{"list", Config{AllowedSubagents: "a"}, true},
		{"a list without a name denies all, so it is active", Config{AllowedSubagents: ","}, true},
		{"kill switch", Config{Spec: "/s.json", DisableGates: "1"}, false},
		{"kill switch for everything", Config{Spec: "/s.json", Disable: "1"}, false},
		{"the cap's kill switch is not theirs", Config{Spec: "/s.json", DisableCap: "1"}, true},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.c.GatesActive()) })
	}
}
