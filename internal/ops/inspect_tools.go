package ops

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
