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

// Deps are the dependencies of a Server.
type Deps struct {
	BuiltIn session.Endpoint                     // of /mcp
	All     session.Endpoint                     // of /mcp/all
	Lanes   map[string]session.Endpoint          // of /mcp/all/read, /mcp/all/write and /mcp/all/destructive, by the last part
	At      func(server string) session.Endpoint // of /mcp/servers/…
	// RecordRefusedCall records a call that was refused before it reached the endpoint of a server. BuiltIn and All
	// record such calls themselves.
	RecordRefusedCall func(ctx context.Context, server string, r *session.Request, p *problem.Problem)
	Reply             *session.ReplyBuilder
	Config            func() *config.Config
	Auth              *auth.Authenticator
	// Profiles are the configured profiles.
	Profiles auth.ProfileRuleFunc
	// Instance is the prefix of session IDs, for load balancers in front of several instances.
	Instance string
	// SessionStore stores sessions across restarts. If it is nil, sessions end with the process.
	SessionStore SessionStore
	// ToolsLoaded is closed when the tools of before a restart are known. A session is rebuilt then.
	ToolsLoaded <-chan struct{}
	// AppsClientSeen, if set, is called for each request of a client that shows MCP Apps.
	AppsClientSeen func()
	Logger         *slog.Logger
}

// maxStreams limits the open endless streams.
const maxStreams = 1024

// Server serves /mcp. Its goroutines end with their request or connection.
type Server struct {
	Deps
	sessions  *sessionTable
	restorer  *sessionRestorer
	asking    string        // prefix of the IDs of MCPProxy's own questions
	streams   chan struct{} // one per open stream
	closeOnce sync.Once

	mu     sync.Mutex // guards closing, and lines.Add
	closed chan struct{}
	lines  sync.WaitGroup // connections
}

// New returns a Server.
func New(d Deps) *Server {
	all := newSessionTable()
	if d.Instance != "" {
		all.prefix = d.Instance + "-"
	}
	return &Server{
		Deps:     d,
		sessions: all,
		restorer: newSessionRestorer(d.SessionStore),
		asking:   "mcpproxy-" + rand.Text() + "-",
		streams:  make(chan struct{}, maxStreams),
		closed:   make(chan struct{}),
	}
}

// Close ends the endless streams and all sessions. Calls in flight continue; http.Server and Shutdown end
// them. Call it before http.Server.Shutdown, which waits for streams.
func (s *Server) Close() {
	s.mu.Lock()
	s.closeOnce.Do(func() { close(s.closed) })
	s.mu.Unlock()
	s.sessions.endAll()
}

// EndSessionsOf ends the sessions of an actor.
func (s *Server) EndSessionsOf(a auth.Actor) { s.sessions.endSessionsOf(a) }

// SessionCount returns the number of open sessions.
func (s *Server) SessionCount() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.byID)
}

// drainTime limits the wait for clients whose requests were cancelled.
const drainTime = time.Second

// Shutdown closes the server and waits for the connections of the line protocol, which http.Server does
// not track, or for ctx.
func (s *Server) Shutdown(ctx context.Context) {
	s.Close()
	ended := make(chan struct{})
	go func() { s.lines.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// registerLineConn registers a connection of the line protocol, unless the server is closed.
func (s *Server) registerLineConn() bool {
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

// logPanic logs a panic of a message handler.
func (s *Server) logPanic(method string, cause any) {
	s.Logger.Error("a request to /mcp panicked", "method", method, "panic", cause, "stack", string(debug.Stack()))
}

// The endpoint keys of the built-in tools and of all servers. No server can have such a name.
const atBuiltIn, atAll = "", "*"

// profilePrefix precedes a profile in an endpoint key; server names have no slash.
const profilePrefix = "p/"

// resolveEndpoint resolves a path under /mcp to its key, profile ("" for none) and endpoint. Some clients append
// /mcp to the given URL.
func (s *Server) resolveEndpoint(path string) (place, profile string, surface session.Endpoint) {
	if rest, ok := strings.CutPrefix(path, "/mcp/p/"); ok {
		profile, rest, _ := strings.Cut(strings.TrimSuffix(rest, "/mcp"), "/")
		key := profilePrefix + profile + "/"
		if rest == "" {
			return key + atBuiltIn, profile, s.BuiltIn
		}
		place, surface := s.resolveAll(rest)
		return key + place, profile, surface
	}
	if rest, ok := strings.CutPrefix(path, "/mcp/all"); ok {
		place, surface := s.resolveAll("all" + strings.TrimSuffix(rest, "/mcp"))
		return place, "", surface
	}
	for _, prefix := range [...]string{"/mcp/servers/", "/mcp/s/"} {
		name, ok := strings.CutPrefix(path, prefix)
		if name = strings.TrimSuffix(name, "/mcp"); ok && name != atAll && name != atBuiltIn {
			return name, "", s.At(name)
		}
	}
	return atBuiltIn, "", s.BuiltIn
}

// resolveAll resolves "all" or "all/LANE" to the key and the endpoint.
func (s *Server) resolveAll(path string) (place string, surface session.Endpoint) {
	if lane, ok := strings.CutPrefix(path, "all/"); ok {
		return atAll + lane, s.Lanes[lane]
	}
	return atAll, s.All
}
