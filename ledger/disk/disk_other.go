//go:build !unix

package disk

import "os"

// Flags for [os.OpenFile]. Elsewhere than on Unix they are zero: look at what is opened.
const (
	Nonblock = 0
	NoFollow = 0
)

// SyncDir makes the names in a directory durable. Where a directory cannot be opened for that it does nothing.
func SyncDir(string) error { return nil }

// Descriptor is one of the standard streams, 1 or 2: there is no SIGPIPE here.
type Descriptor int

// Write implements [io.Writer].
func (d Descriptor) Write(p []byte) (n int, err error) {
	if d == 1 {
		return os.Stdout.Write(p)
	}
	return os.Stderr.Write(p)
}
