package page

import (
	"bytes"
	"fmt"
)

// DamageError says what was found that bbolt would not have written.
type DamageError struct {
	Found string
	// Torn is true where one of the meta pages is to blame: which transaction is the newest is not known any more.
	Torn bool
}

// Error implements error.
func (e *DamageError) Error() string { return e.Found }

// NewerError says that a later bbolt wrote the file, in a version that this package does not know.
type NewerError struct{ Version uint32 }

// Error implements error.
func (e *NewerError) Error() string {
	return fmt.Sprintf("the file has bbolt's version %d, not %d", e.Version, boltVersion)
}

// ReadError says that the system could not read the file.
type ReadError struct{ Err error }

// Error implements error.
func (e *ReadError) Error() string { return e.Err.Error() }

// Unwrap returns what the system said.
func (e *ReadError) Unwrap() error { return e.Err }

func damaged(found string, args ...any) error {
	return &DamageError{Found: fmt.Sprintf(found, args...)}
}

func torn(found string, args ...any) error {
	return &DamageError{Found: fmt.Sprintf(found, args...), Torn: true}
}

// Printable makes bytes of a damaged file fit for an error line.
func Printable(b []byte) string {
	const most = 64
	if len(b) > most {
		b = b[:most]
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}
