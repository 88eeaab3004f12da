package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/scope"
)

// Places finds the state directory and the ledger that a command line means.
type Places struct {
	StateFlag, LedgerFlag Text // --state and --ledger

	lookup  capgate.Lookup
	process func() (capgate.Config, error) // the configuration in the environment of this process
	now     func() time.Time

	meant   meant
	entries []installed.Entry
	listed  bool
}

// meant is what a command is about, by which its state directory is found where several are installed.
type meant struct{ run, session string }

// About says which run and which session the command is about, "" = none. It comes before any of the other methods.
func (p *Places) About(run, session string) { p.meant = meant{run, session} }

// Installed returns the installations that count in the current directory.
func (p *Places) Installed() []installed.Entry {
	if !p.listed {
		p.listed = true
		if dir, err := os.Getwd(); err == nil {
			p.entries = installed.List(p.lookup, dir)
		}
	}
	return p.entries
}

// StateDir returns the state directory, an absolute path: --state, else CAPGATE_DATA_DIR, else that of the installation
// which holds what the command is about, else that of the only installation, else the default of the command line.
func (p *Places) StateDir() (string, error) {
	if p.StateFlag != "" {
		return filepath.Abs(string(p.StateFlag))
	}
	c, err := p.process()
	if err != nil {
		return "", err
	}
	if c.DataDir != "" {
		dir, ok := c.StateDir()
		if !ok {
			return "", fmt.Errorf("%s is the relative path %q: the hook runs in another working directory and would not find it, set an absolute one",
				p.source("CAPGATE_DATA_DIR"), c.DataDir)
		}
		return dir, nil
	}
	switch states := installed.States(p.Installed()); len(states) {
	case 0:
		return p.DefaultStateDir()
	case 1:
		return states[0], nil
	default:
		return p.choose(states)
	}
}

// StateDirs returns every state directory that is to be seen from here: --state alone, else those of all installations, and
// CAPGATE_DATA_DIR, else the one that commands use without any.
func (p *Places) StateDirs() ([]string, error) {
	states := installed.States(p.Installed())
	if p.StateFlag == "" && len(states) > 0 {
		if c, err := p.process(); err == nil {
			if dir, ok := c.StateDir(); ok && !slices.Contains(states, dir) {
				states = append(states, dir)
			}
		}
		return states, nil
	}
	state, err := p.StateDir()
	return []string{state}, err
}

// ReachedStateDirs are those of [Places.StateDirs] and, unless --state names one, the default of the command line where it is
// there: entries of projects elsewhere, which are not to be seen from here, keep their state in it unless they name another.
func (p *Places) ReachedStateDirs() ([]string, error) {
	states, err := p.StateDirs()
	if err != nil || p.StateFlag != "" {
		return states, err
	}
	if dir, ok := capgate.DefaultStateDir(p.lookup); ok && !slices.Contains(states, dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			states = append(states, dir)
		}
	}
	return states, nil
}

// choose returns the one of several state directories that holds what the command is about.
func (p *Places) choose(states []string) (string, error) {
	var holding []string
	for _, state := range states {
		if p.holds(state) {
			holding = append(holding, state)
		}
	}
	what := "several installations have a state directory of their own"
	switch {
	case len(holding) == 1:
		return holding[0], nil
	case len(holding) > 1:
		what, states = "it is in several state directories", holding
	}
	return "", fmt.Errorf("%s, %s: choose one with --state", what, strings.Join(states, " and "))
}

// holds reports whether a state directory knows the run or the session that the command is about.
func (p *Places) holds(state string) bool {
	if s := p.meant.session; s != "" {
		if _, err := scope.Read(state, s); !errors.Is(err, scope.ErrNone) && !errors.Is(err, scope.ErrState) {
			return true
		}
	}
	if p.meant.run == "" {
		return false
	}
	path := capgate.DefaultLedger(state)
	if e, ok := p.entryOf(state); ok && e.Config.Ledger != "" {
		path = e.Config.Ledger
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	_, err := ledger.NewFile(path, ledger.Options{Now: p.now}).Budget(ctx, p.meant.run, nil)
	return err == nil || !errors.Is(err, ledger.ErrRunUnknown) && !errors.Is(err, ledger.ErrMissing)
}

// entryOf returns the installation whose state directory it is.
func (p *Places) entryOf(state string) (installed.Entry, bool) {
	entries := p.Installed()
	if i := slices.IndexFunc(entries, func(e installed.Entry) bool { return e.State() == state }); i >= 0 {
		return entries[i], true
	}
	return installed.Entry{}, false
}

// Config returns the configuration of the hook whose state directory the command uses, or that of this process's
// environment where no installation has it.
func (p *Places) Config() (capgate.Config, error) {
	state, err := p.StateDir()
	if err == nil {
		if e, ok := p.entryOf(state); ok {
			return e.Config, nil
		}
	}
	return p.process()
}

// Settings is what [Places.Config] is loaded by.
func (p *Places) Settings() capgate.Lookup {
	if state, err := p.StateDir(); err == nil {
		if e, ok := p.entryOf(state); ok {
			return e.Settings
		}
	}
	return p.lookup
}

// InstalledHere reports whether an installation has the state directory that the command uses.
func (p *Places) InstalledHere() bool {
	state, err := p.StateDir()
	_, ok := p.entryOf(state)
	return err == nil && ok
}

// DefaultStateDir is the state directory where nothing names another.
func (p *Places) DefaultStateDir() (string, error) {
	dir, ok := capgate.DefaultStateDir(p.lookup)
	if !ok {
		return "", fmt.Errorf("no state directory: none of CAPGATE_DATA_DIR, XDG_STATE_HOME and %s names one, give --state", capgate.HomeVariable())
	}
	return dir, nil
}

// MakeStateDir creates the state directory where there is none.
func MakeStateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot create the state directory %s: %w: choose another with --state or CAPGATE_DATA_DIR", dir, about(err, dir))
	}
	return nil
}

// about returns an error without the path where it is this one: a parent that is at fault stays named.
func about(err error, path string) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == path {
		return disk.Bare(err)
	}
	return err
}

// LedgerPath returns the ledger file, an absolute path: --ledger, else CAPGATE_LEDGER, else that of the installation with
// this state directory, else ledger.db in it.
func (p *Places) LedgerPath() (string, error) {
	if p.LedgerFlag != "" {
		if err := capgate.LedgerIsFile("--ledger", string(p.LedgerFlag)); err != nil {
			return "", err
		}
		return filepath.Abs(string(p.LedgerFlag))
	}
	c, err := p.process()
	if err != nil {
		return "", err
	}
	if c.Ledger != "" {
		return c.LedgerPath()
	}
	if c.DataDir, err = p.StateDir(); err != nil {
		return "", err
	}
	if e, ok := p.entryOf(c.DataDir); ok {
		c.Ledger = e.Config.Ledger
	}
	return c.LedgerPath()
}

// OpenLedger returns the ledger. Nothing is read before it is used.
func (p *Places) OpenLedger() (ledger.Ledger, error) {
	path, err := p.LedgerPath()
	if err != nil {
		return nil, err
	}
	return ledger.NewFile(path, ledger.Options{Now: p.now}), nil
}

// Markers returns the state directory and how long a marker in it holds.
func (p *Places) Markers() (state string, ttl time.Duration, err error) {
	c, err := p.Config()
	if err != nil {
		return "", 0, err
	}
	state, err = p.StateDir()
	return state, c.ScopeTTL.Duration(capgate.DefaultScopeTTL), err
}

// source names the variable that a setting came from: its own or the one read in its place.
func (p *Places) source(name string) string {
	for _, v := range capgate.Variables(p.lookup) {
		if v.Name == name && v.From != "" {
			return v.From
		}
	}
	return name
}
