package gateway

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/door"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/redact"
	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Servers returns all servers, by name: those that are configured, and those that
// agents propose.
func (g *Gateway) Servers(context.Context, Caller, Nothing) (ServerList, error) {
	cfg, snapshot := g.Config(), g.Catalog.Current()
	views := make([]ServerView, 0, len(snapshot.Servers()))
	for _, s := range snapshot.Servers() {
		views = append(views, g.addLogin(g.viewServer(s, cfg.Server(s.Name))))
	}
	for _, s := range g.proposals() {
		views = append(views, s.viewProposal())
	}
	slices.SortFunc(views, func(a, b ServerView) int { return cmp.Compare(a.Name, b.Name) })
	return ServerList{views}, nil
}

// Server returns one server, or SERVER_NOT_FOUND with the nearest names.
func (g *Gateway) Server(_ context.Context, _ Caller, in ServerRef) (ServerView, error) {
	name := in.Name
	cfg, snapshot := g.Config(), g.Catalog.Current()
	s := snapshot.Server(name)
	if s != nil {
		return g.addLogin(g.viewServer(s, cfg.Server(name))), nil
	}
	for _, p := range g.proposals() {
		if p.name == name {
			return p.viewProposal(), nil
		}
	}
	return ServerView{}, door.NoServer(snapshot, name)
}

func (g *Gateway) viewServer(s *catalog.Server, c *config.Server) ServerView {
	v := ServerView{
		Name: s.Name, Protocol: s.Protocol, Enabled: s.Enabled, Quarantined: s.Quarantined,
		State: string(s.State.Phase), ToolCount: len(s.Tools),
		Tools: count(s.Tools), PID: s.State.PID, Restarts: s.State.Restarts,
		Since: whenSet(s.State.Since), RetryAt: whenSet(s.State.RetryAt),
		ProtocolVersion: s.State.ProtocolVersion, ServerInfo: s.State.ServerInfo,
	}
	v.Hint, v.Offers = unlistedHint(s), countOffers(g.Catalog.OffersNow(s.Name))
	if v.State == "" {
		v.State = string(upstream.Stopped)
	}
	if st := s.State; st.Failure.Code != "" && st.Phase != upstream.Ready { // what was wrong is over then
		v.LastError, v.LastErrorAt, v.Failure = redact.Text(st.LastError), whenSet(st.FailedAt), st.Failure.String()
	}
	p := g.Upstreams.Progress(s.Name)
	v.Step, v.StepSince, v.Ahead = p.Step, whenSet(p.Since), p.Ahead
	v.Detail = detail(&v, p)
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

// detail says what a server is at that is not ready, or why it is not; "" for
// one that is ready, or rests, or is switched off.
func detail(v *ServerView, p upstream.Progress) string {
	switch {
	case !v.Enabled || v.State == string(upstream.Ready) || v.State == string(upstream.Idle):
		return ""
	case v.State == string(upstream.Failed):
		return "failed, " + v.LastError + "; see `mcpproxy upstream logs " + v.Name + "`"
	case v.Quarantined && v.State == string(upstream.Stopped):
		return "waits for your review: mcpproxy upstream approve " + v.Name
	case v.State == string(upstream.Stopped):
		return "is about to start"
	}
	words := p.String()
	if words == "" {
		words = "connecting"
	}
	if v.LastError != "" && v.LastErrorAt != nil {
		words += "; the last try failed " + upstream.Seconds(time.Since(*v.LastErrorAt)) + " ago, " + v.LastError
	}
	return words
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
		c[t.Status]++
	}
	if c[policy.Callable] == len(tools) {
		return nil
	}
	return &c
}

// ServerLogs returns the last lines that a server wrote to its stderr.
func (g *Gateway) ServerLogs(_ context.Context, _ Caller, in LogQuery) (LogTail, error) {
	if g.Catalog.Current().Server(in.Name) == nil {
		return LogTail{}, door.NoServer(g.Catalog.Current(), in.Name)
	}
	tail, err := g.Upstreams.LogTail(in.Name, in.Lines)
	if err != nil {
		return LogTail{}, err
	}
	for i, line := range tail {
		tail[i] = redact.Text(line)
	}
	return LogTail{in.Name, tail}, nil
}

// Status tells what runs.
func (g *Gateway) Status(context.Context, Caller, Nothing) (Status, error) {
	snapshot, cfg, health := g.Catalog.Current(), g.Config(), g.Log.Health()
	s := Status{
		Version: g.About.Version, PID: os.Getpid(), StartedAt: g.About.StartedAt,
		UptimeSeconds: int64(time.Since(g.About.StartedAt).Seconds()),
		Tools:         StatusTools{Total: snapshot.ToolCount(), Callable: snapshot.CallableCount()},
		Surfaces:      g.About.Surfaces(), ConfigPath: g.About.ConfigPath,
		NeedsRestart: g.About.NeedsRestart(), Warnings: slices.Concat(g.About.Warnings(), health.Refused, g.trustWarnings(), g.loginsNeeded()),
		DataDir: cfg.DataDir, Activity: health,
	}
	if err := g.About.ConfigError(); err != nil {
		s.ConfigError = err.Error()
	}
	for _, server := range snapshot.Servers() {
		for _, n := range g.Catalog.OffersNow(server.Name).Counts() {
			s.Offers.Total, s.Offers.Waiting = s.Offers.Total+n.Total, s.Offers.Waiting+n.Waiting
		}
		s.Servers.Total++
		if server.Enabled {
			s.Servers.Enabled++
		}
		switch server.State.Phase {
		case upstream.Ready:
			s.Servers.Ready++
			continue
		case upstream.Idle:
			s.Servers.Idle++
			continue
		}
		if v := g.addLogin(g.viewServer(server, nil)); v.Enabled {
			s.Servers.NotReady = append(s.Servers.NotReady, NotReady{v.Name, v.State, v.Detail, v.Since, v.RetryAt})
		}
	}
	return s, nil
}

// Tools returns the known tools that a filter selects, by server and in the
// server's order.
func (g *Gateway) Tools(_ context.Context, _ Caller, f ToolFilter) (ToolList, error) {
	views := []ToolView{}
	for _, s := range g.Catalog.Current().Servers() {
		if f.Server != "" && s.Name != f.Server {
			continue
		}
		for _, t := range s.Tools {
			if (f.CallWith == "" || t.CallWith.String() == f.CallWith) && (f.Operation == "" || t.CallWith.Operation().String() == f.Operation) &&
				(f.Status == "" || t.Status.Word() == f.Status) {
				views = append(views, g.viewTrusted(t))
			}
		}
	}
	return ToolList{views, len(views)}, nil
}

// Tool returns one tool, or SERVER_NOT_FOUND or TOOL_NOT_FOUND with the nearest
// names.
func (g *Gateway) Tool(_ context.Context, _ Caller, in ToolRef) (ToolView, error) {
	t, err := g.findTool(tool.ID(in))
	if err != nil {
		return ToolView{}, err
	}
	return g.viewTrusted(t), nil
}

// SearchTools is Retrieve for people: the same ranking, as views.
func (g *Gateway) SearchTools(_ context.Context, _ Caller, q SearchQuery) (SearchAnswer, error) {
	keep, err := laneFilter(q.Operation)
	if err != nil {
		return SearchAnswer{}, err
	}
	snapshot, text, used := g.Catalog.Current(), problem.Shown(q.Query, maxQuery), g.learned()
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
		Annotations: t.Effective.AppendJSON(nil), CallWith: t.CallWith.String(), Status: t.Status.String(), Score: score,
	}
	if t.Effective != t.Hints {
		v.DeclaredAnnotations = t.Hints.AppendJSON(nil)
	}
	if in := t.Inferred(); in.Operation != policy.NoOperation {
		v.InferredOperation, v.InferredReason = in.Operation.String(), in.Reason
	}
	return v
}
