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
	"mcpproxy/internal/upstream/sandbox"
)

// ServerSupervisor restarts servers and reports the progress of their starts. upstream.Set implements it.
type ServerSupervisor interface {
	Restart(server string) error
	RestartWhenDrained(ctx context.Context, server string, begin func() error) error
	StartProgress(server string) upstream.StartProgress
	Deviations(server string) []string
	SessionNeeds(server string) []upstream.KnownNeed
}

// ActivityLog writes and reads activity records. activity.Log implements it.
type ActivityLog interface {
	Begin(r *activity.Record) error
	End(id string, o activity.Outcome) error
	Append(r *activity.Record) error
	List(ctx context.Context, f activity.Filter) (activity.RecordPage, error)
	Get(ctx context.Context, idOrPrefix string) (activity.Record, error)
	Health() activity.Health
	CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error)
}

// GatewayDeps are the dependencies of a Gateway.
type GatewayDeps struct {
	*gate.Gate // calls tools, and provides the configuration and the catalog
	Book       *approval.Book
	Upstreams  ServerSupervisor
	Log        ActivityLog
	Logins     *oauth.Accounts // nil if no server needs a login
	About      DaemonInfo
	Presence   *presence.Gate  // requires proof of presence; nil if none is required
	Sandboxes  *sandbox.System // nil if this is unknown
	// ObserveSearch is called with the duration of each search.
	ObserveSearch func(time.Duration)
}

// DaemonInfo describes the process for Status. Its functions are called for each request.
type DaemonInfo struct {
	Version         string
	StartedAt       time.Time
	ConfigPath      string
	Surfaces        func() []Surface
	ConfigError     func() error
	NeedsRestart    func() []string
	Unconfirmed     func() config.UnconfirmedChanges // nil if nothing waits for confirmation
	Warnings        func() []string
	CountHeld       func(ctx context.Context) StatusHeld
	LoadedToolBytes func() int // size of the tool list that agents get on /mcp, in bytes
}

// Gateway implements the operations that read state and call tools.
type Gateway struct {
	GatewayDeps
	habits atomic.Pointer[map[string]*search.Habits] // by learner
	calls  atomic.Pointer[map[string]int64]          // calls per server
}

// NewGateway returns a Gateway.
func NewGateway(d GatewayDeps) *Gateway { return &Gateway{GatewayDeps: d} }

// recordActionOnServer records an action that affects a server.
func (g *Gateway) recordActionOnServer(c Caller, server, action string) error {
	r := newActionRecord(c, activity.ServerChange, tool.ID{Server: server}, action, "")
	r.Status = activity.Success
	return g.Log.Append(&r)
}

// findServer returns a configured server, or SERVER_NOT_FOUND with similar names.
func (g *Gateway) findServer(name string) (*catalog.Server, error) {
	if s := g.Catalog.Current().Server(name); s != nil {
		return s, nil
	}
	return nil, g.serverNotFoundError(name)
}

// findServerInScope is like findServer, but limited to the caller's scope. For a server outside of the scope, it
// returns OUT_OF_SCOPE, whether or not the server exists.
func (g *Gateway) findServerInScope(c *Caller, name string) (*catalog.Server, error) {
	if p := gate.OutOfScopeProblem(c, name); p != nil {
		return nil, p
	}
	snapshot := g.Catalog.Current().ScopedTo(c.Scope())
	if s := snapshot.Server(name); s != nil {
		return s, nil
	}
	return nil, gate.ServerNotFoundProblem(snapshot, name)
}

// serverNotFoundError returns the problem for an unknown server name, with similar names.
func (g *Gateway) serverNotFoundError(name string) error {
	return gate.ServerNotFoundProblem(g.Catalog.Current(), name)
}

// findTool returns a tool. If it does not exist, it returns SERVER_NOT_FOUND or TOOL_NOT_FOUND with similar names.
func (g *Gateway) findTool(id tool.ID) (*catalog.Tool, error) {
	snapshot := g.Catalog.Current()
	t := snapshot.Tool(id)
	switch {
	case t != nil:
		return t, nil
	case snapshot.Server(id.Server) == nil:
		return nil, g.serverNotFoundError(id.Server)
	}
	p := problem.Newf(problem.ToolNotFound, "Tool '%s' not found", problem.ClipName(id.String())).
		WithHint("See the tools with `mcpproxy tools list --server " + id.Server + "`.")
	if near := snapshot.SuggestIDs(id); len(near) > 0 {
		p.With("nearest", near)
	}
	return nil, p
}
