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

// Connection is the connection that MCPProxy has with a server, on which the
// handshake is done and the tools are listed. Clients get it from Server.Try.
type Connection struct {
	link     transport.Link
	greeting *Greeting
	leaving  atomic.Bool  // it is going to be ended: nothing new goes there
	watched  atomic.Bool  // of a modern server: what it says of changes is heard
	watching atomic.Int64 // requests in flight that only listen
	tools    atomic.Pointer[tools]
	upTo     atomic.Uint64 // the last announced change that is on that list
}

// tools are what a server lists now.
type tools struct {
	own []*tool.Definition          // to us
	all map[string]*tool.Definition // to us, or to its clients alone, by name
}

// newTools are those of a list, of which the first ones are listed to us.
func newTools(list []*tool.Definition, own int) *tools {
	t := &tools{own: list[:own], all: make(map[string]*tool.Definition, len(list))}
	for _, d := range list {
		t.all[d.ID.Tool] = d
	}
	return t
}

// Do sends a request. A tools/call is not checked here: see Server.Try.
func (c *Connection) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.Listen {
		c.watching.Add(1)
		defer c.watching.Add(-1)
	}
	return c.link.Do(ctx, r)
}

// Notify sends a notification.
func (c *Connection) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.link.Notify(ctx, method, params)
}

// Cause returns why the connection has ended, nil while it has not.
func (c *Connection) Cause() error { return c.link.Cause() }

// Greeting returns what the server said in the handshake.
func (c *Connection) Greeting() *Greeting { return c.greeting }

// Modern reports whether each request stands for itself.
func (c *Connection) Modern() bool { return c.greeting.Version == mcp.Modern }

// SameTools reports whether the server lists the same tools as on o.
func (c *Connection) SameTools(o *Connection) bool {
	return maps.EqualFunc(c.tools.Load().all, o.tools.Load().all, func(a, b *tool.Definition) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// usable reports whether calls may go there. A nil connection is not usable.
func (c *Connection) usable() bool { return c != nil && !c.leaving.Load() && c.link.Cause() == nil }

// attended reports whether what the server says by itself is heard now.
func (c *Connection) attended() bool { return c.watched.Load() || c.link.Health().Listening }

// busy reports whether the server works on something.
func (c *Connection) busy() bool { return int64(c.link.Health().InFlight) > c.watching.Load() }

// stillLists reports whether the tool of a call is what the caller has judged.
func (c *Connection) stillLists(r *session.Request) bool {
	judged := r.Permit.Listed()
	if judged == nil { // that does not matter
		return true
	}
	d, ok := c.tools.Load().all[r.Permit.Tool()]
	return ok && bytes.Equal(d.Raw, judged)
}

// forOthers reports whether the server has a tool for others and not for us.
func (c *Connection) forOthers(name string) bool {
	d, ok := c.tools.Load().all[name]
	return ok && d.ForClients
}

// lists reports whether the server has listed a tool to us.
func (c *Connection) lists(name string) bool {
	d, ok := c.tools.Load().all[name]
	return ok && !d.ForClients
}
