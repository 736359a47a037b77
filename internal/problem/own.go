package problem

import "fmt"

// Own is an error with only MCPProxy's own text: nothing in it comes from a server or library, so an agent
// may read it.
type Own struct {
	Slow bool // a timeout
	err  error
}

func (e *Own) Error() string { return e.err.Error() }
func (e *Own) Unwrap() error { return e.err }

// Ownf returns an Own. The arguments must be MCPProxy's own text, too.
func Ownf(format string, args ...any) error { return &Own{err: fmt.Errorf(format, args...)} }

// Slowf is Ownf for a timeout.
func Slowf(format string, args ...any) error {
	return &Own{Slow: true, err: fmt.Errorf(format, args...)}
}
