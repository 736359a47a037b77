package upstream

import "mcpproxy/internal/mcp/session"

// Short names for the many requests and replies of these tests.
type (
	Event   = session.Event
	Request = session.Request
	Answer  = session.Reply
	Reply   = session.Reply
)
