//go:build !unix

package decisionlog

import "os"

// safely is nothing where the system knows no such flags: what is opened is looked at all the same.
const safely = 0

// tryLock locks nothing: an open file cannot be renamed here, so that two rotations cannot meet.
func tryLock(*os.File) (unlock func(), err error) { return func() {}, nil }
