package api

import (
	"context"

	"mcpproxy/internal/ops"
)

// eventSource implements the event stream. ops.EventHub does.
type eventSource interface {
	Events(context.Context, ops.Caller, ops.EventQuery) (ops.StreamFunc, error)
}

// StreamEvents is GET /events.
var StreamEvents = declareOperation("GET /events", "streamEvents", Look, "What happens, as server-sent events that can be resumed", eventSource.Events).
	withContentType("text/event-stream").withTimeout(0)
