package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// The bounds of a search's answer.
const (
	maxTools  = 100
	maxLocked = 10
	// maxQuery bounds a query, in bytes; more words than that rank nothing better.
	maxQuery = 10_000
)

// SearchResult is what a search finds in one snapshot.
type SearchResult struct {
	Hits  []catalog.Hit // that can be called, best first
	Total int           // of those that match
	mute  int           // that the operation leaves out, for want of hints

	snapshot *catalog.Snapshot
	used     *search.Habits
	query    string
	limit    int
	keep     func(*catalog.Tool) bool // nil keeps all
}

// Find ranks the callable tools that fit a query, as agents are shown them.
func (g *Gateway) Find(req *RetrieveRequest) *SearchResult {
	f := &SearchResult{snapshot: g.Catalog.Current().Within(req.Caller.Scope()), used: g.learned(req.Caller), query: problem.Shown(req.Query, maxQuery),
		limit: clamp(req.Limit, g.Config().ToolsLimit), keep: calledFor(req.Operation, nil)}
	f.Hits, f.Total = f.snapshot.Search(f.used, f.query, f.limit, calledFor(req.Operation, &f.mute))
	return f
}

// Locked ranks the tools that fit as well, but cannot be called, as far as keep has
// it (nil is all): the best, 10 at most, and the number of all.
func (f *SearchResult) Locked(keep func(*catalog.Tool) bool) ([]catalog.Hit, int) {
	return f.snapshot.SearchLocked(f.query, min(f.limit, maxLocked), both(f.keep, keep))
}

// DefinitionBytes is how many bytes all definitions have that the search was among.
func (f *SearchResult) DefinitionBytes() int { return f.snapshot.DefinitionBytes() }

// Why returns why a hit was found.
func (f *SearchResult) Why(h catalog.Hit) []Why {
	reasons := f.snapshot.Explain(f.used, f.query, h)
	out := make([]Why, len(reasons))
	for i, r := range reasons {
		out[i] = Why{Asked: r.Asked, Found: r.Found, How: r.How.String(), Fields: r.Fields, Share: r.Share}
	}
	return out
}

// bytesOf returns how many bytes a hit has in the answer to an agent, where there is
// room for it; detail is Full or Compact.
func bytesOf(h catalog.Hit, detail config.Detail) int { return len(appendTool(nil, h, detail)) }

// bytesAt is bytesOf for the match at this place, from 0.
func bytesAt(place int, h catalog.Hit, detail config.Detail) int {
	return len(appendAt(nil, place, h, detail))
}

// Signature returns a tool as detail compact shows it.
func Signature(t *catalog.Tool) string { return signature(t.ID.Tool, t.InputSchema) }

// Retrieve answers retrieve_tools: the callable tools that fit the query best,
// as the complete JSON object of the contract, in at most discovery_limit bytes.
func (g *Gateway) Retrieve(_ context.Context, req RetrieveRequest) (json.RawMessage, error) {
	if g.Timed != nil {
		defer func(began time.Time) { g.Timed(time.Since(began)) }(time.Now())
	}
	cfg := g.Config()
	size, detail := cfg.DiscoveryLimit, cmp.Or(req.Detail, cfg.ToolsDetail)
	found := g.Find(&req)
	snapshot, hits, total := found.snapshot, found.Hits, found.Total
	req.Query = found.query

	var notices []string
	var locked []catalog.Hit
	if req.IncludeDisabled || total == 0 {
		var all int
		locked, all = found.Locked(g.nameable(snapshot))
		if all > 0 && !req.IncludeDisabled {
			notices = append(notices, fmt.Sprintf(lockedNotice, all))
		}
	}
	if found.mute > 0 {
		notices = append(notices, fmt.Sprintf(muteNotice, found.mute))
	}
	switch none := len(snapshot.Servers()) == 0; {
	case none && (req.Caller.Scope().Bounded() || !req.Caller.Known()):
		notices = append(notices, nothingNotice)
	case none:
		notices = append(notices, noServerNotice(len(g.Proposals()), cfg.MCPManagement))
	case total == 0:
		notices = append(notices, tryNotice(snapshot, &req, len(notices) > 0, size/20))
	}

	// What comes before and after the tools has its part of the room, at most.
	before := text(nil, `{"query":`, shortened(req.Query, size/10))
	before = append(strconv.AppendInt(append(before, `,"total":`...), int64(total), 10), `,"tools":[`...)
	advice := []byte{']'}
	if how := usage(cfg.Intent.RequireIntent, hits); req.Told == nil || !req.Told(how) {
		advice = text(advice, `,"usage_instructions":`, how)
	}
	after := appendNotConnected(nil, snapshot, &req, hits, g.state, size/10)
	if req.IncludeDisabled {
		after = appendLocked(after, locked, g.shownDescription(snapshot), size/3)
	}
	after = append(after, '}')

	with := func(notices []string) []byte {
		if len(notices) == 0 {
			return advice
		}
		return text(advice[:len(advice):len(advice)], `,"notice":`, strings.Join(notices, " "))
	}
	told := hits
	between := with(notices)
	out, fit := appendTools(before, hits, detail, size-len(before)-len(between)-len(after))
	if !fit {
		cut := cutNotice
		if len(hits) == 1 {
			cut = aloneNotice
		}
		between = with(append(notices, cut))
		tools := fitTools(hits, detail, size-len(before)-len(between)-len(after))
		told = hits[:len(tools)]
		out = append(before, commas(tools)...)
	}
	ids := make([]tool.ID, len(told))
	for i, h := range told {
		ids[i] = h.Tool.ID
	}
	g.Searched(req.Caller, req.Query, ids)
	return append(append(out, between...), after...), nil
}

func clamp(limit, byDefault int) int {
	if limit == 0 {
		limit = byDefault
	}
	return max(1, min(limit, maxTools))
}

// calledFor keeps the tools of an operation: those whose call_with is that, and
// of those that declare nothing the ones that seem to be. It counts in mute those
// that it leaves out and that declare nothing; nil is not counted. Nil keeps all.
func calledFor(o policy.Operation, mute *int) func(*catalog.Tool) bool {
	if o == policy.NoOperation {
		return nil
	}
	return func(t *catalog.Tool) bool {
		keep := t.CallWith.Operation() == o || t.Inferred().Operation == o
		if !keep && mute != nil && policy.Silent(t.Effective) {
			*mute++
		}
		return keep
	}
}

// nameable keeps the locked tools that an agent may know of. The names of a
// server that waits for review are text of its own: only those that were
// approved before are known.
func (g *Gateway) nameable(s *catalog.Snapshot) func(*catalog.Tool) bool {
	return func(t *catalog.Tool) bool {
		return !s.Server(t.ID.Server).Quarantined || g.Book.View(t.ID.Server).Tool(t.ID.Tool).Pin != nil
	}
}

// shownDescription is empty unless this very text was approved: what nobody has
// approved is never shown to a model.
func (g *Gateway) shownDescription(s *catalog.Snapshot) func(*catalog.Tool) string {
	return func(t *catalog.Tool) string {
		if s.Server(t.ID.Server).Quarantined || !g.Book.View(t.ID.Server).Tool(t.ID.Tool).Approves(t.Fingerprint()) {
			return ""
		}
		return t.Description
	}
}

// both keeps what both keep; nil keeps all.
func both(a, b func(*catalog.Tool) bool) func(*catalog.Tool) bool {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return func(t *catalog.Tool) bool { return a(t) && b(t) }
}
