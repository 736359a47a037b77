package problem

import "fmt"

// TrustedTextError is an error with a text that only MCPProxy wrote. It contains no text from a server or a library, so
// it is safe to show to an agent.
type TrustedTextError struct {
	Slow bool // whether the error is a timeout
	err  error
}

func (e *TrustedTextError) Error() string { return e.err.Error() }
func (e *TrustedTextError) Unwrap() error { return e.err }

// TrustedTextErrorf returns a TrustedTextError. The arguments must also be MCPProxy's own text.
func TrustedTextErrorf(format string, args ...any) error {
	return &TrustedTextError{err: fmt.Errorf(format, args...)}
}

// TrustedTextTimeoutErrorf returns a TrustedTextError for a timeout.
func TrustedTextTimeoutErrorf(format string, args ...any) error {
	return &TrustedTextError{Slow: true, err: fmt.Errorf(format, args...)}
}
