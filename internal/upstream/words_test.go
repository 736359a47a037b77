package upstream

import "mcpproxy/internal/mcp/session"

// Short names for types that these tests use often.
type (
	Event   = session.Event
	Request = session.Request
	Answer  = session.Reply
	Reply   = session.Reply
)
