package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
)

// remains are what an installation leaves behind that is taken out: files and folders of ours, and why some of them stay.
type remains struct {
	files   []string // in the order in which they are removed, each folder behind what is in it
	stays   []string
	folders []string // of the state and of the programs, as far as they are there
}

// gatherRemains finds them. Whatever another installation that can be seen from here needs stays.
func gatherRemains(a *cli.App, f File) (r remains, err error) {
	env, err := f.variables()
	if err != nil {
		env = map[string]string{} // broken, and no reason to keep the rest
	}
	state := env["CAPGATE_DATA_DIR"]
	if !filepath.IsAbs(state) {
		if state, err = a.StateDir(); err != nil {
			return r, err
		}
	}
	var others []installed.Entry
	for _, e := range a.Installed() {
		if e.File != f.Path {
			others = append(others, e)
		}
	}
	for _, path := range []string{f.Path + backupSuffix, f.Path + backupSuffix + oldSuffix} {
		r.add(path)
	}
	if !f.EnvElsewhere {
		r.add(f.EnvPath)
	}
	if i := slices.IndexFunc(others, func(e installed.Entry) bool { return e.State() == filepath.Clean(state) }); i >= 0 {
		r.keep(state, "the installation in "+others[i].File+" counts there")
	} else {
		r.addState(state, env["CAPGATE_LEDGER"])
	}
	programs := installed.ProgramDir(a.Lookup)
	for _, dir := range []string{state, programs} {
		if _, err := os.Lstat(dir); err == nil {
			r.folders = append(r.folders, dir)
		}
	}
	if i := slices.IndexFunc(others, func(e installed.Entry) bool { return programs != "" && filepath.Dir(e.Hook) == programs }); i >= 0 {
		r.keep(programs, "the installation in "+others[i].File+" runs them")
	} else if programs != "" {
		for _, name := range []string{hookProgram, program} {
			r.add(filepath.Join(programs, name+exe()))
		}
		r.add(programs)
		r.add(filepath.Dir(programs))
	}
	return r, nil
}

// add adds what is there.
func (r *remains) add(path string) {
	if _, err := os.Lstat(path); err == nil {
		r.files = append(r.files, path)
	}
}

func (r *remains) keep(path, why string) {
	if _, err := os.Lstat(path); err == nil {
		r.stays = append(r.stays, path+": "+why)
	}
}

// addState adds what is ours in a state directory, the directory, and a ledger that is elsewhere.
func (r *remains) addState(state, ledger string) {
	for _, name := range capgate.StateNames {
		r.add(filepath.Join(state, name))
	}
	left, _ := os.ReadDir(state)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(e.Name(), ".tmp") {
			r.add(filepath.Join(state, e.Name()))
		}
	}
	r.add(state)
	if filepath.IsAbs(ledger) && filepath.Dir(ledger) != filepath.Clean(state) {
		r.add(ledger)
		r.add(strings.TrimSuffix(ledger, filepath.Ext(ledger)) + ".lock")
	}
}

// purge removes them. A folder in which something else is stays, and is said to.
func (r remains) purge() (removed, stays []string, err error) {
	stays = slices.Clone(r.stays)
	for _, path := range r.files {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // with the installation itself
		case err != nil:
			return removed, stays, fmt.Errorf("remove %s: %w", path, err)
		case info.IsDir() && !slices.Contains(capgate.StateNames, filepath.Base(path)):
			if left, err := os.ReadDir(path); err != nil || len(left) > 0 {
				stays = append(stays, path+": something else is in it")
				continue
			}
		}
		if err := os.RemoveAll(path); err != nil {
			return removed, stays, fmt.Errorf("remove %s: %w", path, err)
		}
		removed = append(removed, path)
	}
	return removed, stays, nil
}
