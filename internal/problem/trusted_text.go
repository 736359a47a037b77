package problem

import "fmt"

// TrustedTextError is an error whose text is MCPProxy's own alone: nothing in it comes from a server or library, so an
// agent may read it.
type TrustedTextError struct {
	Slow bool // a timeout
	err  error
}

func (e *TrustedTextError) Error() string { return e.err.Error() }
func (e *TrustedTextError) Unwrap() error { return e.err }

// TrustedTextErrorf returns a TrustedTextError. The arguments must be MCPProxy's own text, too.
func TrustedTextErrorf(format string, args ...any) error {
	return &TrustedTextError{err: fmt.Errorf(format, args...)}
}

// TrustedTextTimeoutErrorf is TrustedTextErrorf for a timeout.
func TrustedTextTimeoutErrorf(format string, args ...any) error {
	return &TrustedTextError{Slow: true, err: fmt.Errorf(format, args...)}
}
