package transport

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// Link is one connection, from its start to its end. The errors of Do are ctx's,
// a session.NotSentError, and others: then nobody knows whether the server acted
// on the request.
//
// A request without an ID is our own: it gets one, and in the modern revision it
// says who asks. A tools/call is not checked here: see upstream.
type Link interface {
	session.Doer
	// Notify, Respond and Listen are those of a session.Session.
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Respond(ctx context.Context, id json.RawMessage, r session.Reply) error
	Listen(ctx context.Context, say func(session.Event), opened func()) error
	// Done is closed when the connection has ended; Cause then says why.
	Done() <-chan struct{}
	Cause() error
	// Agree tells the revision that the handshake has settled, Settled that the
	// connection is made: a start has come to its end.
	Agree(version string)
	Settled()
	// Attend begins to listen to what the server says by itself, after the
	// handshake, so that no change of what is listed then goes unheard.
	Attend(ctx context.Context)
	Health() Health
	// HasID reports whether the server has given the session an id, so that a
	// client that speaks to it directly has a session, too.
	HasID() bool
	// Tidy frees what has been unused for long.
	Tidy(now time.Time)
	// Stop ends the connection and waits for everything that belongs to it. The
	// end of hard cuts the grace short.
	Stop(hard <-chan struct{})
}

// Health is what a supervisor looks at.
type Health struct {
	Heard     uint64 // messages of the server
	InFlight  int    // requests that it has not answered
	Listening bool   // what it says by itself is heard now
	PID       int    // 0 without a process
}

// Reports is told what a server says by itself. Its methods return at once.
type Reports interface {
	ToolsChanged()
	// OffersChanged says the same of prompts and resources.
	OffersChanged()
	// Heard gets what is about no request, and reports whether there is anybody
	// whom it may concern.
	Heard(method string, params json.RawMessage) bool
	// Missed says that the server may have said something that was lost.
	Missed()
	// Doubt says that the connection looks broken and should be tried.
	Doubt()
	// Remark gets what is worth a line in the server's log.
	Remark(text string)
	// Odd gets what the server does otherwise than the protocol asks.
	Odd(what string)
}

// Options are the surroundings of a link.
type Options struct {
	IDs     *atomic.Uint64 // of requests: unique over all connections
	Reports Reports
	Budget  *Budget
	Version string // of MCPProxy, as servers are told
	// Own: it is one client's own. Nothing is said or answered in its place, its
	// progress tokens mean nobody else, and what belongs to no request waits for
	// its Listen.
	Own bool
}

// changed tells up that something that it lists has changed, if method says so.
func changed(up Reports, method string) bool {
	switch method {
	case mcp.ToolsChanged:
		up.ToolsChanged()
	case mcp.PromptsChanged, mcp.ResourcesChanged:
		up.OffersChanged()
	default:
		return false
	}
	return true
}

// Bounds on what waits inside a link.
const (
	maxNotes      = 1024    // events waiting for one request
	maxNoteBytes  = 4 << 20 // and their size
	maxKept       = 256     // events waiting for a client that does not listen
	maxKeptBytes  = 1 << 20
	maxTold       = 1024 // messages waiting to be told
	maxPooledBuf  = 64 << 10
	maxErrorBody  = 64 << 10
	maxRemarkText = 2 << 10
)

// tellTime is how long the server may take to hear of something.
const tellTime = 5 * time.Second

// keepFrom is the size from which a message is taken with its buffer.
const keepFrom = 32 << 10

// buffers are those that messages are made in.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

func putBuffer(b *[]byte) {
	if cap(*b) <= maxPooledBuf {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// noCapability is the answer to a question that nobody is there for.
var noCapability = &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "this client has not declared that capability"}

// CannotAsk is the answer to a question whose client has no stream open.
var CannotAsk = &wirejson.RPCError{Code: wirejson.CodeInternal, Message: "the client cannot be asked: it has no stream open"}

// refuse returns the answer to a question that cannot be asked: ping is answered
// all the same.
func refuse(m *wirejson.Message, why *wirejson.RPCError) []byte {
	if m.Method == mcp.Ping {
		return wirejson.AppendResult(nil, m.ID, json.RawMessage("{}"))
	}
	return wirejson.AppendError(nil, m.ID, why)
}
