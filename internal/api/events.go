package api

import "mcpproxy/internal/ops"

// StreamEvents streams server-sent events.
var StreamEvents = declareOperation("GET /events", "streamEvents", Look, "Stream events, as resumable server-sent events", (*ops.EventHub).Events).
	withContentType("text/event-stream").withTimeout(0)
