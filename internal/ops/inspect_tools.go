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

// Tools returns a page of the known tools that a filter selects.
func (i *Inspector) Tools(ctx context.Context, _ Caller, q ToolQuery) (ToolList, error) {
	l := i.lists.kept(q.Snapshot, q.ToolFilter)
	if l == nil {
		l = i.list(ctx, q.ToolFilter)
		if len(l.tools) > q.Limit {
			i.lists.keep(l)
		}
	}
	page := l.tools[min(q.Offset, len(l.tools)):]
	page = page[:min(q.Limit, len(page))]
	out := ToolList{Tools: make([]ToolRow, len(page)), Total: len(l.tools), Limit: q.Limit, Offset: q.Offset, Snapshot: l.id, Facets: l.facets, Unhinted: l.unhinted}
	for n, t := range page {
		out.Tools[n] = l.row(t)
		if q.Detail == Full {
			out.Tools[n].ToolMore = i.more(t)
		}
	}
	return out, nil
}

// Tool returns one tool, or SERVER_NOT_FOUND or TOOL_NOT_FOUND with the nearest names.
func (i *Inspector) Tool(ctx context.Context, _ Caller, in ToolRef) (ToolDetail, error) {
	t, err := i.gateway.FindTool(in.ID())
	if err != nil {
		return ToolDetail{}, err
	}
	d := ToolDetail{ToolView: i.gateway.ViewTrusted(t), Used: i.toolUse(ctx).of(t), Lane: t.CallWith.Operation().String(), Guessed: t.Undeclared(), Signature: Signature(t),
		Tokens: tokensIn(bytesOf(catalog.Hit{Tool: t}, config.Full)), CompactTokens: tokensIn(bytesOf(catalog.Hit{Tool: t}, config.Compact))}
	if said, any := t.HintOverrides(); any {
		d.Corrected = said.AppendJSON(nil)
	}
	return d, nil
}

// list selects tools from what there is now.
func (i *Inspector) list(ctx context.Context, f ToolFilter) *list {
	snapshot := i.gateway.Catalog.Current()
	l := &list{filter: f, facets: Facets{Lane: map[string]int{}, Hints: map[string]int{}, Use: map[string]int{}, Server: map[string]int{}}, tools: make([]*catalog.Tool, 0, snapshot.ToolCount()), use: i.toolUse(ctx)}
	text, servers, lately := strings.ToLower(f.Text), []*catalog.Server{}, time.Now().Add(-recent)
	lanes, statuses := map[policy.Variant]int{}, Counts{}
	for _, s := range snapshot.Servers() {
		ofServer, inServer, begin := f.Server == "" || f.Server == s.Name, 0, len(l.tools)
		if ofServer {
			servers = append(servers, s)
		}
		for _, t := range s.Tools {
			if text != "" && !strings.Contains(strings.ToLower(t.ID.String()), text) && !strings.Contains(strings.ToLower(t.Title), text) {
				continue
			}
			hints, use := hintsOf(t), l.use.when(t, lately)
			fits := [...]bool{ofServer,
				(f.Operation == "" || f.Operation == t.CallWith.Operation().String()) && (f.CallWith == "" || f.CallWith == t.CallWith.String()),
				f.Status == "" || f.Status == cmp.Or(StatusOf(t), policy.Callable.Word()),
				f.Hints == "" || f.Hints == hints,
				f.Use == "" || f.Use == use,
			}
			misses := 0
			for _, fit := range fits {
				if !fit {
					misses++
				}
			}
			// A facet counts what all filters but its own let through.
			counts := func(own int) bool { return misses == 0 || misses == 1 && !fits[own] }
			if counts(0) {
				inServer++
			}
			if counts(1) {
				lanes[t.CallWith]++
			}
			if counts(2) {
				statuses.Add(t)
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
		if f.Sort != "" { // by name; the servers are
			slices.SortFunc(l.tools[begin:], func(a, b *catalog.Tool) int { return strings.Compare(a.ID.Tool, b.ID.Tool) })
		}
	}
	for with, n := range lanes {
		l.facets.Lane[with.Operation().String()] = n
	}
	l.facets.Status = statuses.ByWord()
	l.unhinted = allUnhinted(servers, i.gateway.Config())
	switch f.Sort {
	case "calls":
		l.sortUsed(func(a, b activity.Use) int { return cmp.Compare(b.Calls, a.Calls) })
	case "last":
		l.sortUsed(func(a, b activity.Use) int { return b.Last.Compare(a.Last) })
	case "tokens":
		slices.SortStableFunc(l.tools, func(a, b *catalog.Tool) int { return cmp.Compare(len(b.Raw), len(a.Raw)) })
	}
	if f.Reverse {
		slices.Reverse(l.tools)
	}
	return l
}

// toolUse returns what the log knows. Without it nothing was called; why is in the
// daemon's own log.
func (i *Inspector) toolUse(ctx context.Context) toolUse {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	use, _ := i.log.ToolUse(ctx)
	return use
}

// sortUsed puts the tools first that were called, in an order; the others, and those
// that are alike, stay in theirs.
func (l *list) sortUsed(order func(a, b activity.Use) int) {
	type called struct {
		*catalog.Tool
		activity.Use
	}
	used, others := []called{}, make([]*catalog.Tool, 0, len(l.tools))
	for _, t := range l.tools {
		if u := l.use[[2]string{t.ID.Server, t.ID.Tool}]; u.Calls > 0 {
			used = append(used, called{t, u})
		} else {
			others = append(others, t)
		}
	}
	slices.SortStableFunc(used, func(a, b called) int { return order(a.Use, b.Use) })
	for n, u := range used {
		l.tools[n] = u.Tool
	}
	copy(l.tools[len(used):], others)
}

// hintsOf returns who says what a tool does.
func hintsOf(t *catalog.Tool) string {
	if t.Undeclared() {
		return "guessed"
	}
	if _, corrected := t.HintOverrides(); corrected {
		return "corrected"
	}
	return "said"
}

// maxSummary is how many bytes of a description a list shows.
const maxSummary = 240

func (l *list) row(t *catalog.Tool) ToolRow {
	summary, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
	if cut := wirejson.Clip(summary, maxSummary); cut != summary {
		summary = cut + "…"
	}
	return ToolRow{
		Name: t.ID.String(), Server: t.ID.Server, Tool: t.ID.Tool, Title: t.Title, Summary: summary,
		CallWith: t.CallWith.String(), Lane: t.CallWith.Operation().String(), Guessed: t.Undeclared(),
		Status: StatusOf(t), Deprecated: t.Deprecated(),
		Tokens: tokensIn(len(t.Raw)), Used: l.use.of(t),
	}
}

// more is what a full list has beside.
func (i *Inspector) more(t *catalog.Tool) *ToolMore {
	v := i.gateway.ViewTrusted(t)
	return &ToolMore{Description: &v.Description, InputSchema: v.InputSchema, OutputSchema: v.OutputSchema,
		Annotations: v.Annotations, DeclaredAnnotations: v.DeclaredAnnotations,
		InferredOperation: v.InferredOperation, InferredReason: v.InferredReason, Trust: v.Trust}
}
