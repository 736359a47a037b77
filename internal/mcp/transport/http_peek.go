package transport

// peeked is the read state of an idle connection.
type peeked uint8

const (
	peekClosed peeked = iota // closed or unknown
	peekSilent               // no data
	peekData
)

// peekNothing is used where peeking is not supported: such a connection serves one exchange.
func peekNothing() peeked { return peekClosed }
