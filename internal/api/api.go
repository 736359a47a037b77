// Package api is the REST surface under /api/v1, its OpenAPI document, and the
// typed client that the command line uses.
//
// It guarantees that every route names the right it needs, that every failure
// is an RFC 9457 problem document with a code of package problem, that a value
// which is not allowed is refused with its parameter and what is allowed, and
// that the arguments of a call reach the gateway as the bytes that came, once
// they have passed the strict parse. The document is generated from the code
// that serves. It decides no call and knows no server: both are the gateway's.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// Prefix is where the surface is mounted.
const Prefix = "/api/v1"

// Gateway is what the routes do: the operations of gateway.Gateway.
type Gateway interface {
	Call(ctx context.Context, r gateway.CallRequest) (gateway.CallResult, error)
	Servers(ctx context.Context) []gateway.ServerView
	Server(ctx context.Context, name string) (gateway.ServerView, error)
	RestartServer(ctx context.Context, name string, c gateway.Caller) error
	LoginServer(ctx context.Context, name string, c gateway.Caller) (gateway.LoginView, error)
	LoginProgress(ctx context.Context, name string) (gateway.LoginView, error)
	LogoutServer(ctx context.Context, name string, c gateway.Caller) (gateway.ServerView, error)
	ServerLogs(ctx context.Context, name string, lines int) ([]string, error)
	Tools(ctx context.Context, f gateway.ToolFilter) []gateway.ToolView
	Tool(ctx context.Context, id tool.ID) (gateway.ToolView, error)
	SearchTools(ctx context.Context, q gateway.SearchQuery) (gateway.SearchAnswer, error)
	ToolStats(ctx context.Context, since time.Time) (gateway.ToolStats, error)
	Activities(ctx context.Context, f activity.Filter) (activity.Page, error)
	Activity(ctx context.Context, idOrPrefix string) (activity.Record, error)
	Status(ctx context.Context) gateway.Status
	Trust
}

// Deps is what the surface needs.
type Deps struct {
	Gateway Gateway
	Auth    *auth.Authenticator
	Logger  *slog.Logger
	Version string
}

// Server answers everything under Prefix.
type Server struct {
	deps  Deps
	table []route
	build func() (*surface, error)
	guard *http.CrossOriginProtection
}

// New checks the table of routes and gives the handler. The routes themselves
// are built at the first request, since that takes milliseconds that the start
// has no use for.
func New(d Deps) (*Server, error) {
	s := &Server{deps: d, guard: http.NewCrossOriginProtection()}
	s.table = s.routes()
	if err := checkRoutes(s.table); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s.build = sync.OnceValues(func() (*surface, error) { return newSurface(s.deps, s.table) })
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer s.recover(w, r)

	if err := s.guard.Check(r); err != nil {
		writeProblem(w, problem.New(problem.Forbidden, "The request comes from another site.",
			"Requests that change something are taken from programs and from MCPProxy's own pages only.").Because(err))
		return
	}
	actor := s.deps.Auth.Actor(r)
	if actor.Kind != auth.Admin {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
		writeProblem(w, problem.New(problem.Unauthorized, "The request proves no right to use the API.",
			"Send the key in the file api_key of the data directory as X-API-Key or as Authorization: Bearer; over the unix socket no key is needed."))
		return
	}
	surface, err := s.build()
	if err != nil {
		s.deps.Logger.Error("the routes of the API cannot be built", "error", err)
		writeProblem(w, problem.From(err))
		return
	}
	surface.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
}

// recover turns a panic of a handler into an answer, if there was none yet.
func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	if r.Context().Err() != nil {
		return // the caller left in the middle of the answer
	}
	s.deps.Logger.Error("a request to the API ended in a panic", "method", r.Method, "cause", fmt.Sprint(cause))
	writeProblem(w, problem.From(fmt.Errorf("panic: %v", cause)))
}

// Document gives the OpenAPI document, indented.
func (s *Server) Document() ([]byte, error) {
	surface, err := s.build()
	if err != nil {
		return nil, err
	}
	return surface.document, nil
}

type actorKey struct{}
