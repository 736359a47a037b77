//go:build !unix

package wire

import "net"

// canPeek is false: net/http is used instead of leanClient.
const canPeek = false

func newPeek(net.Conn) func() peeked { return peekNothing }
