package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/ledger"
)

// stateDir returns the state directory, an absolute path: --state, else CAPGATE_DATA_DIR, else the default of the
// command line.
func (a *app) stateDir() (string, error) {
	if a.state != "" {
		return filepath.Abs(string(a.state))
	}
	c, err := a.Config()
	if err != nil {
		return "", err
	}
	if c.DataDir == "" {
		return a.defaultStateDir()
	}
	dir, ok := c.StateDir()
	if !ok {
		return "", fmt.Errorf("%s is the relative path %q: the hook runs in another working directory and would not find it, set an absolute one",
			a.source("CAPGATE_DATA_DIR"), c.DataDir)
	}
	return dir, nil
}

// defaultStateDir follows the XDG base directory specification, by which a relative XDG_STATE_HOME is ignored.
func (a *app) defaultStateDir() (string, error) {
	if base, _ := a.Lookup("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "capgate"), nil
	}
	variable := "HOME"
	if runtime.GOOS == "windows" {
		variable = "USERPROFILE"
	}
	home, _ := a.Lookup(variable)
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("no state directory: none of CAPGATE_DATA_DIR, XDG_STATE_HOME and %s names one, give --state", variable)
	}
	return filepath.Join(home, ".local", "state", "capgate"), nil
}

// makeStateDir creates the state directory where there is none.
func makeStateDir(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok && pe.Path == dir {
			err = pe.Err
		}
		return fmt.Errorf("cannot create the state directory %s: %w: choose another with --state or CAPGATE_DATA_DIR", dir, err)
	}
	return nil
}

// ledgerPath returns the ledger file, an absolute path: --ledger, else CAPGATE_LEDGER, else ledger.db in the state
// directory.
func (a *app) ledgerPath() (string, error) {
	if a.ledgerFile != "" {
		if err := supported("--ledger", string(a.ledgerFile)); err != nil {
			return "", err
		}
		return filepath.Abs(string(a.ledgerFile))
	}
	c, err := a.Config()
	if err != nil {
		return "", err
	}
	if err := supported("CAPGATE_LEDGER", c.Ledger); err != nil {
		return "", err
	}
	if c.Ledger == "" {
		if c.DataDir, err = a.stateDir(); err != nil {
			return "", err
		}
	}
	return c.LedgerPath()
}

// supported refuses a ledger that is not a file.
func supported(from, place string) error {
	if scheme, _, ok := strings.Cut(place, "://"); ok {
		return fmt.Errorf("%s: a ledger at %s:// is not supported by this build: name a file", from, scheme)
	}
	return nil
}

// openLedger returns the ledger. Nothing is read before it is used.
func (a *app) openLedger() (ledger.Ledger, error) {
	path, err := a.ledgerPath()
	if err != nil {
		return nil, err
	}
	return ledger.NewFile(path, ledger.Options{Now: a.Now}), nil
}

// source names the variable that a setting came from: its own or the one read in its place.
func (a *app) source(name string) string {
	for _, v := range capgate.Variables(a.Lookup) {
		if v.Name == name && v.From != "" {
			return v.From
		}
	}
	return name
}
