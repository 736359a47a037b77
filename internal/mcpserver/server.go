// Package mcpserver is MCP over streamable HTTP, for clients of both protocol
// eras on one URL: it reads what they send, has it answered by the surface that
// the path stands for, and writes what comes of it. It does not know which
// surface it speaks for: the built-in tools on /mcp, all servers at once on
// /mcp/all, or a server by itself on /mcp/servers/{server} and /mcp/s/{server}.
//
// It guarantees that a request is checked before it is read (host, origin,
// actor, size), that what it hands on are the bytes of a text that was parsed
// strictly once, that the headers of a request say what its body says, that a
// session belongs to the actor who opened it and cannot be guessed, and that a
// client that does not read its answer holds up nobody else. It decides nothing
// about a call and answers no request itself.
package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
)

// Deps are what a Server is made of.
type Deps struct {
	BuiltIn session.Surface                     // of /mcp
	All     session.Surface                     // of /mcp/all
	At      func(server string) session.Surface // of /mcp/servers/…
	// Refused puts a call on record that was refused before it got to the surface
	// of a server. Those of BuiltIn and All put it there themselves.
	Refused func(ctx context.Context, server string, r *session.Request, p *problem.Problem)
	Reply   *reply.Writer
	Config  func() *config.Config
	Auth    *auth.Authenticator
	Logger  *slog.Logger
}

// Server answers on /mcp. It starts no goroutine of its own but the writer of
// a streamed answer, which ends with its request.
type Server struct {
	Deps
	sessions  *sessions
	streams   counter
	closed    chan struct{}
	closeOnce sync.Once
}

// New makes a Server.
func New(d Deps) *Server {
	return &Server{
		Deps:     d,
		sessions: newSessions(),
		streams:  counter{max: maxStreams},
		closed:   make(chan struct{}),
	}
}

// Close ends the streams that are held open and all sessions. Calls in flight
// go on; their end is that of their surface and the HTTP server's business. Without
// Close an http.Server cannot shut down while clients hold streams open.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.closed) })
	s.sessions.clear()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := request{from: client{s: s, origin: auth.Origin(r)}, r: r, out: response{w: w}}
	x.from.place, x.from.surface = s.at(r.URL.Path)
	x.client = &x.from
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
func (x *request) recover() {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	x.s.Logger.Error("a request to /mcp panicked", "method", x.Method, "panic", cause, "stack", string(debug.Stack()))
	if x.out.begun {
		panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
	}
	x.out.fail(http.StatusInternalServerError, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
		Message: "Something went wrong inside MCPProxy. See the log of the daemon for the cause."})
}
