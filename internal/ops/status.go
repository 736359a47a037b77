package ops

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// Status returns the state of the daemon.
func (g *Gateway) Status(ctx context.Context, _ Caller, _ Nothing) (Status, error) {
	snapshot, cfg, health := g.Catalog.Current(), g.Config(), g.Log.Health()
	s := Status{
		Version: g.About.Version, PID: os.Getpid(), StartedAt: g.About.StartedAt,
		UptimeSeconds: int64(time.Since(g.About.StartedAt).Seconds()),
		Tools:         StatusTools{Total: snapshot.ToolCount(), Callable: snapshot.CallableCount()},
		Surfaces:      g.About.Surfaces(), ConfigPath: g.About.ConfigPath,
		NeedsRestart: g.About.NeedsRestart(), Warnings: slices.Concat(g.About.Warnings(), health.Refused, g.MissingApprovalWarnings(), g.loginWarnings()),
		DataDir: cfg.DataDir, Activity: health, Definitions: Definitions{g.About.LoadedToolBytes(), snapshot.TotalDefinitionSize()},
		Held: g.About.CountHeld(ctx),
	}
	if v, _ := g.PauseState(ctx, Caller{}, Nothing{}); v.Paused {
		s.Pause = &v
	}
	if g.About.Unconfirmed != nil {
		s.Unconfirmed = g.About.Unconfirmed().Count()
	}
	if err := g.About.ConfigError(); err != nil {
		s.ConfigError = err.Error()
	}
	for _, server := range snapshot.Servers() {
		for _, n := range g.Catalog.CurrentPrimitives(server.Name).Counts() {
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
		if v := g.serverView(server, nil); v.Enabled {
			s.Servers.NotReady = append(s.Servers.NotReady, NotReady{v.Name, v.State, v.Detail, v.Since, v.RetryAt})
		}
	}
	return s, nil
}

// hasLostApprovals reports whether the approvals of a server were lost and the server was not approved since.
func (g *Gateway) hasLostApprovals(s *catalog.Server) bool {
	return g.Book.ApprovalsLost() && !s.Quarantined && g.Book.ServerView(s.Name).ApprovedLaunch() == nil
}

// MissingApprovalWarnings returns warnings about approvals that are lost or not loaded yet.
func (g *Gateway) MissingApprovalWarnings() []string {
	const lost = "The database of this data directory is not the first one: the approvals of an earlier one, which was damaged or removed, are lost. "
	switch {
	case g.Book.RestrictionsLost():
		return []string{lost + restrictionsLost + " Every tool that you have not approved since waits for your approval, including new tools."}
	case slices.ContainsFunc(g.Catalog.Current().Servers(), g.hasLostApprovals):
		return []string{lost + "Blocked tools stay blocked, and disabled tools stay disabled. " +
			"New definitions are not accepted automatically until you approve a server again with `mcpproxy upstream approve`."}
	}
	select {
	case <-g.Book.LoadedChan():
		return nil
	default:
		return []string{"The approvals are not read yet, so no tool can be called. If this persists, check the daemon's log."}
	}
}

// loginWarnings returns warnings about the servers that need a login.
func (g *Gateway) loginWarnings() (out []string) {
	for _, s := range g.Catalog.Current().Servers() {
		if g.Logins.NeedsLogin(s.Name) {
			out = append(out, "Server '"+s.Name+"' requires a login: mcpproxy login "+s.Name)
		}
	}
	return out
}

// restrictionsLost is the warning that earlier blocks may be lost.
const restrictionsLost = "Earlier blocks are lost, at least in part: review each tool before you approve."

// Limits of the statistics.
const (
	statsRecords = 20_000 // maximum number of evaluated calls
	statsPage    = 200
	statsTools   = 1_000 // maximum number of listed tools
)

// ToolStats contains statistics from the activity log: how well searches find tools, and which tools are used.
type ToolStats struct {
	Since    time.Time `json:"since" doc:"The start of the evaluated period: the time of the first included call, or the requested time."`
	Calls    int       `json:"calls" doc:"The number of included calls."`
	Cut      bool      `json:"cut,omitempty" doc:"Whether older calls of the period were left out."`
	Searches int       `json:"searches" doc:"The number of searches that were followed by a call. Searches without a following call are not counted."`
	Recall1  float64   `json:"recall_1" doc:"Recall at 1: the fraction of the tools called after a search that were first in its result, averaged over the searches. recall_3, recall_5 and recall_10 are for the first 3, 5 and 10."`
	Recall3  float64   `json:"recall_3"`
	Recall5  float64   `json:"recall_5"`
	Recall10 float64   `json:"recall_10"`
	MRR      float64   `json:"mrr" doc:"Mean reciprocal rank: 1 divided by the rank of the best tool called after a search, averaged over the searches."`
	Missed   int       `json:"missed" doc:"The number of calls of a tool after a search that did not find it."`
	Tools    []ToolUse `json:"tools" doc:"The called tools, most calls first, at most 1,000."`
	Dead     []string  `json:"dead" doc:"Callable tools without calls, at most 1,000."`
	DeadAll  int       `json:"dead_count"`
}

// ToolUse contains the usage of one tool.
type ToolUse struct {
	Name   string    `json:"name"`
	Calls  int       `json:"calls"`
	Found  int       `json:"found" doc:"The number of its calls after a search that found it."`
	Missed int       `json:"missed,omitempty" doc:"The number of its calls after a search that did not find it."`
	Rank   float64   `json:"rank,omitempty" doc:"The mean rank of the tool in the search results that contained it."`
	Last   time.Time `json:"last"`
}

// ToolStats evaluates the calls since a time. It evaluates at most the latest 20,000 calls.
func (g *Gateway) ToolStats(ctx context.Context, _ Caller, in StatsQuery) (ToolStats, error) {
	t := newCallStats()
	err := forEachCall(ctx, g.Log, in.Since, func(r *activity.Record) { t.addCall(r) })
	if err != nil {
		return ToolStats{}, err
	}
	s := t.toToolStats()
	if !in.Since.IsZero() && !s.Cut {
		s.Since = in.Since
	}
	for _, server := range g.Catalog.Current().Servers() {
		for _, x := range server.Tools {
			if x.Callable() && t.tools[x.ID] == nil {
				s.Dead = append(s.Dead, x.ID.String())
			}
		}
	}
	slices.Sort(s.Dead)
	s.DeadAll = len(s.Dead)
	s.Dead = s.Dead[:min(len(s.Dead), statsTools)]
	return s, nil
}

// forEachCall iterates over the calls since a time, latest first.
func forEachCall(ctx context.Context, log ActivityLog, since time.Time, do func(*activity.Record)) error {
	f := activity.Filter{Types: []activity.Type{activity.ToolCall}, Since: since, Limit: statsPage}
	for n := 0; n < statsRecords; n += statsPage {
		page, err := log.List(ctx, f)
		if err != nil {
			return err
		}
		for i := range page.Records {
			do(&page.Records[i])
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return nil
		}
	}
	return nil
}

// callStats accumulates the statistics of calls.
type callStats struct {
	calls    int
	first    time.Time
	tools    map[tool.ID]*ToolUse
	searches map[searchKey]map[tool.ID]int // ranks of the tools called after a search, by search and tool
}

// searchKey identifies a search. The same query in the same session counts as the same search.
type searchKey struct{ session, query string }

func newCallStats() *callStats {
	return &callStats{tools: map[tool.ID]*ToolUse{}, searches: map[searchKey]map[tool.ID]int{}}
}

func (t *callStats) addCall(r *activity.Record) {
	t.calls++
	t.first = r.Timestamp // records are read latest first
	id := tool.ID{Server: r.ServerName, Tool: r.ToolName}
	use := t.tools[id]
	if use == nil {
		use = &ToolUse{Name: id.String(), Last: r.Timestamp}
		t.tools[id] = use
	}
	use.Calls++
	if r.Metadata.Search == nil {
		return
	}
	key := searchKey{r.SessionID, r.Metadata.Search.Query}
	called := t.searches[key]
	if called == nil {
		called = map[tool.ID]int{}
		t.searches[key] = called
	}
	if rank := r.Metadata.Search.Rank; called[id] == 0 || rank > 0 && rank < called[id] {
		called[id] = rank
	}
}

func (t *callStats) toToolStats() ToolStats {
	s := ToolStats{Since: t.first, Calls: t.calls, Cut: t.calls >= statsRecords, Searches: len(t.searches), Tools: []ToolUse{}, Dead: []string{}}
	for _, called := range t.searches {
		best := 0
		within := func(k int) float64 {
			n := 0
			for _, rank := range called {
				if 0 < rank && rank <= k {
					n++
				}
			}
			return float64(n) / float64(len(called)) / float64(len(t.searches))
		}
		s.Recall1, s.Recall3 = s.Recall1+within(1), s.Recall3+within(3)
		s.Recall5, s.Recall10 = s.Recall5+within(5), s.Recall10+within(10)
		for id, rank := range called {
			use := t.tools[id]
			if rank == 0 {
				use.Missed++
				s.Missed++
				continue
			}
			use.Rank = (use.Rank*float64(use.Found) + float64(rank)) / float64(use.Found+1)
			use.Found++
			if best == 0 || rank < best {
				best = rank
			}
		}
		if best > 0 {
			s.MRR += 1 / float64(best) / float64(len(t.searches))
		}
	}
	for _, use := range t.tools {
		s.Tools = append(s.Tools, *use)
	}
	slices.SortFunc(s.Tools, func(a, b ToolUse) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	s.Tools = s.Tools[:min(len(s.Tools), statsTools)]
	return s
}
