//go:build !linux

package httpserver

import "net"

// stopListening is not supported on this system.
func stopListening(net.Listener) bool { return false }

// hasPendingConn is not supported on this system.
func hasPendingConn(net.Listener) bool { return false }
