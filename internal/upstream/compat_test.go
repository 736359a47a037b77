package upstream

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/session"
)

// Call is one tools/call.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	Listed    json.RawMessage
	Check     func() error
	Meta      json.RawMessage
	Notify    func(method string, params json.RawMessage)
	Passed    *Passed
}

// Passed is the request that a Call is made by, when it is passed on as it is.
type Passed struct {
	Request
	Conversation *Conversation
}

// Call calls one tool of one server.
func (s *Set) Call(ctx context.Context, server string, call Call) (session.Reply, error) {
	var (
		r session.Request
		c *Conversation
	)
	if call.Passed != nil {
		r, c = call.Passed.Request, call.Passed.Conversation
	} else {
		r.Call = &session.Call{Tool: call.Tool, Arguments: call.Arguments, Meta: call.Meta}
		if notify := call.Notify; notify != nil {
			r.Say = func(e session.Event) { notify(e.Method, e.Params) }
		}
	}
	if call.Check == nil {
		call.Check = func() error { return nil }
	}
	r.Method, r.Judged = mcp.CallTool, session.Judge(call.Tool, call.Listed, call.Check)
	return s.call(ctx, server, c, &r)
}

// Relay passes on a request of a client that is anything but a call of a tool.
func (s *Set) Relay(ctx context.Context, server string, c *Conversation, r Request) (session.Reply, error) {
	if r.Method == mcp.CallTool {
		return session.Reply{}, pastTheDoor()
	}
	return s.relay(ctx, server, c, &r)
}

// Converse opens a conversation with initialize, the client's own.
func (s *Set) Converse(ctx context.Context, server string, initialize Request) (*Conversation, session.Reply, error) {
	return s.converse(ctx, server, &initialize)
}
