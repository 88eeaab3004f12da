package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/capgate/capgate/capgate/decisionlog"
)

// checkState looks at the hook's state directory.
func checkState(x Examination) []Finding {
	f := findings{check: "state"}
	state, ok := x.Config.StateDir()
	if !ok {
		f.add(Fail, fmt.Sprintf("the hook's state directory is %q", x.Config.DataDir), "it must be an absolute path: calls in scope are denied until it is", "capgate install")
		return f.all
	}
	info, err := x.Files.Stat(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.add(Warn, state+" is not there", "no session has ever been armed", "capgate scope open makes it")
		return f.all
	case err != nil:
		f.add(Fail, fmt.Sprintf("%s: %v", state, err), "calls are denied, because they cannot be counted", "chmod u+rwx "+state)
		return f.all
	case !info.IsDir():
		f.add(Fail, state+" is not a directory", "calls are denied, because they cannot be counted", "move it away")
		return f.all
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		f.add(Warn, fmt.Sprintf("%s has mode %04o", state, info.Mode().Perm()), "other users may read or change the count", "chmod 700 "+state)
	default:
		f.ok(state)
	}
	if x.AdmissionsErr != nil {
		f.add(Warn, x.AdmissionsErr.Error(), "nothing that was admitted counts, and nothing can be admitted", "move the file away")
	}
	log := filepath.Join(state, decisionlog.FileName)
	if info, err := x.Files.Lstat(log); err == nil && !info.Mode().IsRegular() {
		f.add(Warn, log+" is not a regular file", "decisions are not logged", "move it away")
	}
	if mine := x.ShellState; mine != "" && mine != state {
		f.add(Warn, fmt.Sprintf("this shell's commands use %s, the hook %s", mine, state), "a session that is armed here is not armed for the hook", "export CAPGATE_DATA_DIR="+state)
	}
	return f.all
}
