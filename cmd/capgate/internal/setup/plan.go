package setup

import (
	"fmt"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/settings"
)

// File is a client's file as it is.
type File struct {
	Client string
	Path   string
	Text   []byte // nil = there is none

	// The copy beside it of how it was before the first install.
	HasBackup bool   // something is there
	Backup    []byte // read for uninstall only
}

// backupSuffix names the copy of a settings file as it was before the first install.
const backupSuffix = ".capgate-backup"

// Plan is what is to become of a client's file, and what is said about it. Making one reads and writes nothing.
type Plan struct {
	Result
	Old, New   []byte
	Remove     bool // the file goes
	KeepBackup bool // after an uninstall: it is of no use, and not ours to throw away
}

// Result is what install and uninstall print with --json.
type Result struct {
	Client string `json:"client"`
	File   string `json:"file"`
	Action string `json:"action"` // "installed", "updated", "unchanged", "removed" or "not installed"
	DryRun bool   `json:"dry_run"`
	Hook   string `json:"hook,omitempty"`
	State  string `json:"state,omitempty"`
	Backup string `json:"backup,omitempty"` // the copy that is made
	Diff   string `json:"diff,omitempty"`   // with --dry-run
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
		return Plan{}, f.untouched(err)
	}
	env, drop := w.Variables(kept), w.replaced()
	p := Plan{Result: Result{Client: f.Client, File: f.Path, Hook: w.line(), State: value(env, "CAPGATE_DATA_DIR"), Changed: changes(kept, env, drop)}, Old: f.Text}
	var was bool
	if f.Client == client.OMP {
		was = len(f.Text) > 0
		if was && !isExtension(f.Text) {
			return Plan{}, fmt.Errorf("%s is no extension of capgate's: move it away first", f.Path)
		}
		p.New, err = extensionText(w, merge(kept, env, drop))
	} else if p.New, was, err = withHook(f.Text, w, env, drop); err != nil {
		err = f.untouched(err)
	}
	if err != nil {
		return Plan{}, err
	}
	switch {
	case f.Text != nil && string(p.New) == string(f.Text):
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
	return p, nil
}

// PlanUninstall says what becomes of a file out of which the hook is taken.
func PlanUninstall(f File) (Plan, error) {
	p := Plan{Result: Result{Client: f.Client, File: f.Path, Action: actionRemoved}, Old: f.Text}
	if f.Client == client.OMP {
		if len(f.Text) > 0 && !isExtension(f.Text) {
			return Plan{}, fmt.Errorf("%s is no extension of capgate's: it stays", f.Path)
		}
		p.Remove = f.Text != nil
	} else {
		left, err := withoutHook(f.Text, f.Backup)
		if err != nil {
			return Plan{}, f.untouched(err)
		}
		p.New, p.Remove, p.KeepBackup = left.text, left.gone, left.keepBackup
	}
	if f.Text == nil || !p.Remove && string(p.New) == string(f.Text) {
		p.Action, p.Remove, p.New = actionNotInstalled, false, f.Text
	}
	return p, nil
}

// variables returns the variables of ours that the file sets.
func (f File) variables() (map[string]string, error) {
	if f.Client == client.OMP {
		return ExtensionVariables(f.Text), nil
	}
	d, err := settings.Parse(f.Text)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, name := range variables {
		if value, ok := d.Env(name); ok {
			env[name] = value
		}
	}
	return env, nil
}

// untouched words an error about what is in the file.
func (f File) untouched(err error) error { return fmt.Errorf("%s is left as it is: %w", f.Path, err) }
