package capgate

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// Config is what the environment says, as it says it: every field holds the variable's raw text, "" where it is
// unset, and methods give its meaning. So a value that looks like a mistake can still be shown to its author.
//
// The tags are those of github.com/kelseyhightower/envconfig, which fills a Config from the process environment;
// `also` names the variable that is read where the first is unset or empty, `meaning` is one line for the reference.
type Config struct {
	Disable          Switch `envconfig:"CAPGATE_DISABLE" meaning:"everything off"`
	DisableCap       Switch `envconfig:"CAPGATE_DISABLE_CAP" also:"VOYAGE_DISABLE_CAP_HOOK" meaning:"cap off"`
	DisableGates     Switch `envconfig:"CAPGATE_DISABLE_GATES" meaning:"subagent gates off"`
	Enabled          Switch `envconfig:"CAPGATE_ENABLED" also:"VOYAGE_STORM_ENABLED" meaning:"cap on"`
	ScopeTTL         Millis `envconfig:"CAPGATE_SCOPE_TTL_MS" also:"VOYAGE_CAP_SCOPE_TTL_MS" meaning:"how long a marker holds, in milliseconds; default 21600000 (6 h), also for anything but a positive number"`
	DataDir          string `envconfig:"CAPGATE_DATA_DIR" also:"CLAUDE_PLUGIN_DATA" meaning:"state directory, an absolute path; without an environment file the hook has no default, the CLI's is $XDG_STATE_HOME/capgate (~/.local/state/capgate)"`
	Ledger           string `envconfig:"CAPGATE_LEDGER" meaning:"ledger file, an absolute path; default ledger.db in the state directory"`
	CapTools         Tools  `envconfig:"CAPGATE_CAP_TOOLS" meaning:"the tools that are capped, with commas, | or white space between them, in any case; * stands for any characters (mcp__exa__*); default WebSearch,WebFetch,Agent,Task,Workflow, also for a list without a name; with an entry that can be no tool's name the default ones are capped as well"`
	AllowedSubagents List   `envconfig:"CAPGATE_ALLOWED_SUBAGENTS" meaning:"comma list of subagent types; turns the subagent gates on; without a name in it (a lone comma) no type is allowed"`
	Spec             string `envconfig:"CAPGATE_SPEC" meaning:"spec file; turns the subagent gates on"`
	Admission        string `envconfig:"CAPGATE_ADMISSION" meaning:"off, ask or deny: what happens when a subagent is about to start; default the spec's, else off; any other word asks"`
	Deadline         Millis `envconfig:"CAPGATE_DEADLINE_MS" meaning:"how long the hook may take from its start, in milliseconds; default 2000, also for anything but a positive number"`

	// PluginState says that the state directory is a plugin's data directory, in which there may be more than our files.
	PluginState bool `ignored:"true"`
	// EnvFile is the entry's environment file, an absolute path; "" = it names none.
	EnvFile string `ignored:"true"`
	// Problem is why that file cannot be used: what is switched on there is not known then.
	Problem error `ignored:"true"`
}

// Defaults of [Config].
const (
	DefaultScopeTTL = 6 * time.Hour
	DefaultDeadline = 2 * time.Second
)

// DefaultCapTools is the list of capped tools where CAPGATE_CAP_TOOLS names none.
const DefaultCapTools Tools = "WebSearch,WebFetch,Agent,Task,Workflow"

// Lookup returns an environment variable's value and whether it is set, as os.LookupEnv does.
type Lookup func(name string) (string, bool)

// Variable describes one field of [Config].
type Variable struct {
	Name    string
	Also    string // read where Name is unset or empty; "" = none
	Meaning string
	Value   string // as it is set, "" where it is not
	From    string // Name or Also, whichever the value came from; "" where neither is set
}

// LoadConfig reads the environment through lookup. It does by hand what envconfig.Process and [Config.Fallbacks] do
// together, and a test holds the two equal: the hook runs on every tool call, and linking envconfig costs it a fifth
// of an empty program's run time (docs/decisions/0001-hook-reads-environment-itself.md).
func LoadConfig(lookup Lookup) Config {
	var c Config
	c.each(func(field reflect.Value, tag reflect.StructTag) {
		if v, ok := lookup(tag.Get("envconfig")); ok {
			field.SetString(v)
		}
	})
	c.Fallbacks(lookup)
	return c
}

// Fallbacks fills fields that are empty from their second variable, where they have one. A kill switch that is on under
// either name is on.
func (c *Config) Fallbacks(lookup Lookup) {
	c.each(func(field reflect.Value, tag reflect.StructTag) {
		also := tag.Get("also")
		if also == "" {
			return
		}
		if v, ok := lookup(also); ok && (field.Len() == 0 || Switch(v).On() && isKillSwitch(also)) {
			field.SetString(v)
			c.PluginState = c.PluginState || also == pluginData && v != ""
		}
	})
}

// StateNames are the files and directories of ours in a state directory (docs/reference/files.md).
var StateNames = []string{
	"ledger.db", "ledger.lock", "ledger.head", scope.DirName, "hook-heard", "cleared", "loops",
	"decisions.jsonl", "decisions.jsonl.1", "decisions.jsonl.2", "admissions.json", "admissions.lock",
	control.OffFile, control.HaltFile, gates.OwnEnvFile,
}

// Variables lists the configuration with where each value comes from, in the order of the fields.
func Variables(lookup Lookup) []Variable {
	var vars []Variable
	c := LoadConfig(lookup)
	c.each(func(field reflect.Value, tag reflect.StructTag) {
		v := Variable{Name: tag.Get("envconfig"), Also: tag.Get("also"), Meaning: tag.Get("meaning"), Value: field.String()}
		if v.Value != "" {
			v.From = v.Name
			if first, _ := lookup(v.Name); first != v.Value {
				v.From = v.Also
			}
		}
		vars = append(vars, v)
	})
	return vars
}

func (c *Config) each(visit func(field reflect.Value, tag reflect.StructTag)) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag; tag.Get("envconfig") != "" {
			visit(v.Field(i), tag)
		}
	}
}

// Variables that the loading of a configuration knows by name.
const (
	dataDir    = "CAPGATE_DATA_DIR"
	pluginData = "CLAUDE_PLUGIN_DATA" // Claude Code sets it for the hooks of a plugin, and for those only
)

// isKillSwitch reports whether a variable switches something of ours off.
func isKillSwitch(name string) bool {
	switch name {
	case "CAPGATE_DISABLE", "CAPGATE_DISABLE_CAP", "CAPGATE_DISABLE_GATES", "VOYAGE_DISABLE_CAP_HOOK":
		return true
	}
	return false
}

// isPlace reports whether a variable says where the state of an entry is.
func isPlace(name string) bool { return name == dataDir || name == "CAPGATE_LEDGER" }

// isSetting reports whether a variable is one of [Config]'s.
func isSetting(name string) (ours bool) {
	new(Config).each(func(_ reflect.Value, tag reflect.StructTag) {
		ours = ours || name == tag.Get("envconfig") || name == tag.Get("also")
	})
	return ours
}

// HomeVariable names the variable that holds a person's home directory.
func HomeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// DefaultStateDir is the state directory of the command line, and of an environment file that names none. It follows the
// XDG base directory specification, by which a relative XDG_STATE_HOME is ignored. ok is false where the environment
// names no home, either.
func DefaultStateDir(lookup Lookup) (dir string, ok bool) {
	if base, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "capgate"), true
	}
	home, _ := lookup(HomeVariable())
	if !filepath.IsAbs(home) {
		return "", false
	}
	return filepath.Join(home, ".local", "state", "capgate"), true
}

// CapOff reports whether a kill switch turns the cap off.
func (c Config) CapOff() bool { return c.Disable.On() || c.DisableCap.On() }

// Under returns the configuration as it is while an operator's off is in force; nil = none is.
func (c Config) Under(off *control.Word) Config {
	const on = "1"
	switch {
	case off == nil:
	case off.Only == control.Cap:
		c.DisableCap = on
	case off.Only == control.Gates:
		c.DisableGates = on
	default:
		c.Disable = on
	}
	return c
}

// CapOn reports whether the cap judges calls.
func (c Config) CapOn() bool { return c.Enabled.On() && !c.CapOff() }

// Declares reports whether a spec or a list says which subagents there may be.
func (c Config) Declares() bool { return c.Spec != "" || c.AllowedSubagents != "" }

// Admits reports whether a subagent that is about to start has to be admitted, by a human or beforehand.
func (c Config) Admits() bool {
	return c.Admission != "" && gates.AdmissionMode(c.Admission) != gates.AdmissionOff
}

// GatesActive reports whether the subagent gates judge calls: a spec or an allow list is given, or spawns have to be
// admitted, and no kill switch is on.
func (c Config) GatesActive() bool {
	return !c.Disable.On() && !c.DisableGates.On() && (c.Declares() || c.Admits())
}

// GuardActive reports whether writes to our own files are judged: while the cap or the gates are on, or may be, because
// the environment file cannot be read.
func (c Config) GuardActive() bool {
	return c.CapOn() || c.GatesActive() || c.Problem != nil && !c.Disable.On()
}

// StateDir returns the state directory, cleaned, and whether it can be one: it must be an absolute path, since the
// hook's and the loop's working directories differ.
func (c Config) StateDir() (dir string, ok bool) {
	if !filepath.IsAbs(c.DataDir) {
		return "", false
	}
	return filepath.Clean(c.DataDir), true
}

// DefaultLedger returns the ledger file of a state directory.
func DefaultLedger(state string) string { return filepath.Join(state, "ledger.db") }

// LedgerPath returns the ledger file: CAPGATE_LEDGER, or ledger.db in the state directory. Like the state directory it
// must be an absolute path.
func (c Config) LedgerPath() (string, error) {
	if c.Ledger == "" {
		return DefaultLedger(c.DataDir), nil
	}
	if err := LedgerIsFile("CAPGATE_LEDGER", c.Ledger); err != nil {
		return "", err
	}
	if !filepath.IsAbs(c.Ledger) {
		return "", fmt.Errorf("CAPGATE_LEDGER is the relative path %q: the hook and the loop run in different directories, name an absolute one", c.Ledger)
	}
	return filepath.Clean(c.Ledger), nil
}

// LedgerIsFile refuses a ledger that is no file. from says where its place was given.
func LedgerIsFile(from, place string) error {
	if scheme, _, ok := strings.Cut(place, "://"); ok {
		return fmt.Errorf("%s: a ledger at %s:// is not supported by this build: name a file", from, scheme)
	}
	return nil
}

// Caps reports whether the call is of a capped tool, by its own name or by what it counts as.
func (c Config) Caps(call gates.Call) bool {
	capped := c.CapTools.Or(DefaultCapTools)
	return capped.Match(call.Tool) || call.CountsAs != "" && capped.Match(call.CountsAs)
}

// Switch is on when its value is exactly "1"; anything else is off.
type Switch string

// On reports whether the switch is on.
func (s Switch) On() bool { return s == "1" }

// Suspect reports whether the value looks as if its author meant "on" or mistyped: set, but neither 1 nor an
// ordinary way to say off.
func (s Switch) Suspect() bool { return s != "" && s != "0" && s != "1" }

// Millis is a positive number of milliseconds in decimal digits, with or without a fraction.
type Millis string

// Duration returns the number as a duration, or otherwise where the text is not such a number. Numbers beyond what a
// Duration holds are cut to its maximum, about 292 years.
func (m Millis) Duration(otherwise time.Duration) time.Duration {
	for _, c := range m {
		if c != '.' && (c < '0' || c > '9') {
			return otherwise
		}
	}
	n, err := strconv.ParseFloat(string(m), 64)
	if n == 0 || err != nil && !math.IsInf(n, 1) {
		return otherwise
	}
	if n >= float64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return max(time.Duration(n*float64(time.Millisecond)), 1)
}

// List is a comma-separated list of names.
type List string

// Names returns the names, white space around them trimmed, empty ones left out.
func (l List) Names() []string {
	var names []string
	for name := range strings.SplitSeq(string(l), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
