package disk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// StaleAfter is how old a temporary file must be to count as one that its maker has given up, or how far in the future,
// as a wrong clock leaves it.
const StaleAfter = time.Hour

// TempSuffix ends the names of temporary files.
const TempSuffix = ".tmp"

// tempPrefix starts the names that tell their age: .capgate-<unix seconds>-<random>.tmp.
const tempPrefix = ".capgate-"

// TempPath returns a new name for a temporary file in dir. The name tells when it was made, because a file that is
// renamed to go keeps its old modification time.
func TempPath(dir string) string {
	name := fmt.Sprintf("%s%d-%016x%s", tempPrefix, time.Now().Unix(), rand.Uint64(), TempSuffix)
	return filepath.Join(dir, name)
}

// IsStale reports whether name is one from [TempPath] whose maker must have given it up.
func IsStale(name string, now time.Time) bool {
	rest, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false
	}
	rest, ok = strings.CutSuffix(rest, TempSuffix)
	if !ok {
		return false
	}
	seconds, _, ok := strings.Cut(rest, "-")
	if !ok {
		return false
	}
	made, err := strconv.ParseInt(seconds, 10, 64)
	return err == nil && now.Sub(time.Unix(made, 0)).Abs() > StaleAfter
}

// SweepTemps removes the regular files in dir whose names start with prefix and end with [TempSuffix], and that were last
// changed more than [StaleAfter] ago. It is best effort.
func SweepTemps(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), TempSuffix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()).Abs() > StaleAfter {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
