package api

import (
	"context"

	"mcpproxy/internal/gateway"
)

// eventSource is the home of what tells what happens, while it happens.
type eventSource interface {
	Events(context.Context, gateway.Caller, gateway.EventQuery) (gateway.Stream, error)
}

// StreamEvents is GET /events.
var StreamEvents = declare("GET /events", "streamEvents", Look, "What happens, as server-sent events that can be resumed", eventSource.Events).
	as("text/event-stream").within(0)
