package setup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger/disk"
)

// apply does what a plan says: the only place where install and uninstall write. changed reports whether something is
// another now, also beside an error.
func apply(p Plan, now time.Time) (changed bool, err error) {
	if p.State != "" {
		if err := cli.MakeStateDir(p.State); err != nil {
			return false, err
		}
	}
	sweepTemporaries(filepath.Dir(p.File), now)
	for _, c := range p.Copies { // before the entry that runs them
		if err := c.apply(); err != nil {
			return changed, err
		}
		changed = true
	}
	// Before the entry that names it, and after one that did: an entry without its file denies.
	if !p.Env.Remove && string(p.Env.New) != string(p.Env.Old) {
		if err := replaceFile(p.Env.Path, p.Env.New, p.Env.Path); err != nil {
			return changed, err
		}
		changed = true
	}
	if p.Aside != "" {
		if err := os.Rename(p.File+backupSuffix, p.Aside); err != nil {
			return changed, fmt.Errorf("move a copy of an earlier installation aside: %w", err)
		}
	}
	if changed, err = applyFile(p, changed); err != nil {
		return changed, err
	}
	if p.Env.Remove {
		if err := os.Remove(p.Env.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return changed, fmt.Errorf("remove %s: %w", p.Env.Path, err)
		}
		changed = true
	}
	if p.Action == actionRemoved {
		removeEmpty(p)
	}
	return changed, nil
}

// removeEmpty removes the directories that uninstall has emptied: that of a project's environment file, and Oh My Pi's for
// extensions with those above it. A client's own directory may have been there before install, and stays.
func removeEmpty(p Plan) {
	if dir := filepath.Dir(p.Env.Path); filepath.Base(dir) == ".capgate" {
		_ = os.Remove(dir)
	}
	for dir := filepath.Dir(p.File); p.Client == client.OMP && os.Remove(dir) == nil && filepath.Base(dir) != ".omp"; {
		dir = filepath.Dir(dir)
	}
}

// applyFile does what a plan says of the client's file.
func applyFile(p Plan, changed bool) (bool, error) {
	switch {
	case p.Remove:
		file, err := throughLinks(p.File)
		if err == nil {
			err = os.Remove(file)
		}
		if err != nil {
			return changed, fmt.Errorf("remove %s: %w", p.File, err)
		}
		changed = true
	case string(p.New) != string(p.Old) || p.Old == nil && p.New != nil:
		if p.Backup != "" {
			if err := replaceFile(p.Backup, p.Old, p.File); err != nil {
				return changed, err
			}
		}
		if err := replaceFile(p.File, p.New, p.File); err != nil {
			return changed, err
		}
		changed = true
	}
	if p.Action == actionRemoved && !p.KeepBackup {
		if err := os.Remove(p.File + backupSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return changed, fmt.Errorf("remove the backup: %w", err)
		}
	}
	return changed, nil
}

// sweepTemporaries removes the temporary files that an installation left when it was killed.
func sweepTemporaries(dir string, now time.Time) {
	left, _ := os.ReadDir(dir)
	for _, entry := range left {
		path := filepath.Join(dir, entry.Name())
		if ok, _ := filepath.Match(".capgate-*.tmp", entry.Name()); !ok {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// replaceFile writes a file by way of a temporary one, with the mode of another where that exists, else 0600. Links are written
// through. A file that is mounted by itself, as into a container, can be neither replaced nor removed: it is written in place.
func replaceFile(path string, text []byte, like string) error {
	path, err := throughLinks(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(like); err == nil {
		mode = info.Mode().Perm()
	}
	if err = disk.Replace(path, text, mode); errors.Is(err, syscall.EBUSY) {
		err = overwrite(path, text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w: make its directory writable", path, err)
	}
	return nil
}

// overwrite writes a file in place. What was there is put back where that fails.
func overwrite(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	old, err := io.ReadAll(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	fill := func(text []byte) error {
		if _, err := f.WriteAt(text, 0); err != nil {
			return err
		}
		return errors.Join(f.Truncate(int64(len(text))), f.Sync())
	}
	if err = fill(text); err != nil {
		err = errors.Join(err, fill(old))
	}
	return errors.Join(err, f.Close())
}
