package transport

// peekState is the read state of an idle connection.
type peekState uint8

const (
	peekClosed peekState = iota // closed or unknown
	peekSilent                  // no data
	peekData
)

// peekUnsupported is used where peeking is not supported: such a connection serves one exchange.
func peekUnsupported() peekState { return peekClosed }
