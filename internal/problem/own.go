package problem

import "fmt"

// Own is an error in MCPProxy's own words: nothing in it was said by a server
// or by a library, so that an agent may read it.
type Own struct {
	Slow bool // something took too long
	err  error
}

func (e *Own) Error() string { return e.err.Error() }
func (e *Own) Unwrap() error { return e.err }

// Ownf returns an Own. The arguments must be our own words, too.
func Ownf(format string, args ...any) error { return &Own{err: fmt.Errorf(format, args...)} }

// Slowf is Ownf about what took too long.
func Slowf(format string, args ...any) error {
	return &Own{Slow: true, err: fmt.Errorf(format, args...)}
}
