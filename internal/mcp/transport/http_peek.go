package transport

// peekState is the read state of an idle connection.
type peekState uint8

const (
	peekClosed peekState = iota // closed or unknown
	peekSilent                  // no data
	peekData
)

// peekUnsupported is used on systems that do not support peeking. A connection serves only one exchange on them.
func peekUnsupported() peekState { return peekClosed }
