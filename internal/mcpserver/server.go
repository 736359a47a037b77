package mcpserver

import (
	"context"
	"crypto/rand"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// Deps are what a Server is made of.
type Deps struct {
	BuiltIn session.Surface                     // of /mcp
	All     session.Surface                     // of /mcp/all
	At      func(server string) session.Surface // of /mcp/servers/…
	// Refused puts a call on record that was refused before it got to the surface
	// of a server. Those of BuiltIn and All put it there themselves.
	Refused func(ctx context.Context, server string, r *session.Request, p *problem.Problem)
	Reply   *session.ReplyWriter
	Config  func() *config.Config
	Auth    *auth.Authenticator
	// Profiles has those of the configuration.
	Profiles auth.Profiles
	// Instance is what the ids of sessions begin with, where there are several that a
	// balancer may send a request to.
	Instance string
	Logger   *slog.Logger
}

// maxStreams is how many streams without an end may be open.
const maxStreams = 1024

// Server answers on /mcp. The goroutines that it starts end with the request or
// the connection that they are of.
type Server struct {
	Deps
	sessions  *sessions
	asking    string        // how the ids of our own questions begin
	streams   chan struct{} // one for each that is open
	closeOnce sync.Once

	mu     sync.Mutex // guards closing, and lines.Add beside it
	closed chan struct{}
	lines  sync.WaitGroup // connections
}

// New makes a Server.
func New(d Deps) *Server {
	all := newSessions()
	if d.Instance != "" {
		all.prefix = d.Instance + "-"
	}
	return &Server{
		Deps:     d,
		sessions: all,
		asking:   "mcpproxy-" + rand.Text() + "-",
		streams:  make(chan struct{}, maxStreams),
		closed:   make(chan struct{}),
	}
}

// Close ends the streams that are held open and all sessions. Calls in flight
// go on; their end is that of their surface and the HTTP server's business, and
// on connections of lines that of Shutdown. Without Close an http.Server cannot
// shut down while clients hold streams open.
func (s *Server) Close() {
	s.mu.Lock()
	s.closeOnce.Do(func() { close(s.closed) })
	s.mu.Unlock()
	s.sessions.clear()
}

// End ends the sessions of an actor.
func (s *Server) End(a auth.Actor) { s.sessions.endOf(a) }

// Sessions returns how many sessions are open.
func (s *Server) Sessions() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.byID)
}

// lastTime is how long a client may take to read when its requests have been cut
// off.
const lastTime = time.Second

// Shutdown closes the server and waits until connections of lines have ended,
// which an http.Server does not know any more, or ctx has.
func (s *Server) Shutdown(ctx context.Context) {
	s.Close()
	ended := make(chan struct{})
	go func() { s.lines.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// begin reports whether one more connection may speak in lines; then it is Done
// some time.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return false
	default:
		s.lines.Add(1)
		return true
	}
}

// panicked logs that the handling of a message has panicked.
func (s *Server) panicked(method string, cause any) {
	s.Logger.Error("a request to /mcp panicked", "method", method, "panic", cause, "stack", string(debug.Stack()))
}

// The places that are no server: of the built-in tools, and of all servers at
// once. No server can have such a name.
const atBuiltIn, atAll = "", "*"

// ofProfile is before the name of a profile in a place; no server's name has a slash.
const ofProfile = "p/"

// at returns what a path under /mcp is about, and by which profile it is seen, ""
// for none. Some clients append /mcp to the address that they are given.
func (s *Server) at(path string) (place, profile string, surface session.Surface) {
	if rest, ok := strings.CutPrefix(path, "/mcp/p/"); ok {
		profile, all := strings.CutSuffix(strings.TrimSuffix(rest, "/mcp"), "/all")
		if all {
			return ofProfile + profile + "/" + atAll, profile, s.All
		}
		return ofProfile + profile + "/" + atBuiltIn, profile, s.BuiltIn
	}
	if path == "/mcp/all" || path == "/mcp/all/mcp" {
		return atAll, "", s.All
	}
	for _, prefix := range [...]string{"/mcp/servers/", "/mcp/s/"} {
		name, ok := strings.CutPrefix(path, prefix)
		if name = strings.TrimSuffix(name, "/mcp"); ok && name != atAll && name != atBuiltIn {
			return name, "", s.At(name)
		}
	}
	return atBuiltIn, "", s.BuiltIn
}
