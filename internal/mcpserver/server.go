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
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
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

// maxStreams is how many streams without an end may be open.
const maxStreams = 1024

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

// The places that are no server: of the built-in tools, and of all servers at
// once. No server can have such a name.
const atBuiltIn, atAll = "", "*"

// at returns what a path under /mcp is about.
func (s *Server) at(path string) (place string, surface session.Surface) {
	if path == "/mcp/all" {
		return atAll, s.All
	}
	for _, prefix := range [...]string{"/mcp/servers/", "/mcp/s/"} {
		if name, ok := strings.CutPrefix(path, prefix); ok && name != atAll && name != atBuiltIn {
			return name, s.At(name)
		}
	}
	return atBuiltIn, s.BuiltIn
}

// counter counts what there may be only so many of.
type counter struct {
	max int64
	n   atomic.Int64
}

func (c *counter) take() bool {
	if c.n.Add(1) <= c.max {
		return true
	}
	c.n.Add(-1)
	return false
}

func (c *counter) give() { c.n.Add(-1) }
