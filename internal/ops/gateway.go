package ops

import (
	"context"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/oauth"
)

// Upstreams is what the gateway needs of upstream.Set.
type Upstreams interface {
	Restart(server string) error
	RestartQuietly(ctx context.Context, server string, begin func() error) error
	Progress(server string) upstream.Progress
	Deviations(server string) []string
}

// Log is what the gateway needs of activity.Log.
type Log interface {
	Begin(r *activity.Record) error
	End(id string, o activity.Outcome) error
	Append(r *activity.Record) error
	List(ctx context.Context, f activity.Filter) (activity.Page, error)
	Get(ctx context.Context, idOrPrefix string) (activity.Record, error)
	Health() activity.Health
	Calls(ctx context.Context, since time.Time) (map[string]int64, error)
}

// Deps is what a Gateway is made of.
type Deps struct {
	*gate.Gate // which calls tools; it has the configuration and the catalog
	Book       *approval.Book
	Upstreams  Upstreams
	Log        Log
	Logins     *oauth.Accounts // nil: no server takes a login
	About      About
	Presence   *presence.Gate // which asks for a person's presence; nil asks for nobody's
	// Timed is told how long each search took.
	Timed func(time.Duration)
}

// About is what Status tells of the process itself. The functions are asked
// each time.
type About struct {
	Version      string
	StartedAt    time.Time
	ConfigPath   string
	Surfaces     func() []Surface
	ConfigError  func() error
	NeedsRestart func() []string
	Unconfirmed  func() config.Unconfirmed // nil: nothing waits for a person
	Warnings     func() []string
	Held         func(ctx context.Context) StatusHeld
	Loaded       func() int // how many bytes the list of tools has that agents get on /mcp
}

// Gateway is the operations that look and operate.
type Gateway struct {
	Deps
	habits atomic.Pointer[map[string]*search.Habits] // by learner
	calls  atomic.Pointer[map[string]int64]          // of each server
}

// New makes a Gateway.
func New(d Deps) *Gateway { return &Gateway{Deps: d} }

// Action is the beginning of a record of what a caller does.
func Action(c Caller, kind activity.Type, id tool.ID, action, detail string) activity.Record {
	r := activity.Record{Type: kind, ServerName: id.Server, ToolName: id.Tool, Metadata: activity.Metadata{Action: action, Detail: detail}}
	r.By(&c)
	return r
}

// record puts on record what is done to a server.
func (g *Gateway) record(c Caller, server, action string) error {
	r := Action(c, activity.ServerChange, tool.ID{Server: server}, action, "")
	r.Status = activity.Success
	return g.Log.Append(&r)
}

// FindServer returns a server of the configuration, or SERVER_NOT_FOUND with the
// nearest names.
func (g *Gateway) FindServer(name string) (*catalog.Server, error) {
	if s := g.Catalog.Current().Server(name); s != nil {
		return s, nil
	}
	return nil, g.NoServer(name)
}

// findFor is FindServer for a caller, who is told of what is in its scope alone: a
// server that is not is OUT_OF_SCOPE, whether there is one or not.
func (g *Gateway) findFor(c *Caller, name string) (*catalog.Server, error) {
	if p := gate.OutOfScope(c, name); p != nil {
		return nil, p
	}
	snapshot := g.Catalog.Current().Within(c.Scope())
	if s := snapshot.Server(name); s != nil {
		return s, nil
	}
	return nil, gate.NoServer(snapshot, name)
}

// NoServer is the problem of a name that no server has.
func (g *Gateway) NoServer(name string) error { return gate.NoServer(g.Catalog.Current(), name) }

// FindTool returns a tool, or SERVER_NOT_FOUND or TOOL_NOT_FOUND with the nearest
// names.
func (g *Gateway) FindTool(id tool.ID) (*catalog.Tool, error) {
	snapshot := g.Catalog.Current()
	t := snapshot.Tool(id)
	switch {
	case t != nil:
		return t, nil
	case snapshot.Server(id.Server) == nil:
		return nil, g.NoServer(id.Server)
	}
	p := problem.Newf(problem.ToolNotFound, "Tool '%s' not found", problem.Brief(id.String())).
		WithHint("See the tools with `mcpproxy tools list --server " + id.Server + "`.")
	if near := snapshot.SuggestIDs(id); len(near) > 0 {
		p.With("nearest", near)
	}
	return nil, p
}
