//go:build unix

package transport

import (
	"net"
	"syscall"
)

// canPeek reports whether newPeekFunc works.
const canPeek = true

// newPeekFunc returns a function that checks for data on nc without reading it and without blocking.
func newPeekFunc(nc net.Conn) func() peekState {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return peekUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return peekUnsupported
	}
	var (
		got peekState
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
	return func() peekState {
		if raw.Read(look) != nil {
			return peekClosed
		}
		return got
	}
}
