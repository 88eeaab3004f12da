package cli

// Exit statuses, the same for all commands.
const (
	StatusDone      = 0 // what was asked is done
	StatusError     = 1 // it is not, or its result could not be written; one line on standard error says why
	StatusRefused   = 2 // the cap refused the turn; one line on standard error says what is spent
	StatusUnhealthy = 3 // doctor found something to mend, or probe no proof that the hook fires
)

// statusError is an error with an exit status of its own.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// WithStatus returns the error as one that ends the process with the exit status instead of [StatusError].
func WithStatus(status int, err error) error { return statusError{err, status} }
