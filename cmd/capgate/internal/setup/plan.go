package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
	"github.com/capgate/capgate/gates"
)

// File is a client's file as it is.
type File struct {
	Client string
	Path   string
	Text   []byte // nil = there is none

	// The environment file that its entry names, or is to name, and what the entry calls it.
	EnvPath, EnvCalled string
	EnvText            []byte // nil = there is none
	// EnvElsewhere says that it is not where install puts one: then it may be another installation's as well.
	EnvElsewhere bool

	// The copy beside it of how it was before the first install.
	HasBackup bool   // something is there
	Backup    []byte // read for uninstall only
}

// backupSuffix names the copy of a settings file as it was before the first install.
const backupSuffix = ".capgate-backup"

// oldSuffix is added to the name of such a copy where no settings are left that it is a copy of.
const oldSuffix = ".old"

// Plan is what is to become of a client's file, and what is said about it. Making one reads and writes nothing.
type Plan struct {
	Result
	Old, New   []byte
	Remove     bool // the file goes
	Env        EnvPlan
	KeepBackup bool // after an uninstall: it is of no use, and not ours to throw away
	Copies     []Copy
	Purge      *remains // goes as well
}

// EnvPlan is what is to become of the environment file of an installation.
type EnvPlan struct {
	Path     string
	Old, New []byte
	Remove   bool
}

// Result is what install and uninstall print with --json.
type Result struct {
	Client   string   `json:"client"`
	File     string   `json:"file"`
	Action   string   `json:"action"` // "installed", "updated", "unchanged", "removed" or "not installed"
	DryRun   bool     `json:"dry_run"`
	Hook     string   `json:"hook,omitempty"`
	State    string   `json:"state,omitempty"`
	Env      string   `json:"env_file,omitempty"` // the settings of the installation
	Backup   string   `json:"backup,omitempty"`   // the copy that is made
	Kept     string   `json:"kept,omitempty"`     // an environment file that uninstall leaves, because more is in it or another may need it
	Diff     string   `json:"diff,omitempty"`     // with --dry-run
	Programs []string `json:"programs,omitempty"` // that are copied to where they stay
	// TakesAway says what the agent cannot do any more.
	TakesAway []string `json:"takes_away,omitempty"`
	// Aside is where a copy of an earlier installation is moved to that is of no use to this one.
	Aside string `json:"aside,omitempty"`
	// Removed is what --purge removes, Stays what an uninstall leaves, with the reason where it is not plain.
	Removed []string `json:"removed,omitempty"`
	Stays   []string `json:"stays,omitempty"`
	// Changed says of each variable whose value is another now, or that was taken out, what it was.
	Changed []Change `json:"changed,omitempty"`
}

// Change is a variable that had another value before.
type Change struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to,omitempty"` // "" = taken out
}

// Actions of a [Result].
const (
	actionInstalled    = "installed"
	actionUpdated      = "updated"
	actionUnchanged    = "unchanged"
	actionRemoved      = "removed"
	actionNotInstalled = "not installed"
)

// PlanInstall says what becomes of a file into which the hook is wired.
func PlanInstall(f File, w Wiring) (Plan, error) {
	kept, err := f.variables()
	if err != nil {
		return Plan{}, err
	}
	w.EnvFile = f.EnvCalled
	env, drop := w.Variables(kept), w.replaced()
	all := merge(kept, env, drop)
	c := config(all)
	p := Plan{
		Result: Result{
			Client: f.Client, File: f.Path, Hook: w.line(), State: w.state(env), Env: f.EnvPath, Changed: changes(kept, env, drop),
			TakesAway: takesAway(f.Client, c),
		},
		Old: f.Text, Env: EnvPlan{Path: f.EnvPath, Old: f.EnvText}, Copies: w.Copies,
	}
	for _, copied := range w.Copies {
		p.Programs = append(p.Programs, copied.To)
	}
	ours, theirs := split(all)
	if p.Env.New, err = withVariables(f.EnvText, ours, drop); err != nil {
		return Plan{}, err
	}
	var was bool
	if f.Client == client.OMP {
		was = len(f.Text) > 0
		if was && !installed.IsExtension(f.Text) {
			return Plan{}, fmt.Errorf("%s is no extension of capgate's: move it away first", f.Path)
		}
		if w.Portable { // the extension looks for it
			w.Command = hookProgram
		}
		p.New, err = extensionText(w, nil)
	} else if p.New, was, err = withHook(f.Text, w, c, theirs); err != nil {
		err = f.untouched(err)
	}
	if err != nil {
		return Plan{}, err
	}
	switch {
	case f.Text != nil && string(p.New) == string(f.Text) && f.EnvText != nil && string(p.Env.New) == string(f.EnvText) && len(w.Copies) == 0:
		p.Action = actionUnchanged
	case was:
		p.Action = actionUpdated
	default:
		p.Action = actionInstalled
	}
	if f.Client == client.Claude && f.Text != nil {
		if p.Action == actionInstalled || p.Action == actionUpdated && !f.HasBackup && !madeByInstall(f.Text) {
			p.Backup = f.Path + backupSuffix
		}
	}
	if f.Client == client.Claude && f.Text == nil && f.HasBackup { // uninstall would give it back
		p.Aside = f.Path + backupSuffix + oldSuffix
	}
	return p, nil
}

// config is the configuration that variables make.
func config(vars []Variable) capgate.Config {
	return capgate.LoadConfig(func(name string) (string, bool) {
		i := slices.IndexFunc(vars, func(v Variable) bool { return v.Name == name })
		if i < 0 {
			return "", false
		}
		return vars[i].Value, true
	})
}

// takesAway says what the agent cannot do any more under a configuration, whatever its client is.
func takesAway(name string, c capgate.Config) (all []string) {
	if c.Declares() {
		types := strings.Join(c.AllowedSubagents.Names(), ", ")
		if c.Spec != "" {
			types = "those of " + c.Spec
		}
		shells := "Bash, PowerShell and Monitor are"
		if name == client.OMP {
			shells = "bash is"
		}
		all = append(all,
			"the main agent's shell: "+shells+" for subagents. It cannot run capgate turn either: let capgate loop run the client",
			"every subagent but "+types)
		if name == client.Claude {
			all = append(all, "subagents in the background")
		}
	}
	switch {
	case gates.AdmissionMode(c.Admission) == gates.AdmissionDeny:
		all = append(all, "every start of a subagent that capgate admit has not let through")
	case c.Admits():
		all = append(all, "every start of a subagent without a human's yes, or one of capgate admit: where nobody can be asked it is denied")
	}
	return all
}

// PlanUninstall says what becomes of a file out of which the hook is taken.
func PlanUninstall(f File) (Plan, error) {
	p := Plan{Result: Result{Client: f.Client, File: f.Path, Action: actionRemoved}, Old: f.Text, Env: EnvPlan{Path: f.EnvPath, Old: f.EnvText, New: f.EnvText}}
	switch {
	case f.EnvText == nil:
	case onlyOurs(f.EnvText) && !f.EnvElsewhere:
		p.Env.Remove, p.Env.New = true, nil
	default:
		p.Kept = f.EnvPath
	}
	if f.Client == client.OMP {
		if len(f.Text) > 0 && !installed.IsExtension(f.Text) {
			return Plan{}, fmt.Errorf("%s is no extension of capgate's: it stays", f.Path)
		}
		p.Remove = f.Text != nil
	} else {
		env, _ := capgate.ParseEnvFile(f.EnvText)
		left, err := withoutHook(f.Text, f.Backup, env["CAPGATE_SPEC"] != "" || env["CAPGATE_ALLOWED_SUBAGENTS"] != "")
		if err != nil {
			return Plan{}, f.untouched(err)
		}
		p.New, p.Remove, p.KeepBackup = left.text, left.gone, left.keepBackup
	}
	if f.Text == nil || !p.Remove && string(p.New) == string(f.Text) {
		p.Action, p.Remove, p.New, p.Env.Remove, p.Kept = actionNotInstalled, false, f.Text, false, ""
	}
	return p, nil
}

// variables returns the settings that the installation has: those of its environment file, and what an earlier version
// wrote into the client's file. A kill switch stays where a person has put it.
func (f File) variables() (map[string]string, error) {
	env := map[string]string{}
	if f.Client == client.OMP {
		x, _ := installed.ParseExtension(f.Text)
		maps.Copy(env, x.Env)
	} else {
		d, err := settings.Parse(f.Text)
		if err != nil {
			return nil, f.untouched(err)
		}
		for _, name := range variables {
			if value, ok := d.Env(name); ok {
				env[name] = value
			}
		}
	}
	own, err := capgate.ParseEnvFile(f.EnvText)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", f.EnvPath, err, errEnvFile)
	}
	for name, value := range own {
		if slices.Contains(variables, name) {
			env[name] = value
		}
	}
	return env, nil
}

// split tells the variables of the environment file from those that the client must see in its own settings.
func split(all []Variable) (ours, theirs []Variable) {
	for _, v := range all {
		if v.Name == claude.NoBackground {
			theirs = append(theirs, v)
		} else {
			ours = append(ours, v)
		}
	}
	return ours, theirs
}

// untouched words an error about what is in the file.
func (f File) untouched(err error) error { return fmt.Errorf("%s is left as it is: %w", f.Path, err) }
