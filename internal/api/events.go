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
var StreamEvents = declareOperation("GET /events", "streamEvents", Look, "Stream events, as resumable server-sent events", eventSource.Events).
	withContentType("text/event-stream").withTimeout(0)
