package gate

import (
	"bytes"
	"encoding/json"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// CallObserver is told how calls go, to count and to trace them. It waits for nothing and
// keeps nothing of a call's arguments or answer.
type CallObserver interface {
	// Follow begins to follow a call that began at a time. parent and state are the
	// trace context of its client, "" where there is none. nil: nothing is followed.
	StartTrace(began time.Time, parent, state string) CallTrace
	// Ended is told how a call went. t is what Follow returned, nil for a call that was
	// refused before anybody followed it.
	CallEnded(o CallStats, t CallTrace)
}

// CallTrace is a call that is followed.
type CallTrace interface {
	// Asking is called when the server is about to be asked. It returns the trace
	// parent that the server gets.
	BeforeSend() (parent string)
	// Answered is called when the server has answered, or nobody waits any longer.
	AfterAnswer()
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

// startTrace begins to trace a call; nil: it is not traced.
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
	if c.Declares {
		return c.meta
	}
	return metaFromParams(c.params)
}

func metaFromParams(params json.RawMessage) json.RawMessage {
	if meta := wirejson.Find(params, "_meta"); wirejson.Kind(meta) == '{' {
		return meta
	}
	return nil
}

// setTraceParent puts the parent of a traced call where the server reads it.
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
