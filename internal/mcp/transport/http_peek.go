package transport

// peeked is what an idle connection has to read.
type peeked uint8

const (
	peekClosed peeked = iota // its end, or it cannot be told
	peekSilent               // nothing
	peekData
)

// peekNothing stands for the look where it cannot be had: such a connection
// serves one exchange only.
func peekNothing() peeked { return peekClosed }
