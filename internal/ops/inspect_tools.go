package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/store/activity"
)

// Tools returns a page of the tools that match a filter.
func (i *Inspector) Tools(ctx context.Context, _ Caller, q ToolQuery) (ToolList, error) {
	l := i.lists.find(q.Snapshot, q.ToolFilter)
	if l == nil {
		l = i.selectTools(ctx, q.ToolFilter)
		if len(l.tools) > q.Limit {
			i.lists.add(l)
		}
	}
	page := l.tools[min(q.Offset, len(l.tools)):]
	page = page[:min(q.Limit, len(page))]
	out := ToolList{Tools: make([]ToolRow, len(page)), Total: len(l.tools), Limit: q.Limit, Offset: q.Offset, Snapshot: l.id, Facets: l.facets, Unhinted: l.unhinted}
	for n, t := range page {
		out.Tools[n] = l.toolRow(t)
		if q.Detail == Full {
			out.Tools[n].FullToolFields = i.fullToolFields(t)
		}
	}
	return out, nil
}

// Tool returns one tool, also by its alias. If it does not exist, it returns SERVER_NOT_FOUND or TOOL_NOT_FOUND with
// similar names.
func (i *Inspector) Tool(ctx context.Context, _ Caller, in ToolRef) (ToolDetail, error) {
	t, err := i.gateway.findTool(in.ID())
	if err != nil {
		if t = i.gateway.Catalog.Current().Resolve(in.ID(), policy.Scope{}); t != nil {
			err = nil
		}
	}
	if err != nil {
		return ToolDetail{}, err
	}
	d := ToolDetail{ToolView: i.gateway.toolViewWithDecisions(t), ToolUsage: i.loadToolUsage(ctx).usageOf(t), Lane: t.CallWith.Operation().String(), Guessed: t.LacksDeclaredHints(), Signature: formatToolSignature(t.Shown().ShownName(), t.InputSchema),
		Tokens: estimateTokens(encodedToolSize(catalog.Hit{Tool: t}, config.Full)), CompactTokens: estimateTokens(encodedToolSize(catalog.Hit{Tool: t}, config.Compact))}
	if said, any := t.HintOverrides(); any {
		d.Corrected = said.AppendJSON(nil)
	}
	return d, nil
}

// selectTools filters, counts and sorts the tools of the current snapshot.
func (i *Inspector) selectTools(ctx context.Context, f ToolFilter) *filteredTools {
	snapshot := i.gateway.Catalog.Current()
	l := &filteredTools{filter: f, facets: Facets{Lane: map[string]int{}, Hints: map[string]int{}, Use: map[string]int{}, Server: map[string]int{}}, tools: make([]*catalog.Tool, 0, snapshot.ToolCount()), use: i.loadToolUsage(ctx)}
	text, servers, lately := strings.ToLower(f.Text), []*catalog.Server{}, time.Now().Add(-recent)
	lanes, statuses := map[policy.CallToolVariant]int{}, Counts{}
	for _, s := range snapshot.Servers() {
		ofServer, inServer, begin := f.Server == "" || f.Server == s.Name, 0, len(l.tools)
		if ofServer {
			servers = append(servers, s)
		}
		for _, t := range s.Tools {
			if text != "" && !strings.Contains(strings.ToLower(t.ID.String()), text) && !strings.Contains(strings.ToLower(t.Title), text) && !strings.Contains(strings.ToLower(t.Shown().Alias), text) {
				continue
			}
			hints, use := hintSource(t), l.use.recency(t, lately)
			fits := [...]bool{ofServer,
				(f.Operation == "" || f.Operation == t.CallWith.Operation().String()) && (f.CallWith == "" || f.CallWith == t.CallWith.String()),
				f.Status == "" || f.Status == cmp.Or(displayedToolStatus(t), policy.Callable.Word()),
				f.Hints == "" || f.Hints == hints,
				f.Use == "" || f.Use == use,
			}
			misses := 0
			for _, fit := range fits {
				if !fit {
					misses++
				}
			}
			// A facet counts the tools that match all other filters.
			counts := func(own int) bool { return misses == 0 || misses == 1 && !fits[own] }
			if counts(0) {
				inServer++
			}
			if counts(1) {
				lanes[t.CallWith]++
			}
			if counts(2) {
				statuses.AddTool(t)
			}
			if counts(3) {
				l.facets.Hints[hints]++
			}
			if counts(4) {
				l.facets.Use[use]++
			}
			if misses == 0 {
				l.tools = append(l.tools, t)
			}
		}
		if inServer > 0 {
			l.facets.Server[s.Name] = inServer
		}
		if f.Sort != "" { // sort by name within each server; the servers are already sorted
			slices.SortFunc(l.tools[begin:], func(a, b *catalog.Tool) int { return strings.Compare(a.ID.Tool, b.ID.Tool) })
		}
	}
	for with, n := range lanes {
		l.facets.Lane[with.Operation().String()] = n
	}
	l.facets.Status = statuses.ByStatus()
	l.unhinted = listServersWithUnhintedTools(servers, i.gateway.Config())
	switch f.Sort {
	case "calls":
		l.sortCalledFirst(func(a, b activity.ToolUsage) int { return cmp.Compare(b.Calls, a.Calls) })
	case "last":
		l.sortCalledFirst(func(a, b activity.ToolUsage) int { return b.Last.Compare(a.Last) })
	case "tokens":
		slices.SortStableFunc(l.tools, func(a, b *catalog.Tool) int { return cmp.Compare(len(b.Raw), len(a.Raw)) })
	}
	if f.Reverse {
		slices.Reverse(l.tools)
	}
	return l
}

// loadToolUsage returns the usage of all tools. It is empty if the log cannot be read.
func (i *Inspector) loadToolUsage(ctx context.Context) usageByTool {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	use, _ := i.log.ToolUse(ctx)
	return use
}

// sortCalledFirst sorts the called tools by order and moves them to the front. The sort is stable.
func (l *filteredTools) sortCalledFirst(order func(a, b activity.ToolUsage) int) {
	type called struct {
		*catalog.Tool
		activity.ToolUsage
	}
	used, others := []called{}, make([]*catalog.Tool, 0, len(l.tools))
	for _, t := range l.tools {
		if u := l.use[[2]string{t.ID.Server, t.ID.Tool}]; u.Calls > 0 {
			used = append(used, called{t, u})
		} else {
			others = append(others, t)
		}
	}
	slices.SortStableFunc(used, func(a, b called) int { return order(a.ToolUsage, b.ToolUsage) })
	for n, u := range used {
		l.tools[n] = u.Tool
	}
	copy(l.tools[len(used):], others)
}

// hintSource returns the source of a tool's hints: guessed, corrected or said.
func hintSource(t *catalog.Tool) string {
	if t.LacksDeclaredHints() {
		return "guessed"
	}
	if _, corrected := t.HintOverrides(); corrected {
		return "corrected"
	}
	return "said"
}

// maxSummary limits the length of a description in a list, in bytes.
const maxSummary = 240

func (l *filteredTools) toolRow(t *catalog.Tool) ToolRow {
	summary, _, _ := strings.Cut(strings.TrimSpace(t.Shown().Description), "\n")
	if cut := wirejson.ClipText(summary, maxSummary); cut != summary {
		summary = cut + "…"
	}
	return ToolRow{
		Name: t.ID.String(), Server: t.ID.Server, Tool: t.ID.Tool, Title: t.Title, Summary: summary, Alias: t.Shown().Alias, Always: t.IsAlways(),
		CallWith: t.CallWith.String(), Lane: t.CallWith.Operation().String(), Guessed: t.LacksDeclaredHints(),
		Status: displayedToolStatus(t), Deprecated: t.IsDeprecated(),
		Tokens: estimateTokens(len(t.Raw)), ToolUsage: l.use.usageOf(t),
	}
}

// fullToolFields returns the fields that only a full list contains.
func (i *Inspector) fullToolFields(t *catalog.Tool) *FullToolFields {
	v := i.gateway.toolViewWithDecisions(t)
	return &FullToolFields{Description: &v.Description, DeclaredDescription: v.DeclaredDescription, Settings: v.Settings, ShadowedBy: v.ShadowedBy, InputSchema: v.InputSchema, OutputSchema: v.OutputSchema,
		Annotations: v.Annotations, DeclaredAnnotations: v.DeclaredAnnotations,
		InferredOperation: v.InferredOperation, InferredReason: v.InferredReason, Trust: v.Trust}
}

// ToolQuery selects a page of tools. Empty fields select everything.
type ToolQuery struct {
	ToolFilter
	Detail   string `query:"detail" enum:"slim,full" doc:"slim (default): the fields of a list. full: also the description, schemas, hints and decisions."`
	Limit    int    `query:"limit" min:"1" max:"1000" default:"100" doc:"The maximum number of tools."`
	Offset   int    `query:"offset" min:"0" max:"2147483648" doc:"The number of tools to skip."`
	Snapshot string `query:"snapshot" doc:"The snapshot of an earlier page, to get another page of the same list. Use the same filters. MCPProxy keeps a snapshot only for a limited time."`
}

// Full is the value of ToolQuery.Detail for a list with all fields.
const Full = "full"

// ToolFilter selects and sorts tools.
type ToolFilter struct {
	Server    string `query:"server" doc:"Only tools of this server."`
	Operation string `query:"operation_type" words:"operation" doc:"Only tools of this operation type, according to their call_with."`
	CallWith  string `query:"call_with" words:"variant" doc:"Only tools whose call_with is this calling tool."`
	Status    string `query:"status" words:"status or callable" doc:"Only tools with this status. callable: only tools that can be called."`
	Hints     string `query:"hints" enum:"said,corrected,guessed" doc:"Only tools whose hints come from this source. said: the server. corrected: hint_overrides. guessed: neither, so that the hints are inferred."`
	Use       string `query:"use" enum:"recent,earlier,never" doc:"Only tools with this use, according to the activity log. recent: called in the last 30 days. earlier: called before that. never: not called."`
	Text      string `query:"q" doc:"Only tools with this text in their name, alias or title. Case is ignored."`
	Sort      string `query:"sort" enum:"name,calls,last,tokens" doc:"The order. name: alphabetical. calls: most calls first. last: most recent call first. tokens: largest definition first. Default: the order in which the servers list them."`
	Reverse   bool   `query:"reverse" doc:"Whether to reverse the order."`
}

// ToolList is a page of tools.
type ToolList struct {
	Tools    []ToolRow  `json:"tools"`
	Total    int        `json:"total"`
	Limit    int        `json:"limit"`
	Offset   int        `json:"offset"`
	Snapshot string     `json:"snapshot,omitempty" doc:"The snapshot to send for the other pages of this list. Absent if the response contains the whole list."`
	Facets   Facets     `json:"facets"`
	Unhinted []Unhinted `json:"unhinted,omitempty" doc:"The servers for which infer_hints: enforce would let tools run as reads, most such tools first."`
}

// Facets count tools by filter value. Each facet counts the tools that match all other filters.
type Facets struct {
	Lane   map[string]int `json:"lane" doc:"The number of tools by operation type. The filter call_with is treated as a filter by operation type."`
	Status map[string]int `json:"status" doc:"The number of tools by status; callable for tools that can be called."`
	Hints  map[string]int `json:"hints" doc:"The number of tools by the source of their hints: said, corrected and guessed."`
	Use    map[string]int `json:"use" doc:"The number of tools by use: recent, earlier and never."`
	Server map[string]int `json:"server"`
}

// ToolRow is a tool in a list.
type ToolRow struct {
	Name       string `json:"name" doc:"The tool id: server:tool."`
	Server     string `json:"server"`
	Tool       string `json:"tool"`
	Title      string `json:"title,omitempty"`
	Summary    string `json:"summary" doc:"The first line of the description, shortened."`
	Alias      string `json:"alias,omitempty" doc:"The name that agents see instead."`
	Always     bool   `json:"always,omitempty" doc:"Whether each answer of retrieve_tools begins with the tool."`
	CallWith   string `json:"call_with" words:"variant"`
	Lane       string `json:"lane" words:"operation" doc:"The operation type of call_with."`
	Guessed    bool   `json:"guessed,omitempty" doc:"Whether the operation type is inferred: neither the server nor hint_overrides declares it."`
	Status     string `json:"status,omitempty" words:"shown status" doc:"Why the tool cannot be called. Absent if it can."`
	Deprecated bool   `json:"deprecated,omitempty"`
	Tokens     int    `json:"tokens" doc:"The estimated size of its definition in tokens (bytes divided by 4)."`
	ToolUsage
	*FullToolFields
}

// ToolUsage contains the number of calls of a tool and the time of the last call.
type ToolUsage struct {
	Calls    int64      `json:"calls" doc:"The number of its calls in the whole activity log."`
	LastUsed *time.Time `json:"last_used,omitempty"`
}

// ToolDetail is one tool with the details for its page in the web UI.
type ToolDetail struct {
	ToolView
	ToolUsage
	Lane          string          `json:"lane" words:"operation" doc:"The operation type of call_with."`
	Guessed       bool            `json:"guessed,omitempty" doc:"Whether the operation type is inferred: neither the server nor hint_overrides declares it."`
	Corrected     json.RawMessage `json:"corrected_annotations,omitempty" doc:"The hints that hint_overrides set. Absent if there are none."`
	Signature     string          `json:"signature" doc:"The signature that agents get instead of the schema if the detail is compact."`
	Tokens        int             `json:"tokens" doc:"The estimated size of the tool with its schema in an agent's search result, in tokens (bytes divided by 4)."`
	CompactTokens int             `json:"compact_tokens" doc:"The estimated size with the signature instead of the schema, in tokens."`
}

// FullToolFields contains the additional fields of the detail level full.
type FullToolFields struct {
	Description         *string         `json:"description,omitempty" doc:"The description that agents get."`
	DeclaredDescription string          `json:"declared_description,omitempty" doc:"The server's description. Absent if agents get it unchanged."`
	Settings            *ToolSettings   `json:"settings,omitempty" doc:"The user's settings for the tool. Absent if there are none."`
	ShadowedBy          string          `json:"shadowed_by,omitempty" doc:"The tool of the same server whose alias is the name of this tool."`
	InputSchema         json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema        json.RawMessage `json:"outputSchema,omitempty"`
	Annotations         json.RawMessage `json:"annotations,omitempty" doc:"The effective hints. Hints that neither the server nor hint_overrides set are absent."`
	DeclaredAnnotations json.RawMessage `json:"declared_annotations,omitempty" doc:"The hints that the server declared. Absent if they are equal to the effective hints."`
	InferredOperation   string          `json:"inferred_operation,omitempty" words:"operation" doc:"The inferred operation type of a tool without hints. Absent if the tool has hints, or if infer_hints is off."`
	InferredReason      string          `json:"inferred_reason,omitempty" doc:"The reason for inferred_operation."`
	Trust               *Trust          `json:"trust,omitempty" doc:"The approval of the tool."`
}

// ToToolView converts a row of a full list to a ToolView.
func (r *ToolRow) ToToolView() ToolView {
	v := ToolView{Name: r.Name, Server: r.Server, Tool: r.Tool, Title: r.Title, CallWith: r.CallWith, Status: r.Status, Deprecated: r.Deprecated}
	if m := r.FullToolFields; m != nil {
		v.InputSchema, v.OutputSchema, v.Annotations, v.DeclaredAnnotations = m.InputSchema, m.OutputSchema, m.Annotations, m.DeclaredAnnotations
		v.DeclaredDescription, v.Settings, v.ShadowedBy = m.DeclaredDescription, m.Settings, m.ShadowedBy
		v.InferredOperation, v.InferredReason, v.Trust = m.InferredOperation, m.InferredReason, m.Trust
		if m.Description != nil {
			v.Description = *m.Description
		}
	}
	return v
}

// toolListCache caches the tool lists that clients read page by page. The lists keep old catalog snapshots in memory,
// so the cache is small and short-lived.
type toolListCache struct {
	mu  sync.Mutex       // guards the field all
	all []*filteredTools // oldest first
}

// filteredTools contains the tools that match a filter.
type filteredTools struct {
	id       string
	filter   ToolFilter
	tools    []*catalog.Tool
	use      usageByTool
	facets   Facets
	unhinted []Unhinted
	used     time.Time
}

const (
	maxLists     = 8
	listLifetime = time.Minute // lifetime since the last read page
)

// add stores a list with a new ID.
func (l *toolListCache) add(one *filteredTools) {
	one.id, one.used = rand.Text(), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeExpired()
	if l.all = append(l.all, one); len(l.all) > maxLists {
		l.all = slices.Delete(l.all, 0, 1)
	}
}

// find returns the list with this ID and filter, or nil.
func (l *toolListCache) find(id string, f ToolFilter) *filteredTools {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeExpired()
	for _, one := range l.all {
		if id != "" && one.id == id && one.filter == f {
			one.used = time.Now()
			return one
		}
	}
	return nil
}

// removeExpired removes the lists that were not read during listLifetime.
func (l *toolListCache) removeExpired() {
	l.all = slices.DeleteFunc(l.all, func(one *filteredTools) bool { return time.Since(one.used) > listLifetime })
}

// usageByTool maps server and tool names to their usage.
type usageByTool map[[2]string]activity.ToolUsage

func (u usageByTool) usageOf(t *catalog.Tool) ToolUsage {
	use := u[[2]string{t.ID.Server, t.ID.Tool}]
	return ToolUsage{Calls: use.Calls, LastUsed: timeOrNil(use.Last)}
}

// recent is the age up to which a call counts as recent.
const recent = 30 * 24 * time.Hour

// recency classifies the last call of a tool: recent (after lately), earlier or never.
func (u usageByTool) recency(t *catalog.Tool, lately time.Time) string {
	switch use := u[[2]string{t.ID.Server, t.ID.Tool}]; {
	case use.Calls == 0:
		return "never"
	case use.Last.Before(lately):
		return "earlier"
	default:
		return "recent"
	}
}

// SearchQuery is a search by a user. Empty fields mean the configured defaults.
type SearchQuery struct {
	Query     string `query:"q" required:"true" doc:"The search terms: what the tool should do."`
	Limit     int    `query:"limit" min:"1" max:"100" doc:"The maximum number of tools. Default: the configured tools_limit."`
	Operation string `query:"operation_type" words:"operation" doc:"Only tools of this operation type: according to their call_with or, for tools without hints, to the inferred operation."`
	Explain   bool   `query:"explain" doc:"Whether the response says for each tool why it was found."`
	Locked    bool   `query:"include_disabled" doc:"Whether the response lists matching tools that cannot be called, in locked."`
}

// SearchAnswer is the result of a search. Total counts the callable matches.
type SearchAnswer struct {
	Query     string      `json:"query"`
	Total     int         `json:"total"`
	TookMS    float64     `json:"took_ms" doc:"The duration of the search itself, in milliseconds."`
	Tokens    int         `json:"tokens" doc:"The estimated size of the tools in an agent's search result, in tokens (bytes divided by 4)."`
	AllTokens int         `json:"all_tokens" doc:"The estimated size of all known definitions, in tokens."`
	Tools     []FoundTool `json:"tools"`
	Locked    []FoundTool `json:"locked" doc:"Matching tools that cannot be called, best match first, at most 10. Absent without include_disabled."`
}

// FoundTool is a tool that a search found.
type FoundTool struct {
	ToolView
	ToolUsage
	Guessed bool   `json:"guessed,omitempty" doc:"Whether the operation type is inferred: neither the server nor hint_overrides declares it."`
	Tokens  int    `json:"tokens,omitempty" doc:"The estimated size of the tool in an agent's search result, in tokens (bytes divided by 4)."`
	Remedy  string `json:"remedy,omitempty" doc:"What the user can do to make the tool callable."`
}

// SearchTools returns the same tools as retrieve_tools in the same order.
func (i *Inspector) SearchTools(ctx context.Context, c Caller, q SearchQuery) (SearchAnswer, error) {
	operation, _ := policy.ParseOperation(q.Operation) // the surface has validated it
	began := time.Now()
	found := i.gateway.SearchTools(&RetrieveRequest{Query: q.Query, Limit: q.Limit, Operation: operation, Caller: c})
	var locked []catalog.Hit
	if q.Locked {
		locked, _ = found.lockedTools(nil)
	}
	took := time.Since(began)
	a := SearchAnswer{Query: q.Query, Total: found.Total, TookMS: float64(took.Microseconds()) / 1000,
		AllTokens: estimateTokens(found.DefinitionBytes()), Tools: make([]FoundTool, len(found.Hits)), Locked: make([]FoundTool, len(locked))}
	detail, use := i.gateway.Config().ToolsDetail, i.loadToolUsage(ctx)
	shown := func(h catalog.Hit) FoundTool {
		return FoundTool{ToolView: toToolView(h.Tool, h.Score), ToolUsage: use.usageOf(h.Tool), Guessed: h.Tool.LacksDeclaredHints()}
	}
	for n, h := range found.Hits {
		one := shown(h)
		one.Tokens = estimateTokens(encodedMatchSize(h, detail))
		if q.Explain && h.Rank >= 0 {
			one.Why = found.MatchReasons(h)
		}
		a.Tokens += one.Tokens
		a.Tools[n] = one
	}
	for n, h := range locked {
		a.Locked[n] = shown(h)
		a.Locked[n].Remedy = h.Tool.Status.Remedy()
	}
	return a, nil
}
