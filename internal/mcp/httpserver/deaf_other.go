//go:build !linux

package httpserver

import "net"

// stopListening would have the system drop what asks l for a connection.
func stopListening(net.Listener) bool { return false }

// someoneWaits would report whether somebody has connected to l whom nobody has accepted.
func someoneWaits(net.Listener) bool { return false }
