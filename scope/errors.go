package scope

import "errors"

// The kinds of failure that callers tell apart, with errors.Is. The numbers are rows of the table in the design.
var (
	// ErrNone: there is no marker for this session (row 7).
	ErrNone = errors.New("no marker for this session")
	// ErrUnreadable: there is something at the marker's path, but not a marker that can be trusted (row 9).
	ErrUnreadable = errors.New("not a marker that can be trusted")
	// ErrState: the state directory cannot be used: no absolute path, not a directory, no permission to search it (row 6).
	ErrState = errors.New("state directory cannot be used")
	// ErrSession: no marker can have this session id (row 5).
	ErrSession = errors.New("not a usable session id")
)

// failure is the error of this package. It is put into words only when somebody asks, which the hook mostly does not.
type failure struct {
	doing string // "read marker"
	path  string
	kind  error  // one of the sentinels above, or nil
	cause error  // what went wrong underneath, or nil
	hint  string // what to do next, or ""
}

func (f *failure) Error() string {
	text := f.doing
	if f.path != "" {
		text += " " + f.path
	}
	if f.kind != nil {
		text += ": " + f.kind.Error()
	}
	if f.cause != nil {
		text += ": " + f.cause.Error()
	}
	if f.hint != "" {
		text += "; " + f.hint
	}
	return text
}

func (f *failure) Unwrap() []error {
	var errs []error
	if f.kind != nil {
		errs = append(errs, f.kind)
	}
	if f.cause != nil {
		errs = append(errs, f.cause)
	}
	return errs
}
