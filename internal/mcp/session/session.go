package session

import (
	"bytes"
	"context"
	"encoding/json"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// Doer answers requests that stand for themselves.
type Doer interface {
	// Do sends one request and returns its reply. Its errors are ctx's, a
	// *problem.Problem, or one of the errors of this package.
	Do(ctx context.Context, r *Request) (Reply, error)
}

// Session is the state of one legacy client. It is not made anew when it is
// lost: then it has ended, and the client begins another one.
type Session interface {
	Doer
	// Notify passes on a notification of the client.
	Notify(ctx context.Context, method string, params json.RawMessage) error
	// Respond passes on the client's answer to a question of the server.
	Respond(ctx context.Context, id json.RawMessage, r Reply) error
	// Listen hands on what belongs to no request, until ctx or the other side
	// ends it. opened is called once the other side has agreed. say must not
	// block. There is one listener at a time: a second one is refused.
	Listen(ctx context.Context, say func(Event), opened func()) error
	// Close ends the session. It returns at once.
	Close()
	// Done is closed when the session has ended, for whatever reason.
	Done() <-chan struct{}
}

// Surface is what a path stands for. Its own Do answers modern requests.
type Surface interface {
	Doer
	// Open opens a session with the client's initialize. When that is refused
	// the Session is nil and the reply says why.
	Open(ctx context.Context, initialize *Request) (Session, Reply, error)
}

// Request is one request on its way, at most once through each layer.
type Request struct {
	ID     json.RawMessage // the client's
	Method string
	Params json.RawMessage
	// Call is a tools/call of our own, in parts: then Params is nil. It goes out
	// with an id and a progress token of the connection's.
	Call *Call
	// Fields are the client's header lines that repeat what the body says; nil
	// where the connection writes them itself, if its revision has them.
	Fields []mcp.Field
	Caller *auth.Caller
	// Owner tells the clients apart that share a connection, by its address; nil
	// elsewhere.
	Owner *Owner
	Size  int // bytes of the body it came in
	// Endless: it waits for what happens, so it has no time limit.
	Endless bool
	// Forms: it stands for itself, and its client shows forms that the answer asks for.
	Forms bool
	// Meta is the _meta of Params, split; nil where nobody has looked at it.
	Meta *mcp.Meta
	// Judged has to be there for a tools/call: see Judge.
	Permit Permit
	// Say gets what the server says before its answer; nil: nobody can be told.
	Say func(Event)
	// Asker has the client of a session shown a form of our own while the request
	// runs; nil: it takes none, or cannot be told anything. See mcp.TakesForms.
	Asker Asker
	// Head gets the header lines of the answer that are for the client; nil:
	// nobody wants them.
	Head func([]mcp.Field)
}

// Asker has a client asked something of our own on the stream of a request.
type Asker interface {
	// Ask asks it, and returns where its answer comes. done is called before the request
	// ends, by whoever has asked: it takes the question back where there is no answer.
	Ask(method string, params json.RawMessage) (answer <-chan Reply, done func())
}

// Owner is one of the clients that share a connection.
type Owner struct{ _ byte }

// Call is a call of a tool in parts. All are forwarded as these bytes.
type Call struct {
	Tool      string
	Arguments json.RawMessage // an object; nil leaves the member out
	Meta      json.RawMessage // an object; nil leaves the member out
}

// Event is what a server says besides answers: a notification, or a question,
// which has an ID.
type Event struct {
	Method string
	ID     json.RawMessage // nil in a notification
	Params json.RawMessage
}

// Clone returns a copy that stays valid.
func (e *Event) Clone() Event { return Event{e.Method, bytes.Clone(e.ID), bytes.Clone(e.Params)} }

// Append appends the message to dst.
func (e *Event) Append(dst []byte) []byte {
	if e.ID == nil {
		return wirejson.AppendNotification(dst, e.Method, e.Params)
	}
	return wirejson.AppendRequestAs(dst, e.ID, e.Method, e.Params)
}

// Reply is an answer: a result as its bytes, or a JSON-RPC error.
type Reply struct {
	Result json.RawMessage
	Error  *wirejson.RPCError
	// Front stands in the place of Result's opening brace, and Back follows it,
	// so that a large result becomes part of another one without a copy of it;
	// Front is nil where nothing is added.
	Front, Back []byte

	Status int // of HTTP; 0: none that is for the client
}
