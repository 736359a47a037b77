package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"sync/atomic"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
)

// Connection is MCPProxy's own connection to a server after the handshake and the list of
// tools. Server.SendWhenReady gives it to its callers.
type Connection struct {
	link            transport.Link
	handshakeResult *HandshakeResult
	leaving         atomic.Bool  // it is about to be closed: no new requests
	watched         atomic.Bool  // a subscription to changes is open (modern servers)
	watching        atomic.Int64 // subscriptions in flight
	tools           atomic.Pointer[toolLists]
	listedChange    atomic.Uint64 // the last announced change that the list includes
}

// toolLists are the tools that a server lists now.
type toolLists struct {
	own []*tool.Definition          // listed to MCPProxy
	all map[string]*tool.Definition // listed to MCPProxy or only to clients, by name
}

// newToolLists returns the tools of a list; the first own ones are listed to MCPProxy.
func newToolLists(list []*tool.Definition, own int) *toolLists {
	t := &toolLists{own: list[:own], all: make(map[string]*tool.Definition, len(list))}
	for _, d := range list {
		t.all[d.ID.Tool] = d
	}
	return t
}

// Do sends a request. It does not check a tools/call: see Server.SendWhenReady.
func (c *Connection) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.Listen {
		c.watching.Add(1)
		defer c.watching.Add(-1)
	}
	return c.link.Do(ctx, r)
}

// Notify sends a notification.
func (c *Connection) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.link.NotifyServer(ctx, method, params)
}

// AnswerQuestion answers a question of the server.
func (c *Connection) AnswerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	return c.link.AnswerServerQuestion(ctx, id, r)
}

// Cause returns why the connection has ended, or nil while it is open.
func (c *Connection) Cause() error { return c.link.Cause() }

// HandshakeResult returns the server's answer in the handshake.
func (c *Connection) HandshakeResult() *HandshakeResult { return c.handshakeResult }

// IsModern reports whether the server speaks the modern protocol.
func (c *Connection) IsModern() bool { return c.handshakeResult.Version == mcp.Modern }

// HasSameTools reports whether the server lists the same tools as on o.
func (c *Connection) HasSameTools(o *Connection) bool {
	return maps.EqualFunc(c.tools.Load().all, o.tools.Load().all, func(a, b *tool.Definition) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// isUsable reports whether requests may be sent on it. A nil connection is not usable.
func (c *Connection) isUsable() bool { return c != nil && !c.leaving.Load() && c.link.Cause() == nil }

// receivesNotifications reports whether the server's notifications are received now.
func (c *Connection) receivesNotifications() bool {
	return c.watched.Load() || c.link.Health().Listening
}

// isBusy reports whether the server works on a request.
func (c *Connection) isBusy() bool { return int64(c.link.Health().InFlight) > c.watching.Load() }

// toolMatchesDecision reports whether the definition of the called tool is the one that the policy decision was based
// on.
func (c *Connection) toolMatchesDecision(r *session.Request) bool {
	judged := r.Permit.ListedDefinition()
	if judged == nil { // the definition does not matter
		return true
	}
	d, ok := c.tools.Load().all[r.Permit.ToolName()]
	return ok && bytes.Equal(d.Raw, judged)
}

// listsOnlyToClients reports whether the server lists a tool only to clients.
func (c *Connection) listsOnlyToClients(name string) bool {
	d, ok := c.tools.Load().all[name]
	return ok && d.ForClients
}

// listsToolToProxy reports whether the server lists a tool to MCPProxy.
func (c *Connection) listsToolToProxy(name string) bool {
	d, ok := c.tools.Load().all[name]
	return ok && !d.ForClients
}
