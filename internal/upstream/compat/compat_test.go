package compat

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

// Call is one tools/call, that was decided about.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	Listed    json.RawMessage
	Check     func() error // nil: it agrees
	Notify    func(method string, params json.RawMessage)
	Passed    *Passed
}

// Passed is the request that a Call is made by, when it is passed on as it is.
type Passed struct {
	Request
	Session *Session
}

// to returns what a client speaks to: its session, if it has one.
func (s *ServerSet) to(server string, c *Session) session.Doer {
	if c == nil {
		return s.ServerEndpoint(server)
	}
	return c
}

// Call calls one tool of one server.
func (s *ServerSet) Call(ctx context.Context, server string, call Call) (session.Reply, error) {
	var (
		r session.Request
		c *Session
	)
	if call.Passed != nil {
		r, c = call.Passed.Request, call.Passed.Session
	} else {
		r.Call = &session.ToolCall{Tool: call.Tool, Arguments: call.Arguments}
		if notify := call.Notify; notify != nil {
			r.Say = func(e session.Event) { notify(e.Method, e.Params) }
		}
	}
	if call.Check == nil {
		call.Check = func() error { return nil }
	}
	r.Method, r.Permit = mcp.CallTool, session.NewToolCallPermit(call.Tool, call.Listed, call.Check)
	return s.to(server, c).Do(ctx, &r)
}

// Relay passes on a request of a client that is anything but a call of a tool.
func (s *ServerSet) Relay(ctx context.Context, server string, c *Session, r Request) (session.Reply, error) {
	return s.to(server, c).Do(ctx, &r)
}

// Converse opens a session with initialize, the client's own.
func (s *ServerSet) Converse(ctx context.Context, server string, initialize Request) (*Session, session.Reply, error) {
	opened, reply, err := s.ServerEndpoint(server).OpenSession(ctx, &initialize)
	c, _ := opened.(*Session)
	return c, reply, err
}
