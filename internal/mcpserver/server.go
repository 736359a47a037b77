// Package mcpserver is the MCP surfaces over streamable HTTP, for clients of
// both protocol eras on one URL: the built-in tools on /mcp, all servers at once
// on /mcp/all, and each server by itself, transparently, on
// /mcp/servers/{server} and /mcp/s/{server}.
//
// It guarantees that a request is checked before it is read (host, origin,
// actor, size), that what it hands to the gateway are the bytes of a text that
// was parsed strictly once, that the headers of a request say what its body
// says, that a session belongs to the actor who opened it and cannot be
// guessed, and that a client that does not read its answer holds up nobody
// else. It decides nothing about a call and contacts no upstream: that is the
// gateway's.
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
)

// Gateway is what the surface needs of the product.
type Gateway interface {
	Call(ctx context.Context, r gateway.CallRequest) (gateway.CallResult, error)
	Retrieve(ctx context.Context, r gateway.RetrieveRequest) (json.RawMessage, error)
	ReadResult(ctx context.Context, r gateway.ReadRequest) (json.RawMessage, error)
	Servers(ctx context.Context) []gateway.ServerView
	Server(ctx context.Context, name string) (gateway.ServerView, error)
	RestartServer(ctx context.Context, name string, c gateway.Caller) error
	AddServer(ctx context.Context, s gateway.NewServer, c gateway.Caller) (gateway.ServerView, error)
}

// Deps are what a Server is made of.
type Deps struct {
	Gateway Gateway
	Relay   Relay // of /mcp/servers/…
	All     All   // of /mcp/all
	Config  func() *config.Config
	Auth    *auth.Authenticator
	Logger  *slog.Logger
	Version string
}

// Server answers on /mcp. It starts no goroutine of its own but the writer of
// a streamed answer, which ends with its request.
type Server struct {
	Deps
	texts     texts
	sessions  *sessions
	streams   counter
	closed    chan struct{}
	closeOnce sync.Once
}

// New makes a Server.
func New(d Deps) *Server {
	return &Server{
		Deps:     d,
		texts:    makeTexts(d.Version),
		sessions: newSessions(),
		streams:  counter{max: maxStreams},
		closed:   make(chan struct{}),
	}
}

// Close ends the streams that are held open and all sessions. Calls in flight
// go on; their end is the gateway's and the HTTP server's business. Without
// Close an http.Server cannot shut down while clients hold streams open.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.closed) })
	s.sessions.clear()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchange{s: s, w: w, r: r, cfg: s.Config(), target: targetOf(r.URL.Path)}
	defer x.recover()
	if !x.admit() {
		return
	}
	switch r.Method {
	case http.MethodPost:
		x.post()
	case http.MethodGet:
		x.get()
	case http.MethodDelete:
		x.delete()
	default:
		x.methodNotAllowed()
	}
}

// recover answers for a handler that panicked.
func (x *exchange) recover() {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	x.s.Logger.Error("a request to /mcp panicked", "method", x.msg.Method, "panic", cause, "stack", string(debug.Stack()))
	if x.answered {
		panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
	}
	x.fail(http.StatusInternalServerError, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
		Message: "Something went wrong inside MCPProxy. See the log of the daemon for the cause."})
}
