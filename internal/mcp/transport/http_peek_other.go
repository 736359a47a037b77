//go:build !unix

package transport

import "net"

// canPeek is false: net/http replaces leanClient.
const canPeek = false

func newPeek(net.Conn) func() peeked { return peekNothing }
