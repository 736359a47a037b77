package gate

import (
	"bytes"
	"encoding/json"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// CallObserver is notified of calls, for metrics and traces. It must not block, and must not keep arguments or
// results.
type CallObserver interface {
	// StartTrace begins to trace a call. parent and state are the trace context of the client, "" if there is none. A
	// nil CallTrace means that the call is not traced.
	StartTrace(began time.Time, parent, state string) CallTrace
	// CallEnded is called when a call has ended. t is the result of StartTrace; nil for a call that was refused
	// before it was traced.
	CallEnded(o CallStats, t CallTrace)
}

// CallTrace is the trace of one call.
type CallTrace interface {
	// BeforeSend is called before the call is sent to the server. It returns the trace parent for the
	// server.
	BeforeSend() (parent string)
	// AfterAnswer is called when the server has answered, or the wait has ended.
	AfterAnswer()
}

// CallStats describes a call that has ended.
type CallStats struct {
	// Server and Tool are "" if the catalog contains none of that name, because the requested name is arbitrary text
	// from a client.
	Server, Tool  string
	Operation     string // lane of the call; "" if unknown
	Status        activity.Status
	Code          string // code of a refusal or a failure
	Record        string // ID of the record; "" if there is none
	Duration, Own time.Duration
}

// The names of a trace context in _meta.
const (
	metaTraceParent = "traceparent"
	metaTraceState  = "tracestate"
)

// startTrace begins to trace a call. It returns nil if the call is not traced.
func (g *Gate) startTrace(c *call, began time.Time) CallTrace {
	if g.Observer == nil {
		return nil
	}
	var parent, state string
	if meta := c.clientMeta(); bytes.Contains(meta, []byte("trace")) {
		parent, _ = wirejson.String(wirejson.Find(meta, metaTraceParent))
		state, _ = wirejson.String(wirejson.Find(meta, metaTraceState))
	}
	return g.Observer.StartTrace(began, parent, state)
}

// clientMeta returns the _meta of the call as its client sent it.
func (c *call) clientMeta() json.RawMessage {
	if c.DeclaresIntent {
		return c.meta
	}
	return metaFromParams(c.params)
}

// metaFromParams returns the _meta of params; nil if it is not an object.
func metaFromParams(params json.RawMessage) json.RawMessage {
	if meta := wirejson.Find(params, "_meta"); wirejson.Kind(meta) == '{' {
		return meta
	}
	return nil
}

// setTraceParent sets the trace parent in the _meta of the request to the server.
func (o *outgoingRequest) setTraceParent(parent string) {
	value := wirejson.AppendString(nil, parent)
	if o.Call != nil {
		o.parts.Meta = wirejson.SetMember(o.parts.Meta, metaTraceParent, value)
		return
	}
	o.Params = wirejson.SetMember(o.Params, "_meta", wirejson.SetMember(metaFromParams(o.Params), metaTraceParent, value))
	if o.Meta != nil {
		split := *o.Meta
		split.Rest = wirejson.SetMember(split.Rest, metaTraceParent, value)
		o.Meta = &split
	}
}
