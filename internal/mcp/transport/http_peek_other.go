//go:build !unix

package transport

import "net"

// canPeek is false, so net/http replaces leanClient.
const canPeek = false

func newPeekFunc(net.Conn) func() peekState { return peekUnsupported }
