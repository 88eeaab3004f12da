package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a person may be typing into the reader. The null device is no terminal.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
