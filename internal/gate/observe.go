package gate

import (
	"bytes"
	"encoding/json"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// Observer is told how calls go, to count and to trace them. It waits for nothing and
// keeps nothing of a call's arguments or answer.
type Observer interface {
	// Follow begins to follow a call that began at a time. parent and state are the
	// trace context of its client, "" where there is none. nil: nothing is followed.
	Follow(began time.Time, parent, state string) Trace
	// Ended is told how a call went. t is what Follow returned, nil for a call that was
	// refused before anybody followed it.
	Ended(o CallStats, t Trace)
}

// Trace is a call that is followed.
type Trace interface {
	// Asking is called when the server is about to be asked. It returns the trace
	// parent that the server gets.
	Asking() (parent string)
	// Answered is called when the server has answered, or nobody waits any longer.
	Answered()
}

// CallStats is how a call went.
type CallStats struct {
	// Server and Tool are "" where the catalog has none of that name: what was asked
	// for in their place is a client's text.
	Server, Tool string
	Operation    string // of the lane; "" where none is known
	Status       activity.Status
	Code         string // of a refusal or a failure
	Record       string // its id; "" when there is none
	Took, Own    time.Duration
}

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
