//go:build unix

package scope

// checkAbsent has nothing to add: a file in the state directory's place is ENOTDIR already.
func checkAbsent(string) error { return nil }
