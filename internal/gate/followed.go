package gate

import (
	"bytes"
	"encoding/json"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// The names of a trace context in _meta.
const (
	metaTraceParent = "traceparent"
	metaTraceState  = "tracestate"
)

// follow begins to trace a call; nil: it is not traced.
func (g *Gate) follow(c *call, began time.Time) Trace {
	if g.Observer == nil {
		return nil
	}
	var parent, state string
	if meta := c.sentMeta(); bytes.Contains(meta, []byte("trace")) {
		parent, _ = wirejson.String(wirejson.Find(meta, metaTraceParent))
		state, _ = wirejson.String(wirejson.Find(meta, metaTraceState))
	}
	return g.Observer.Follow(began, parent, state)
}

// sentMeta returns the _meta of the call as its client sent it.
func (c *call) sentMeta() json.RawMessage {
	if c.Declares {
		return c.meta
	}
	return metaOf(c.params)
}

func metaOf(params json.RawMessage) json.RawMessage {
	if meta := wirejson.Find(params, "_meta"); wirejson.Kind(meta) == '{' {
		return meta
	}
	return nil
}

// setTraceParent puts the parent of a traced call where the server reads it.
func (o *outgoing) setTraceParent(parent string) {
	value := wirejson.AppendString(nil, parent)
	if o.Call != nil {
		o.parts.Meta = wirejson.SetMember(o.parts.Meta, metaTraceParent, value)
		return
	}
	o.Params = wirejson.SetMember(o.Params, "_meta", wirejson.SetMember(metaOf(o.Params), metaTraceParent, value))
	if o.Meta != nil {
		split := *o.Meta
		split.Rest = wirejson.SetMember(split.Rest, metaTraceParent, value)
		o.Meta = &split
	}
}
