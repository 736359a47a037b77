// Package events tells what happens while it happens: GET /events, a stream of
// server-sent events. What is on record follows from the log's chain: each entry is
// an event, and the id of an event is the place of its entry, so that whoever comes
// back with Last-Event-ID reads what it has missed from the log, and then what
// happens. What is no record (the state of a server, a list of tools, the
// configuration) is told as "look again", and to whoever comes back at once.
//
// It guarantees that of what is on record each listener is told everything once, in
// the order of the log, or that it is told to load again (reset); that who appends
// to the log never waits for a listener, and a listener never for another one; that
// an event is encoded once for all who are there; and that what is kept for them is
// bounded. It tells no arguments and no responses, decides nothing, and writes
// nothing on record.
package events

import (
	"context"

	"mcpproxy/internal/gateway"
)

// Servers returns the servers as they are shown.
type Servers interface {
	Servers(context.Context, gateway.Caller, gateway.Nothing) (gateway.ServerList, error)
}
