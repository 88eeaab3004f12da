//go:build !unix

package scope

import "os"

// checkAbsent tells a state directory that does not exist from a file in its place, which looks the same from below.
func checkAbsent(state string) error {
	if info, err := os.Stat(state); err == nil && !info.IsDir() {
		return notDir(info)
	}
	return nil
}
