// Package atomicfile replaces small files so that a reader, and whoever comes after a crash, finds the old content or the
// new one and nothing in between.
package atomicfile

import (
	"io/fs"

	"github.com/capgate/capgate/ledger/disk"
)

// Replace is [disk.Replace].
func Replace(path string, text []byte, mode fs.FileMode) error { return disk.Replace(path, text, mode) }
