package compat

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

// Call is one permitted tools/call.
type Call struct {
	Tool      string
	Arguments json.RawMessage
	Listed    json.RawMessage
	Check     func() error // nil allows the call
	Notify    func(method string, params json.RawMessage)
	Passed    *Passed
}

// Passed is the client's request if a Call forwards it unchanged.
type Passed struct {
	Request
	Session *Session
}

// to returns the client's session, or the server's endpoint if the client has no session.
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

// Relay forwards a request of a client that is not a tool call.
func (s *ServerSet) Relay(ctx context.Context, server string, c *Session, r Request) (session.Reply, error) {
	return s.to(server, c).Do(ctx, &r)
}

// Converse opens a session with the client's initialize request.
func (s *ServerSet) Converse(ctx context.Context, server string, initialize Request) (*Session, session.Reply, error) {
	opened, reply, err := s.ServerEndpoint(server).OpenSession(ctx, &initialize)
	c, _ := opened.(*Session)
	return c, reply, err
}
