package gate

import (
	"bytes"
	"encoding/json"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// The names of a trace context in _meta.
const (
	metaTraceParent = "traceparent"
	metaTraceState  = "tracestate"
)

// follow has the call followed from its beginning.
func (c *call) follow() {
	if c.gate.Observer == nil {
		return
	}
	var parent, state string
	if meta := c.meta(); bytes.Contains(meta, []byte("trace")) {
		parent, _ = wirejson.String(wirejson.Find(meta, metaTraceParent))
		state, _ = wirejson.String(wirejson.Find(meta, metaTraceState))
	}
	c.trace = c.gate.Observer.Follow(c.started, parent, state)
}

// meta returns the _meta of the call as its client sent it.
func (c *call) meta() json.RawMessage {
	if c.request.Call != nil {
		return c.parts.Meta
	}
	if meta := wirejson.Find(c.request.Params, "_meta"); wirejson.Kind(meta) == '{' {
		return meta
	}
	return nil
}

// asking puts the trace parent of a call that is followed where the server reads it.
func (c *call) asking() {
	parent := c.trace.Asking()
	if parent == "" {
		return
	}
	value := wirejson.AppendString(nil, parent)
	if c.request.Call != nil {
		c.parts.Meta = wirejson.SetMember(c.parts.Meta, metaTraceParent, value)
		return
	}
	c.request.Params = wirejson.SetMember(c.request.Params, "_meta", wirejson.SetMember(c.meta(), metaTraceParent, value))
	if c.request.Meta != nil {
		split := *c.request.Meta
		split.Rest = wirejson.SetMember(split.Rest, metaTraceParent, value)
		c.request.Meta = &split
	}
}

// observed tells how a call went.
func (c *call) observed(status activity.Status, code string, took, own time.Duration) {
	d := c.gate
	if d.Observer == nil {
		return
	}
	o := CallStats{Operation: c.policyRequest.Variant.Operation().String(), Status: status, Code: code, Record: c.id, Took: took, Own: own}
	if c.tool != nil {
		o.Server, o.Tool = c.tool.ID.Server, c.tool.ID.Tool
	} else {
		o.Server = d.known(c.policyRequest.ID.Server)
	}
	d.Observer.Ended(o, c.trace)
}

// known returns the name of a server; "" when there is none of that name.
func (g *Gate) known(server string) string {
	if g.Catalog.Current().Server(server) == nil {
		return ""
	}
	return server
}
