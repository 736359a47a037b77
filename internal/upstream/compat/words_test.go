package compat

import (
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/upstream"
)

// Short names for types that these tests use often.
type (
	Event   = session.Event
	Request = session.Request
	Answer  = session.Reply
	Reply   = session.Reply
	Spec    = upstream.Spec
	State   = upstream.State
	Options = upstream.Options
)

const (
	Stdio  = upstream.Stdio
	HTTP   = upstream.HTTP
	Ready  = upstream.Ready
	Idle   = upstream.Idle
	Failed = upstream.Failed
)
