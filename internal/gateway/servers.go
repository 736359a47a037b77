package gateway

import (
	"context"
	"os"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/redact"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Servers gives all configured servers, by name.
func (g *Gateway) Servers(context.Context) []ServerView {
	cfg, snapshot := g.Config(), g.Catalog.Current()
	views := make([]ServerView, 0, len(snapshot.Servers()))
	for _, s := range snapshot.Servers() {
		views = append(views, viewServer(s, configured(cfg, s.Name)))
	}
	return views
}

// Server gives one server, or SERVER_NOT_FOUND with the nearest names.
func (g *Gateway) Server(_ context.Context, name string) (ServerView, error) {
	cfg, snapshot := g.Config(), g.Catalog.Current()
	s := snapshot.Server(name)
	if s == nil {
		return ServerView{}, serverNotFound(snapshot, name)
	}
	return viewServer(s, configured(cfg, name)), nil
}

func serverNotFound(s *catalog.Snapshot, name string) *problem.Problem {
	p := problem.Newf(problem.ServerNotFound, "Server '%s' not found", clip(name)).
		WithHint("See the configured servers with `mcpproxy upstream list`.")
	if near := s.Nearest(tool.ID{Server: name}); len(near) > 0 {
		p.With("nearest", near)
	}
	return p
}

func viewServer(s *catalog.Server, c *config.Server) ServerView {
	v := ServerView{
		Name: s.Name, Protocol: s.Protocol, Enabled: s.Enabled, Quarantined: s.Quarantined,
		State: string(s.State.Phase), ToolCount: len(s.Tools), LastError: redact.Text(s.State.LastError),
		Tools: count(s.Tools), PID: s.State.PID, Restarts: s.State.Restarts,
		Since: whenSet(s.State.Since), RetryAt: whenSet(s.State.RetryAt),
		ProtocolVersion: s.State.ProtocolVersion, ServerInfo: s.State.ServerInfo,
	}
	if v.State == "" {
		v.State = string(upstream.Stopped)
	}
	if c != nil {
		shown := c.Shown()
		v.Command, v.Args, v.URL = shown.Command, shown.Args, shown.URL
	}
	return v
}

func whenSet(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// count is nil when every tool can be called.
func count(tools []*catalog.Tool) *Counts {
	var c Counts
	for _, t := range tools {
		switch t.Status {
		case policy.Callable:
			c.Callable++
		case policy.ServerDisabled:
			c.ServerDisabled++
		case policy.ServerQuarantined:
			c.ServerQuarantined++
		case policy.DisabledByConfig:
			c.DisabledByConfig++
		case policy.DisabledByUser:
			c.DisabledByUser++
		case policy.PendingApproval:
			c.PendingApproval++
		default:
			c.DisabledUnknown++
		}
	}
	if c.Callable == len(tools) {
		return nil
	}
	return &c
}

// restartTime is how long RestartServer waits for the new connection.
const restartTime = 10 * time.Second

// RestartServer ends a server's connection and makes a new one. It returns
// when that is ready or has failed, at the latest after restartTime; how it
// went is in the server's state.
func (g *Gateway) RestartServer(ctx context.Context, name string, c Caller) error {
	s := g.Catalog.Current().Server(name)
	if s == nil {
		return serverNotFound(g.Catalog.Current(), name)
	}
	if !s.Enabled || s.Quarantined {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is not running: it is disabled or quarantined.", name).
			WithHint("Enable it in mcp_config.json first.")
	}
	if err := g.Log.Append(&activity.Record{
		Type: activity.ServerChange, Status: activity.Success, ServerName: name,
		Source: c.Source, Actor: c.Actor.String(), SessionID: c.SessionID, RequestID: c.RequestID,
		ClientName: c.ClientName, ClientVersion: c.ClientVersion,
		Metadata: activity.Metadata{Action: "restart"},
	}); err != nil {
		return err
	}
	asked := time.Now()
	if err := g.Upstreams.Restart(name); err != nil {
		return err
	}
	return g.awaitServer(ctx, name, asked)
}

// awaitServer waits until the server is in a state that it entered after the
// time given and that is not a step on the way.
func (g *Gateway) awaitServer(ctx context.Context, name string, after time.Time) error {
	limit, look := time.NewTimer(restartTime), time.NewTicker(10*time.Millisecond)
	defer limit.Stop()
	defer look.Stop()
	for {
		s := g.Catalog.Current().Server(name)
		if s == nil || s.State.Since.After(after) && s.State.Phase != upstream.Connecting {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return nil
		case <-look.C:
		}
	}
}

// ServerLogs gives the last lines that a server wrote to its stderr.
func (g *Gateway) ServerLogs(_ context.Context, name string, lines int) ([]string, error) {
	if g.Catalog.Current().Server(name) == nil {
		return nil, serverNotFound(g.Catalog.Current(), name)
	}
	tail, err := g.Upstreams.LogTail(name, lines)
	if err != nil {
		return nil, err
	}
	for i, line := range tail {
		tail[i] = redact.Text(line)
	}
	return tail, nil
}

// Status tells what runs.
func (g *Gateway) Status(context.Context) Status {
	snapshot, cfg := g.Catalog.Current(), g.Config()
	s := Status{
		Version: g.About.Version, PID: os.Getpid(), StartedAt: g.About.StartedAt,
		UptimeSeconds: int64(time.Since(g.About.StartedAt).Seconds()),
		Tools:         StatusTools{Total: snapshot.ToolCount(), Callable: snapshot.CallableCount()},
		Surfaces:      g.About.Surfaces(), ConfigPath: g.About.ConfigPath,
		NeedsRestart: g.About.NeedsRestart(), Warnings: g.About.Warnings(),
		DataDir: cfg.DataDir, Activity: g.Log.Health(),
	}
	if err := g.About.ConfigError(); err != nil {
		s.ConfigError = err.Error()
	}
	for _, server := range snapshot.Servers() {
		s.Servers.Total++
		if server.Enabled {
			s.Servers.Enabled++
		}
		if server.State.Phase == upstream.Ready {
			s.Servers.Ready++
		}
	}
	return s
}

// Activities gives the records that a filter selects, newest first.
func (g *Gateway) Activities(ctx context.Context, f activity.Filter) (activity.Page, error) {
	return g.Log.List(ctx, f)
}

// Activity gives one record by its id or a unique prefix of it.
func (g *Gateway) Activity(ctx context.Context, idOrPrefix string) (activity.Record, error) {
	return g.Log.Get(ctx, idOrPrefix)
}

// Tools gives the known tools that a filter selects, by server and in the
// server's order.
func (g *Gateway) Tools(_ context.Context, f ToolFilter) []ToolView {
	views := []ToolView{}
	for _, s := range g.Catalog.Current().Servers() {
		if f.Server != "" && s.Name != f.Server {
			continue
		}
		for _, t := range s.Tools {
			if (f.CallWith == "" || t.CallWith.String() == f.CallWith) && (f.Status == "" || t.Status.String() == f.Status) {
				views = append(views, viewTool(t, 0))
			}
		}
	}
	return views
}

// Tool gives one tool, or SERVER_NOT_FOUND or TOOL_NOT_FOUND with the nearest
// names.
func (g *Gateway) Tool(_ context.Context, id tool.ID) (ToolView, error) {
	snapshot := g.Catalog.Current()
	t := snapshot.Tool(id)
	switch {
	case t != nil:
		return viewTool(t, 0), nil
	case snapshot.Server(id.Server) == nil:
		return ToolView{}, serverNotFound(snapshot, id.Server)
	}
	p := problem.Newf(problem.ToolNotFound, "Tool '%s' not found", clip(id.String())).
		WithHint("See the tools with `mcpproxy tools list --server " + id.Server + "`.")
	if near := snapshot.Nearest(id); len(near) > 0 {
		p.With("nearest", near)
	}
	return ToolView{}, p
}

// SearchTools is Retrieve for people: the same ranking, as views.
func (g *Gateway) SearchTools(_ context.Context, query string, limit int) SearchAnswer {
	limit = clamp(limit, g.Config().ToolsLimit)
	hits, total := g.Catalog.Current().Search(clipTo(query, maxQuery), limit, nil)
	answer := SearchAnswer{Query: query, Total: total, Tools: make([]ToolView, len(hits))}
	for i, h := range hits {
		answer.Tools[i] = viewTool(h.Tool, h.Score)
	}
	return answer
}

func viewTool(t *catalog.Tool, score float64) ToolView {
	v := ToolView{
		Name: t.ID.String(), Server: t.ID.Server, Tool: t.ID.Tool, Title: t.Title,
		Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Annotations: t.Effective.AppendJSON(nil), CallWith: t.CallWith.String(), Score: score,
	}
	if t.Effective != t.Hints {
		v.DeclaredAnnotations = t.Hints.AppendJSON(nil)
	}
	if t.Status != policy.Callable {
		v.Status = t.Status.String()
	}
	return v
}
