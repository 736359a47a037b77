//go:build unix

package transport

import (
	"net"
	"syscall"
)

// canPeek reports whether newPeek works.
const canPeek = true

// newPeek returns a function that checks for data on nc without reading it and without blocking.
func newPeek(nc net.Conn) func() peeked {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return peekNothing
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return peekNothing
	}
	var (
		got peeked
		buf [1]byte
	)
	look := func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), buf[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case n > 0:
			got = peekData
		case err == syscall.EAGAIN || err == syscall.EINTR:
			got = peekSilent
		default:
			got = peekClosed
		}
		return true
	}
	return func() peeked {
		if raw.Read(look) != nil {
			return peekClosed
		}
		return got
	}
}
