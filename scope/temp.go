package scope

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A temporary file is called .capgate-<unix seconds>-<random>.tmp: its age is in its name, since a file that is renamed
// to go keeps its old modification time.
const (
	tempPrefix = ".capgate-"
	tempSuffix = ".tmp"
	tempMaxAge = time.Hour
)

func tempPath(dir string) string {
	name := fmt.Sprintf("%s%d-%016x%s", tempPrefix, time.Now().Unix(), rand.Uint64(), tempSuffix)
	return filepath.Join(dir, name)
}

// staleTemp reports whether name is a temporary file that whoever made it must have given up: more than an hour old, or
// from the future by as much, as a wrong clock leaves it.
func staleTemp(name string, now time.Time) bool {
	rest, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false
	}
	rest, ok = strings.CutSuffix(rest, tempSuffix)
	if !ok {
		return false
	}
	seconds, _, ok := strings.Cut(rest, "-")
	if !ok {
		return false
	}
	made, err := strconv.ParseInt(seconds, 10, 64)
	return err == nil && now.Sub(time.Unix(made, 0)).Abs() > tempMaxAge
}
