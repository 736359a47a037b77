package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Limits of a search result.
const (
	maxTools  = 100
	maxLocked = 10
	// maxQuery limits a query, in bytes. More words do not improve the ranking.
	maxQuery = 10_000
)

// SearchResult is the result of a search in one catalog snapshot.
type SearchResult struct {
	Hits     []catalog.Hit // callable tools, those that are always listed first, then best first
	Total    int           // number of callable matches
	unhinted int           // number of matches that the operation filter left out because they have no hints

	snapshot *catalog.Snapshot
	habits   *search.Habits
	query    string
	limit    int
	filter   func(*catalog.Tool) bool // nil selects all tools
}

// SearchTools ranks the callable tools that match a query, as agents see them.
func (g *Gateway) SearchTools(req *RetrieveRequest) *SearchResult {
	f := &SearchResult{snapshot: g.Catalog.Current().ScopedTo(req.Caller.Scope()), habits: g.searchHabitsFor(req.Caller), query: problem.ClipForDisplay(req.Query, maxQuery),
		limit: clampLimit(req.Limit, g.Config().ToolsLimit), filter: operationFilter(req.Operation, nil)}
	always := f.snapshot.AlwaysTools()
	f.Hits, f.Total = f.snapshot.Search(f.habits, f.query, f.limit+len(always), operationFilter(req.Operation, &f.unhinted))
	f.putAlwaysFirst(always)
	return f
}

// putAlwaysFirst moves the tools that are always listed to the front. They do not count towards the limit.
func (f *SearchResult) putAlwaysFirst(always []*catalog.Tool) {
	if len(always) == 0 {
		return
	}
	var first, others []catalog.Hit
	found := map[*catalog.Tool]bool{}
	for _, h := range f.Hits {
		if found[h.Tool] = true; h.Tool.IsAlways() {
			first = append(first, h)
		} else if len(others) < f.limit {
			others = append(others, h)
		}
	}
	for _, t := range always {
		if !found[t] && (f.filter == nil || f.filter(t)) {
			first = append(first, catalog.Hit{Tool: t, Rank: -1})
		}
	}
	f.Hits = append(first, others...)
}

// withoutUnmatched returns the hits without the tools that are listed only because they have the setting always.
func withoutUnmatched(hits []catalog.Hit) []catalog.Hit {
	if len(hits) == 0 || !hits[0].Tool.IsAlways() {
		return hits
	}
	return slices.DeleteFunc(slices.Clone(hits), func(h catalog.Hit) bool { return h.Rank < 0 })
}

// lockedTools returns the at most 10 best matching tools that cannot be called, and the number of all such matches.
// keep filters the tools. If it is nil, all are kept.
func (f *SearchResult) lockedTools(keep func(*catalog.Tool) bool) ([]catalog.Hit, int) {
	return f.snapshot.SearchLocked(f.query, min(f.limit, maxLocked), combineFilters(f.filter, keep))
}

// DefinitionBytes returns the total size of all searched definitions.
func (f *SearchResult) DefinitionBytes() int { return f.snapshot.TotalDefinitionSize() }

// MatchReasons returns the reasons why a tool was found.
func (f *SearchResult) MatchReasons(h catalog.Hit) []Why {
	return mapSlice(f.snapshot.ExplainHit(f.habits, f.query, h), func(r search.MatchReason) Why {
		return Why{Asked: r.Asked, Found: r.Found, How: r.How.String(), Fields: r.Fields, Share: r.Share}
	})
}

// encodedToolSize returns the size of a hit in an agent's search result. detail is Full or Compact.
func encodedToolSize(h catalog.Hit, detail config.ToolDetailLevel) int {
	return len(appendTool(nil, h, detail))
}

// encodedMatchSize is like encodedToolSize, for a hit with its rank.
func encodedMatchSize(h catalog.Hit, detail config.ToolDetailLevel) int {
	return len(appendMatch(nil, h, detail))
}

// RetrieveTools implements retrieve_tools. It returns the best matching callable tools as a JSON object of at most
// discovery_limit bytes.
func (g *Gateway) RetrieveTools(_ context.Context, req RetrieveRequest) (json.RawMessage, error) {
	if g.ObserveSearch != nil {
		defer func(began time.Time) { g.ObserveSearch(time.Since(began)) }(time.Now())
	}
	cfg := g.Config()
	size, detail := cfg.DiscoveryLimit, cmp.Or(req.Detail, cfg.ToolsDetail)
	found := g.SearchTools(&req)
	snapshot, hits, total := found.snapshot, found.Hits, found.Total
	req.Query = found.query

	var notices []string
	if paused := g.PauseNotice(); paused != "" {
		notices = append(notices, paused)
	}
	var locked []catalog.Hit
	if req.IncludeDisabled || total == 0 {
		var all int
		locked, all = found.lockedTools(g.visibleLockedFilter(snapshot))
		if all > 0 && !req.IncludeDisabled {
			notices = append(notices, fmt.Sprintf(lockedNotice, all))
		}
	}
	if found.unhinted > 0 {
		notices = append(notices, fmt.Sprintf(unhintedNotice, found.unhinted))
	}
	switch none := len(snapshot.Servers()) == 0; {
	case none && (req.Caller.Scope().IsBounded() || !req.Caller.IsKnown()):
		notices = append(notices, noAccessNotice)
	case none:
		notices = append(notices, noServerNotice(len(g.Proposals()), cfg.MCPManagement))
	case total == 0:
		notices = append(notices, noMatchNotice(snapshot, &req, len(notices) > 0, size/20))
	}

	// The size of the parts before and after the tools is limited to a share of the total size.
	before := appendJSONMember(nil, `{"query":`, truncateText(req.Query, size/10))
	before = append(strconv.AppendInt(append(before, `,"total":`...), int64(total), 10), `,"tools":[`...)
	advice := []byte{']'}
	if how := usageInstructions(cfg.Intent.RequireIntent, hits); req.UsageSeen == nil || !req.UsageSeen(how) {
		advice = appendJSONMember(advice, `,"usage_instructions":`, how)
	}
	after := appendNotConnectedServers(nil, snapshot, &req, withoutUnmatched(hits), g.serverState, size/10)
	if req.IncludeDisabled {
		after = appendLockedTools(after, locked, g.approvedDescriptionFunc(snapshot), size/3)
	}
	after = append(after, '}')

	with := func(notices []string) []byte {
		if len(notices) == 0 {
			return advice
		}
		return appendJSONMember(advice[:len(advice):len(advice)], `,"notice":`, strings.Join(notices, " "))
	}
	told := hits
	between := with(notices)
	out, fit := appendTools(before, hits, detail, size-len(before)-len(between)-len(after))
	if !fit {
		cut := truncatedNotice
		if len(hits) == 1 {
			cut = oversizedNotice
		}
		between = with(append(notices, cut))
		tools := encodeToolsWithin(hits, detail, size-len(before)-len(between)-len(after))
		told = hits[:len(tools)]
		out = append(before, joinTools(tools)...)
	}
	if len(snapshot.AlwaysTools()) > 0 { // the record of a call contains the rank of its tool among the matches
		told = slices.SortedStableFunc(slices.Values(told), func(a, b catalog.Hit) int { return cmp.Compare(uint(a.Rank), uint(b.Rank)) })
	}
	g.RecordSearch(req.Caller, req.Query, mapSlice(told, func(h catalog.Hit) tool.ID { return h.Tool.ID }))
	return append(append(out, between...), after...), nil
}

func clampLimit(limit, byDefault int) int {
	if limit == 0 {
		limit = byDefault
	}
	return max(1, min(limit, maxTools))
}

// operationFilter returns a filter for the tools of an operation. It matches call_with or, for tools without hints, the
// inferred operation. If mute is not nil, the filter counts the tools without hints that it leaves out in mute. A nil
// filter selects all tools.
func operationFilter(o policy.Operation, mute *int) func(*catalog.Tool) bool {
	if o == policy.NoOperation {
		return nil
	}
	return func(t *catalog.Tool) bool {
		keep := t.CallWith.Operation() == o || t.InferredOperation().Operation == o
		if !keep && mute != nil && policy.HintsUnset(t.Effective) {
			*mute++
		}
		return keep
	}
}

// visibleLockedFilter returns a filter for the locked tools whose names agents may see. Tool names of a server under
// review are untrusted text, so agents see only tools that were approved before.
func (g *Gateway) visibleLockedFilter(s *catalog.Snapshot) func(*catalog.Tool) bool {
	return func(t *catalog.Tool) bool {
		return !s.Server(t.ID.Server).Quarantined || g.Book.ServerView(t.ID.Server).ToolDecisions(t.ID.Tool).Pin != nil
	}
}

// approvedDescriptionFunc returns a function that returns the description of a tool, or "" if it is not approved. A
// model never sees an unapproved text.
func (g *Gateway) approvedDescriptionFunc(s *catalog.Snapshot) func(*catalog.Tool) string {
	return func(t *catalog.Tool) string {
		if s.Server(t.ID.Server).Quarantined || !g.Book.ServerView(t.ID.Server).ToolDecisions(t.ID.Tool).Approves(t.Fingerprint()) {
			return ""
		}
		return t.Shown().Description
	}
}

// combineFilters returns a filter for tools that both filters select. A nil filter selects all tools.
func combineFilters(a, b func(*catalog.Tool) bool) func(*catalog.Tool) bool {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return func(t *catalog.Tool) bool { return a(t) && b(t) }
}

// Intervals for checking the configuration and for learning again.
const (
	learnCheckInterval = time.Minute
	learnInterval      = 15 * time.Minute
	usePeriod          = 30 * 24 * time.Hour // calls in this period are counted
)

// RunLearning counts the calls of servers periodically and, if the configuration enables it, learns search habits from
// use. It returns when ctx ends.
func (g *Gateway) RunLearning(ctx context.Context) {
	look := time.NewTicker(learnCheckInterval)
	defer look.Stop()
	var learned, counted time.Time
	for {
		if time.Since(counted) >= learnInterval {
			if calls, err := g.Log.CallsByServer(ctx, time.Now().Add(-usePeriod)); err == nil {
				g.calls.Store(&calls)
				counted = time.Now()
			}
		}
		switch {
		case !g.Config().LearnFromUse:
			g.habits.Store(nil)
			learned = time.Time{}
		case time.Since(learned) >= learnInterval:
			err := g.learnSearchHabits(ctx)
			switch {
			case err == nil:
				learned = time.Now()
			case ctx.Err() == nil:
				g.Logger.Warn("could not learn from the log", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// learnSearchHabits computes search habits from successful calls after a search.
func (g *Gateway) learnSearchHabits(ctx context.Context) error {
	uses := map[string][]search.ToolCallAfterQuery{}
	seen := map[searchKey]map[tool.ID]bool{}
	err := forEachCall(ctx, g.Log, time.Time{}, func(r *activity.Record) {
		s := r.Metadata.Search
		if s == nil || s.Rank == 0 || r.Status != activity.Success {
			return
		}
		id := tool.ID{Server: r.ServerName, Tool: r.ToolName}
		key := searchKey{r.SessionID, s.Query}
		if seen[key] == nil {
			seen[key] = map[tool.ID]bool{}
		}
		if !seen[key][id] { // repeated calls count as one use
			seen[key][id] = true
			of := habitOwner(r.Actor)
			uses[of] = append(uses[of], search.ToolCallAfterQuery{Query: s.Query, Tool: id})
		}
	})
	if err != nil {
		return err
	}
	habits := make(map[string]*search.Habits, len(uses))
	for of, all := range uses {
		habits[of] = search.LearnHabits(all)
	}
	g.habits.Store(&habits)
	return nil
}

// habitOwner returns the key of the habits for an actor. Each token and each user has its own habits. All other actors
// share the same habits.
func habitOwner(actor string) string {
	if strings.HasPrefix(actor, "agent:") || strings.HasPrefix(actor, auth.UserPrefix) {
		return actor
	}
	return ""
}

// searchHabitsFor returns the search habits for a caller, or nil if there are none.
func (g *Gateway) searchHabitsFor(c Caller) *search.Habits {
	habits := g.habits.Load()
	if habits == nil || !g.Config().LearnFromUse {
		return nil
	}
	return (*habits)[habitOwner(c.Actor.String())]
}
