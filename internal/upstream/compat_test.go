package upstream

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
	Meta      json.RawMessage
	Notify    func(method string, params json.RawMessage)
}

// Call calls one tool of one server.
func (s *Set) Call(ctx context.Context, server string, call Call) (session.Reply, error) {
	if call.Check == nil {
		call.Check = func() error { return nil }
	}
	r := session.Request{Method: mcp.CallTool, Permit: session.NewToolCallPermit(call.Tool, call.Listed, call.Check),
		Call: &session.ToolCall{Tool: call.Tool, Arguments: call.Arguments, Meta: call.Meta}}
	if notify := call.Notify; notify != nil {
		r.Say = func(e session.Event) { notify(e.Method, e.Params) }
	}
	sv, err := s.ServerForRequest(ctx, server)
	if err != nil {
		return session.Reply{}, err
	}
	sv.BeginUse(&r)
	defer sv.EndUse(&r)
	return sv.SendWhenReady(ctx, &r, func(c *Connection) (session.Reply, error) { return c.Do(ctx, &r) })
}
