//go:build !linux

package httpserver

import "net"

// stopListening is not supported on this system.
func stopListening(net.Listener) bool { return false }

// hasPending is not supported on this system.
func hasPending(net.Listener) bool { return false }
