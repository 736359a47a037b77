package problem

import "fmt"

// OwnTextError is an error with only MCPProxy's own text: nothing in it comes from a server or library, so an agent
// may read it.
type OwnTextError struct {
	Slow bool // a timeout
	err  error
}

func (e *OwnTextError) Error() string { return e.err.Error() }
func (e *OwnTextError) Unwrap() error { return e.err }

// OwnTextErrorf returns an Own. The arguments must be MCPProxy's own text, too.
func OwnTextErrorf(format string, args ...any) error {
	return &OwnTextError{err: fmt.Errorf(format, args...)}
}

// OwnTimeoutErrorf is Ownf for a timeout.
func OwnTimeoutErrorf(format string, args ...any) error {
	return &OwnTextError{Slow: true, err: fmt.Errorf(format, args...)}
}
