//go:build !unix

package hook

import "os"

type descriptor int

func (d descriptor) Write(p []byte) (int, error) {
	if d == 1 {
		return os.Stdout.Write(p)
	}
	return os.Stderr.Write(p)
}
