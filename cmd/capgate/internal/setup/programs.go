package setup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/installed"
	"github.com/capgate/capgate/ledger/disk"
)

// Names of our programs.
const (
	program     = "capgate"
	hookProgram = "capgate-hook"
)

// Programs are our own programs as an installation runs them.
type Programs struct {
	Command string   // the hook: capgate-hook, or capgate with the argument hook where there is none
	Args    []string // its arguments
	Copies  []Copy   // what is to be copied first
}

// Copy is a program that is put where it stays.
type Copy struct {
	From, To string
	Over     bool // over another one
}

// programsHere finds this program and the hook beside it, run from where they are.
func programsHere() (Programs, error) {
	from, names, err := found()
	return planPrograms(from, names, ""), err
}

// programsToStay finds them, and where an installation is to run them from. That is where they are if they stay there: a
// clone is cleaned and a download moved, and then every call that is judged would be denied.
func programsToStay(lookup capgate.Lookup) (Programs, error) {
	from, names, err := found()
	p := planPrograms(from, names, installed.ProgramDir(lookup))
	p.Copies = slices.DeleteFunc(p.Copies, Copy.isDone)
	for i, c := range p.Copies {
		_, err := os.Lstat(c.To)
		p.Copies[i].Over = err == nil
	}
	return p, err
}

// found returns this program's folder and what is there of ours, this program first.
func found() (dir string, names []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", []string{program + exe()}, fmt.Errorf("find this program: %w", err)
	}
	dir, names = filepath.Dir(self), []string{filepath.Base(self)}
	if isProgram(filepath.Join(dir, hookProgram+exe())) {
		names = append(names, hookProgram+exe())
	}
	return dir, names, nil
}

// planPrograms says which programs of a folder an installation runs, and from where. The first of them is this program, place
// is a person's own folder for them, "" = there is none.
func planPrograms(from string, names []string, place string) (p Programs) {
	at := from
	if place != "" && place != from && !staysThere(from) {
		at = place
		for i, name := range names {
			to := name
			if i == 0 {
				to = program + exe()
			}
			p.Copies = append(p.Copies, Copy{From: filepath.Join(from, name), To: filepath.Join(at, to)})
		}
	}
	p.Command, p.Args = filepath.Join(at, hookProgram+exe()), []string{}
	if !slices.Contains(names, hookProgram+exe()) {
		name := names[0]
		if at != from {
			name = program + exe()
		}
		p.Command, p.Args = filepath.Join(at, name), []string{"hook"}
	}
	return p
}

// staysThere reports whether a folder is a system's for programs, whose packages or administrators keep it.
func staysThere(dir string) bool {
	dir = filepath.ToSlash(dir) + "/"
	if strings.Contains(dir, "/Cellar/") { // of one version, and removed with it
		return false
	}
	for _, prefix := range []string{"/usr/", "/opt/", "/bin/", "/sbin/", "C:/Program Files/"} {
		if strings.HasPrefix(dir, prefix) {
			return true
		}
	}
	return false
}

// isProgram reports whether the file can be run.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || runtime.GOOS == "windows")
}

// isDone reports whether the same program is there already.
func (c Copy) isDone() bool {
	have, err := os.ReadFile(c.To)
	if err != nil || !isProgram(c.To) {
		return false
	}
	text, err := os.ReadFile(c.From)
	return err == nil && bytes.Equal(have, text)
}

// apply copies the program. A hook that runs meanwhile goes on with the old one.
func (c Copy) apply() error {
	text, err := os.ReadFile(c.From)
	if err != nil {
		return fmt.Errorf("copy a program: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.To), 0o755); err != nil {
		return fmt.Errorf("copy %s to %s: %w", c.From, c.To, err)
	}
	if err := disk.Replace(c.To, text, 0o755); err != nil {
		return fmt.Errorf("copy %s to %s: %w: make its folder writable", c.From, c.To, err)
	}
	return nil
}

// exe ends the name of a program.
func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
