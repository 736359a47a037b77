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

// Link is one connection from its start to its end. Do returns the error of ctx, a session.NotSentError, or another
// error. After another error, the request may have been executed.
//
// A request without an ID is MCPProxy's own request. It gets an ID, and in the modern protocol MCPProxy's identity.
// Permits of tools/call are not checked in this package but in upstream.
type Link interface {
	session.Doer
	// NotifyServer, AnswerServerQuestion and Listen do the same as in session.Session.
	NotifyServer(ctx context.Context, method string, params json.RawMessage) error
	AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error
	Listen(ctx context.Context, say func(session.Event), opened func()) error
	// Done returns a channel that is closed when the connection has ended. Then Cause returns the reason.
	Done() <-chan struct{}
	Cause() error
	// SetVersion sets the protocol version after the handshake. MarkStartComplete reports that the start is complete.
	SetVersion(version string)
	MarkStartComplete()
	// OpenNotificationStream opens the notification stream after the handshake, so that no later list change is missed.
	OpenNotificationStream(ctx context.Context)
	Health() LinkHealth
	// HasSessionID reports whether the server has assigned a session ID.
	HasSessionID() bool
	// CloseIdle closes connections that have been idle for too long.
	CloseIdle(now time.Time)
	// Stop ends the connection and waits for its goroutines and process. When hard is closed, it no longer waits for
	// the grace period.
	Stop(hard <-chan struct{})
}

// LinkHealth is the state that a supervisor checks.
type LinkHealth struct {
	Received  uint64 // number of received messages
	InFlight  int    // number of open requests
	Listening bool   // the notification stream is open
	PID       int    // 0 if there is no process
}

// Reporter receives the notifications and problems of a server. Its methods do not block.
type Reporter interface {
	ToolsChanged()
	// PrimitivesChanged reports a change of prompts or resources.
	PrimitivesChanged()
	// Notification reports a notification that belongs to no request, and returns whether any client may want it.
	Notification(method string, params json.RawMessage) bool
	// NotificationsMissed reports that notifications may have been lost.
	NotificationsMissed()
	// QuestionAsked reports that the server has sent a question on a shared connection, other than the first for roots that
	// is not about a request.
	QuestionAsked(method string)
	// QuestionRefused reports that no client got such a question.
	QuestionRefused()
	// ConnectionDoubtful reports that the connection looks broken and should be checked.
	ConnectionDoubtful()
	// Log writes a line to the server's log.
	Log(text string)
	// ProtocolViolation reports a violation of the protocol.
	ProtocolViolation(what string)
}

// LinkOptions configure a link.
type LinkOptions struct {
	IDs     *atomic.Uint64 // request IDs, unique over all connections
	Reports Reporter
	Budget  *MemoryBudget
	Version string // MCPProxy's version, as servers see it
	// Own reports that the connection belongs to one client. MCPProxy answers nothing itself, progress tokens are
	// forwarded unchanged, and events that belong to no request wait for Listen.
	Own bool
	// Apps reports whether MCPProxy declares MCP Apps in its own modern requests.
	Apps *atomic.Bool
	// Asks reports that the server may send questions to the clients that share the connection; see questions.go.
	Asks bool
}

// reportListChange reports a list change and returns whether method is one.
func reportListChange(up Reporter, method string) bool {
	switch method {
	case mcp.ToolsChanged:
		up.ToolsChanged()
	case mcp.PromptsChanged, mcp.ResourcesChanged:
		up.PrimitivesChanged()
	default:
		return false
	}
	return true
}

// Limits of the queues of a link.
const (
	maxEvents     = 1024    // events waiting for one request
	maxEventBytes = 4 << 20 // total size of these events
	maxKept       = 256     // events waiting for a client that does not listen
	maxKeptBytes  = 1 << 20
	maxOutbox     = 1024 // messages waiting to be sent
	maxPooledBuf  = 64 << 10
	maxErrorBody  = 64 << 10
	maxLogText    = 2 << 10
)

// tellTime is the time limit for sending a background message.
const tellTime = 5 * time.Second

// keepFrom is the size from which on a message takes over its buffer, in bytes.
const keepFrom = 32 << 10

// encodeBuffers pools the buffers for encoding messages.
var encodeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

func putEncodeBuffer(b *[]byte) {
	if cap(*b) <= maxPooledBuf {
		*b = (*b)[:0]
		encodeBuffers.Put(b)
	}
}

// NoCapability is the answer to a server's question that no client can answer.
var NoCapability = &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "this client has not declared that capability"}

// CannotAsk is the answer to a question whose client has no open stream.
var CannotAsk = &wirejson.RPCError{Code: wirejson.CodeInternal, Message: "the client cannot be asked: it has no stream open"}

// newQuestionRefusal returns the encoded answer to a question that cannot be forwarded. A ping is answered normally.
func newQuestionRefusal(m *wirejson.Message, why *wirejson.RPCError) []byte {
	if m.Method == mcp.Ping {
		return wirejson.AppendResult(nil, m.ID, json.RawMessage("{}"))
	}
	return wirejson.AppendError(nil, m.ID, why)
}
