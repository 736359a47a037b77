package session

import (
	"bytes"
	"context"
	"encoding/json"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// Doer answers requests that need no session.
type Doer interface {
	// Do sends one request and returns its reply. It returns the error of ctx, a *problem.Problem, or an
	// error of this package.
	Do(ctx context.Context, r *Request) (Reply, error)
}

// Session is the state of one legacy client. A lost session is not restored: the client opens another one.
type Session interface {
	Doer
	// NotifyServer forwards a notification of the client.
	NotifyServer(ctx context.Context, method string, params json.RawMessage) error
	// AnswerServerQuestion forwards the client's answer to a question of the server.
	AnswerServerQuestion(ctx context.Context, id json.RawMessage, r Reply) error
	// Listen passes events that belong to no request to say until ctx ends or the other side ends the stream. opened is
	// called when the other side has accepted. say must not block. A second concurrent listener is rejected.
	Listen(ctx context.Context, say func(Event), opened func()) error
	// Close ends the session. It does not block.
	Close()
	// Done is closed when the session has ended, for any reason.
	Done() <-chan struct{}
}

// Endpoint is an MCP endpoint: one server, or all servers. Its own Do answers modern requests.
type Endpoint interface {
	Doer
	// OpenSession opens a session with the client's initialize. If it is rejected, the Session is nil and the reply
	// contains the reason.
	OpenSession(ctx context.Context, initialize *Request) (Session, Reply, error)
}

// Request is one request that is being forwarded. It passes each layer at most once.
type Request struct {
	ID     json.RawMessage // the client's ID
	Method string
	Params json.RawMessage
	// Call is a tools/call that MCPProxy composes. If it is set, Params is nil. The connection chooses the ID and the
	// progress token.
	Call *ToolCall
	// Headers are the client's headers that repeat parts of the body. It is nil if the connection writes these headers
	// itself.
	Headers []mcp.Header
	Caller  *auth.Caller
	// Owner identifies one of the clients that share a connection, by its address; otherwise nil.
	Owner *ClientRef
	Size  int // of the body that contained the request
	// Endless requests wait for events and have no time limit.
	Endless bool
	// WithoutTasks is set in an initialize whose session is never used for tasks.
	WithoutTasks bool
	// Forms reports that the request is modern, and that its client can show forms that the reply requests.
	Forms bool
	// Apps reports that the client shows MCP Apps. See mcp.SupportsApps.
	Apps bool
	// Meta is the split _meta of Params, or nil if Params is not parsed.
	Meta *mcp.RequestMeta
	// Permit is required for a tools/call.
	Permit ToolCallPermit
	// Say receives the events before the reply. It is nil if the client cannot receive any.
	Say func(Event)
	// Asker sends MCPProxy's own forms to the client of a session while the request runs. It is nil if the client does
	// not support forms. See mcp.SupportsElicitationForms.
	Asker Asker
	// Head receives the reply's headers for the client. It is nil if they are not needed.
	Head func([]mcp.Header)
}

// Asker sends MCPProxy's own questions to a client on the stream of a request.
type Asker interface {
	// Ask sends a question to the client and returns the channel for the answer. The caller must call done before the
	// request ends. done withdraws an unanswered question.
	Ask(method string, params json.RawMessage) (answer <-chan Reply, done func())
}

// ClientRef identifies one of the clients that share a connection.
type ClientRef struct{ _ byte }

// ToolCall is a tool call in parts, each forwarded as these bytes.
type ToolCall struct {
	Tool      string
	Arguments json.RawMessage // an object; nil if omitted
	Meta      json.RawMessage // an object; nil if omitted
}

// Event is a message of a server that is not a reply: a notification, or a question, which has an ID.
type Event struct {
	Method string
	ID     json.RawMessage // nil in a notification
	Params json.RawMessage
}

// Clone returns a deep copy.
func (e *Event) Clone() Event { return Event{e.Method, bytes.Clone(e.ID), bytes.Clone(e.Params)} }

// AppendMessage appends the message to dst.
func (e *Event) AppendMessage(dst []byte) []byte {
	if e.ID == nil {
		return wirejson.AppendNotification(dst, e.Method, e.Params)
	}
	return wirejson.AppendRequestWithID(dst, e.ID, e.Method, e.Params)
}

// Reply is the answer to a request: the bytes of a result, or a JSON-RPC error.
type Reply struct {
	Result json.RawMessage
	Error  *wirejson.RPCError
	// Front replaces the opening brace of Result, and Back follows Result, so that a large result becomes
	// part of another one without a copy. Front is nil if nothing is added.
	Front, Back []byte

	Status int // HTTP status for the client; 0 means the default
}
