package gateway

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/redact"
	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Servers gives all servers, by name: those that are configured, and those that
// agents propose.
func (g *Gateway) Servers(context.Context) []ServerView {
	cfg, snapshot := g.Config(), g.Catalog.Current()
	views := make([]ServerView, 0, len(snapshot.Servers()))
	for _, s := range snapshot.Servers() {
		views = append(views, g.addLogin(g.viewServer(s, configured(cfg, s.Name))))
	}
	for _, s := range g.proposals() {
		views = append(views, s.viewProposal())
	}
	slices.SortFunc(views, func(a, b ServerView) int { return cmp.Compare(a.Name, b.Name) })
	return views
}

// Server gives one server, or SERVER_NOT_FOUND with the nearest names.
func (g *Gateway) Server(_ context.Context, name string) (ServerView, error) {
	cfg, snapshot := g.Config(), g.Catalog.Current()
	s := snapshot.Server(name)
	if s != nil {
		return g.addLogin(g.viewServer(s, configured(cfg, name))), nil
	}
	for _, p := range g.proposals() {
		if p.name == name {
			return p.viewProposal(), nil
		}
	}
	return ServerView{}, serverNotFound(snapshot, name)
}

func serverNotFound(s *catalog.Snapshot, name string) *problem.Problem {
	p := problem.Newf(problem.ServerNotFound, "Server '%s' not found", clip(name)).
		WithHint("See the configured servers with `mcpproxy upstream list`.")
	if near := s.Nearest(tool.ID{Server: name}); len(near) > 0 {
		p.With("nearest", near)
	}
	return p
}

func (g *Gateway) viewServer(s *catalog.Server, c *config.Server) ServerView {
	v := ServerView{
		Name: s.Name, Protocol: s.Protocol, Enabled: s.Enabled, Quarantined: s.Quarantined,
		State: string(s.State.Phase), ToolCount: len(s.Tools), LastError: redact.Text(s.State.LastError),
		Tools: count(s.Tools), PID: s.State.PID, Restarts: s.State.Restarts,
		Since: whenSet(s.State.Since), RetryAt: whenSet(s.State.RetryAt),
		ProtocolVersion: s.State.ProtocolVersion, ServerInfo: s.State.ServerInfo,
	}
	v.Hint = unlistedHint(s)
	if v.State == "" {
		v.State = string(upstream.Stopped)
	}
	if c != nil {
		shown := c.Shown()
		v.Command, v.Args, v.URL = shown.Command, shown.Args, shown.URL
		v.Trust, v.Lazy = string(c.Trust), c.Lazy
		if c.Session == config.SessionShared {
			v.Session = string(c.Session)
		}
		if s.Quarantined {
			v.Stage = (&subject{config: *c, decided: g.Book.View(s.Name)}).stage()
		}
	}
	return v
}

// unlistedHint says how the tools of a server become known that was never
// started.
func unlistedHint(s *catalog.Server) string {
	if s.State.Phase != upstream.Idle || s.Listed {
		return ""
	}
	return "Its tools are not known, since it is lazy and was never started. `mcpproxy upstream restart " + s.Name +
		"`, or upstream_servers with operation restart, starts it and lists them."
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
		one, err := g.subject(name)
		if err != nil {
			return err
		}
		if err := one.notProposed(); err != nil {
			return err
		}
		return serverNotFound(g.Catalog.Current(), name)
	}
	if configured := configured(g.Config(), name); configured == nil ||
		!catalog.MayStart(*configured, g.Book.View(name)) || s.Quarantined && !c.person() {
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is not running: it is disabled or quarantined.", name).
			WithHint("Enable it with `mcpproxy upstream enable " + name + "`, or review it with `mcpproxy upstream approve " + name + "`.")
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
		NeedsRestart: g.About.NeedsRestart(), Warnings: slices.Concat(g.About.Warnings(), g.trustWarnings(), g.loginsNeeded()),
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
		switch server.State.Phase {
		case upstream.Ready:
			s.Servers.Ready++
		case upstream.Idle:
			s.Servers.Idle++
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
				views = append(views, g.viewTrusted(t))
			}
		}
	}
	return views
}

// Tool gives one tool, or SERVER_NOT_FOUND or TOOL_NOT_FOUND with the nearest
// names.
func (g *Gateway) Tool(_ context.Context, id tool.ID) (ToolView, error) {
	t, err := g.findTool(id)
	if err != nil {
		return ToolView{}, err
	}
	return g.viewTrusted(t), nil
}

// SearchTools is Retrieve for people: the same ranking, as views.
func (g *Gateway) SearchTools(_ context.Context, q SearchQuery) (SearchAnswer, error) {
	keep, err := laneFilter(q.Operation)
	if err != nil {
		return SearchAnswer{}, err
	}
	snapshot, text, used := g.Catalog.Current(), clipTo(q.Query, maxQuery), g.learned()
	hits, total := snapshot.SearchUsed(used, text, clamp(q.Limit, g.Config().ToolsLimit), keep)
	answer := SearchAnswer{Query: q.Query, Total: total, Tools: make([]ToolView, len(hits))}
	for i, h := range hits {
		answer.Tools[i] = viewTool(h.Tool, h.Score)
		if q.Explain {
			answer.Tools[i].Why = viewReasons(snapshot.Explain(used, text, h))
		}
	}
	return answer, nil
}

func viewReasons(reasons []search.Reason) []Why {
	out := make([]Why, len(reasons))
	for i, r := range reasons {
		out[i] = Why{Asked: r.Asked, Found: r.Found, How: r.How.String(), Fields: r.Fields, Share: r.Share}
	}
	return out
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
	if in := t.Inferred(); in.Operation != policy.NoOperation {
		v.InferredOperation, v.InferredReason = in.Operation.String(), in.Reason
	}
	if t.Status != policy.Callable {
		v.Status = t.Status.String()
	}
	return v
}
