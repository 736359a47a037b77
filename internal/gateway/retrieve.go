package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/door"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/tool"
)

// The bounds of a search's answer.
const (
	maxTools  = 100
	maxLocked = 10
	// maxQuery bounds a query, in bytes; more words than that rank nothing better.
	maxQuery = 10_000
	// maxAnswer is where an answer stops carrying whole schemas, in bytes: the
	// tools after that come with their signature.
	maxAnswer = 512 << 10
)

// fitting is how much to say about a tool behind an answer of that size.
func fitting(t *catalog.Tool, detail config.Detail, size int) config.Detail {
	if size+len(t.InputSchema) > maxAnswer {
		return config.Compact
	}
	return detail
}

// usage is what an agent reads beside the tools: at most 300 bytes.
const usage = "Call a tool with its call_with variant and name: call_tool_read only reads, call_tool_write creates or updates, call_tool_destructive deletes or cannot be undone. An intent, if given, must match the variant. If unsure use call_tool_destructive."

// Retrieve answers retrieve_tools: the callable tools that fit the query best,
// as the complete JSON object of the contract.
func (g *Gateway) Retrieve(_ context.Context, req RetrieveRequest) (json.RawMessage, error) {
	cfg := g.Config()
	if len(req.Query) > maxQuery {
		req.Query = problem.Shown(req.Query, maxQuery)
	}
	limit := clamp(req.Limit, cfg.ToolsLimit)
	detail := cmp.Or(req.Detail, cfg.ToolsDetail)
	keep := both(inScope(req.Caller.Actor), calledFor(req.Operation))
	snapshot := g.Catalog.Current()
	hits, total := snapshot.SearchUsed(g.learned(), req.Query, limit, keep)
	found := make([]tool.ID, len(hits))
	for i, h := range hits {
		found[i] = h.Tool.ID
	}
	g.Searched(req.Caller, req.Query, found)

	out := make([]byte, 0, 1024+len(hits)*1024)
	out = text(out, `{"query":`, req.Query)
	out = append(out, `,"total":`...)
	out = strconv.AppendInt(out, int64(total), 10)
	out = append(out, `,"tools":[`...)
	for i, h := range hits {
		if len(out) > 4*maxAnswer {
			break // total says that there are more
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendTool(out, h, fitting(h.Tool, detail, len(out)))
	}
	out = text(out, `],"usage_instructions":`, usage)
	if req.IncludeDisabled {
		out = g.appendLocked(out, snapshot, req.Query, min(limit, maxLocked), both(keep, g.nameable(snapshot)))
	} else if total == 0 {
		out = appendNotice(out, snapshot, req.Query, both(keep, g.nameable(snapshot)))
	}
	return append(out, '}'), nil
}

func clamp(limit, byDefault int) int {
	if limit == 0 {
		limit = byDefault
	}
	return max(1, min(limit, maxTools))
}

// calledFor keeps the tools whose call_with is that of the operation; nil keeps
// all.
func calledFor(o policy.Operation) func(*catalog.Tool) bool {
	if o == policy.NoOperation {
		return nil
	}
	return func(t *catalog.Tool) bool { return t.CallWith.Operation() == o }
}

func appendTool(out []byte, h catalog.Hit, detail config.Detail) []byte {
	t := h.Tool
	out = text(out, `{"name":`, t.ID.String())
	out = text(out, `,"server":`, t.ID.Server)
	out = text(out, `,"description":`, t.Description)
	if detail == config.Compact {
		out = text(out, `,"signature":`, signature(t.ID.Tool, t.InputSchema))
	} else if t.InputSchema != nil {
		out = append(out, `,"inputSchema":`...)
		out = append(out, t.InputSchema...)
	}
	out = append(out, `,"score":`...)
	out = strconv.AppendFloat(out, math.Ceil(h.Score*1e4)/1e4, 'f', -1, 64)
	out = append(out, `,"annotations":`...)
	out = t.Effective.AppendJSON(out)
	out = append(out, `,"call_with":"`...)
	out = append(out, t.CallWith.String()...)
	if in := t.Inferred(); in.Operation != policy.NoOperation {
		out = append(out, `","inferred_operation":"`...)
		out = append(out, in.Operation.String()...)
	}
	return append(out, `"}`...)
}

// text appends a member that is a text, with what comes before its value.
func text(out []byte, before, value string) []byte {
	return rawjson.AppendString(append(out, before...), value)
}

// appendLocked adds what exists but cannot be called, after the callable
// results and only when there is any.
func (g *Gateway) appendLocked(out []byte, s *catalog.Snapshot, query string, most int, keep func(*catalog.Tool) bool) []byte {
	hits, _ := s.SearchLocked(query, most, keep)
	if len(hits) == 0 {
		return out
	}
	present := map[policy.Status]bool{}
	out = append(out, `,"disabled":[`...)
	for i, h := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		present[h.Tool.Status] = true
		out = text(out, `{"name":`, h.Tool.ID.Tool)
		out = text(out, `,"server":`, h.Tool.ID.Server)
		out = text(out, `,"description":`, g.shownDescription(s, h.Tool))
		out = append(out, `,"status":"`...)
		out = append(out, h.Tool.Status.String()...)
		out = append(out, `"}`...)
	}
	out = append(out, `],"remediation":{`...)
	first := true
	for _, status := range policy.Statuses() {
		if !present[status] {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = rawjson.AppendString(out, status.String())
		out = append(out, ':')
		out = rawjson.AppendString(out, status.Remedy())
	}
	return append(out, '}')
}

// shownDescription is empty unless this very text was approved: what nobody has
// approved is never shown to a model.
func (g *Gateway) shownDescription(s *catalog.Snapshot, t *catalog.Tool) string {
	if s.Server(t.ID.Server).Quarantined || !g.Book.View(t.ID.Server).Tool(t.ID.Tool).Approves(t.Fingerprint()) {
		return ""
	}
	return t.Description
}

// nameable keeps the locked tools that an agent may know of. The names of a
// server that waits for review are text of its own: only those that were
// approved before are known.
func (g *Gateway) nameable(s *catalog.Snapshot) func(*catalog.Tool) bool {
	return func(t *catalog.Tool) bool {
		return !s.Server(t.ID.Server).Quarantined || g.Book.View(t.ID.Server).Tool(t.ID.Tool).Pin != nil
	}
}

// inScope keeps the tools in an actor's scope; nil keeps all.
func inScope(a auth.Actor) func(*catalog.Tool) bool {
	if a.Kind != auth.Nobody {
		return nil
	}
	return func(t *catalog.Tool) bool { return door.InScope(a, t.ID.Server) }
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

func appendNotice(out []byte, s *catalog.Snapshot, query string, keep func(*catalog.Tool) bool) []byte {
	_, locked := s.SearchLocked(query, 1, keep)
	if locked == 0 {
		return out
	}
	return text(out, `,"notice":`, fmt.Sprintf(
		"No tool that can be called matches, but %d that cannot be called now do. Retry with include_disabled: true to see why and what would unlock them.", locked))
}
