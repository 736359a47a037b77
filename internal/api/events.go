package api

import "mcpproxy/internal/ops"

// StreamEvents is GET /events.
var StreamEvents = declareOperation("GET /events", "streamEvents", Look, "What happens, as server-sent events that can be resumed", (*ops.EventHub).Events).
	withContentType("text/event-stream").withTimeout(0)
