package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/ledger/disk"
)

// Places finds the state directory and the ledger that a command line means.
type Places struct {
	StateFlag, LedgerFlag Text // --state and --ledger

	lookup capgate.Lookup
	config func() (capgate.Config, error)
	now    func() time.Time
}

// StateDir returns the state directory, an absolute path: --state, else CAPGATE_DATA_DIR, else the default of the
// command line.
func (p *Places) StateDir() (string, error) {
	if p.StateFlag != "" {
		return filepath.Abs(string(p.StateFlag))
	}
	c, err := p.config()
	if err != nil {
		return "", err
	}
	if c.DataDir == "" {
		return p.defaultStateDir()
	}
	dir, ok := c.StateDir()
	if !ok {
		return "", fmt.Errorf("%s is the relative path %q: the hook runs in another working directory and would not find it, set an absolute one",
			p.source("CAPGATE_DATA_DIR"), c.DataDir)
	}
	return dir, nil
}

// HomeVariable names the variable that holds a person's home directory.
func HomeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// defaultStateDir follows the XDG base directory specification, by which a relative XDG_STATE_HOME is ignored.
func (p *Places) defaultStateDir() (string, error) {
	if base, _ := p.lookup("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "capgate"), nil
	}
	home, _ := p.lookup(HomeVariable())
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("no state directory: none of CAPGATE_DATA_DIR, XDG_STATE_HOME and %s names one, give --state", HomeVariable())
	}
	return filepath.Join(home, ".local", "state", "capgate"), nil
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

// LedgerPath returns the ledger file, an absolute path: --ledger, else CAPGATE_LEDGER, else ledger.db in the state
// directory.
func (p *Places) LedgerPath() (string, error) {
	if p.LedgerFlag != "" {
		if err := capgate.LedgerIsFile("--ledger", string(p.LedgerFlag)); err != nil {
			return "", err
		}
		return filepath.Abs(string(p.LedgerFlag))
	}
	c, err := p.config()
	if err != nil {
		return "", err
	}
	if c.Ledger == "" {
		if c.DataDir, err = p.StateDir(); err != nil {
			return "", err
		}
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
	c, err := p.config()
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
