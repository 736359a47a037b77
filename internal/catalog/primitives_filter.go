package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Recipient is the scope of the client that receives an answer, and the time of its request.
type Recipient struct {
	Scope       auth.Scope
	RequestedAt time.Time
}

// FilterResult removes unapproved definitions from a server's answer, and tools outside the client's scope.
func (g *PrimitiveGuard) FilterResult(ctx context.Context, server, method string, result json.RawMessage, to Recipient) (json.RawMessage, error) {
	l, lists := ListKindOfMethod(method)
	switch {
	case lists && !hasAtMostOneMember(result, l.ResultMember()):
		return nil, ambiguousListError(server, l)
	case lists && l != ListTools:
		return g.filterPrimitives(ctx, server, l, result)
	case lists:
		return markPrivateIfScoped(g.filterTools(ctx, server, result, to), to.Scope), nil
	case method == mcp.Discover, method == mcp.Initialize:
		return g.filterInstructions(ctx, server, result), nil
	}
	return result, nil
}

func ambiguousListError(server string, l ListKind) *problem.Problem {
	return problem.Newf(problem.UpstreamError, "The answer of server '%s' has more than one member '%s'.", server, l.ResultMember()).
		WithHint("The server breaks the protocol; see its log with `mcpproxy upstream logs " + server + "`.")
}

// filterPrimitives removes unapproved primitives from a server's list.
func (g *PrimitiveGuard) filterPrimitives(ctx context.Context, server string, l ListKind, result json.RawMessage) (json.RawMessage, error) {
	list := &listKinds[l]
	all := wirejson.Find(result, list.member)
	if all != nil && wirejson.Kind(all) != '[' && wirejson.Kind(all) != 'n' {
		return nil, ambiguousListError(server, l)
	}
	if wirejson.Kind(all) != '[' {
		return result, nil
	}
	var raws []json.RawMessage
	_ = wirejson.EachElement(all, func(raw []byte) error { // parsing fails for no element: an answer is valid JSON
		raws = append(raws, raw)
		return nil
	})
	pass, strange := g.catalog.FilterClientList(ctx, server, list.kind, raws)
	if strange {
		g.markStale(server, l)
	}
	kept, left := wirejson.FilterElements(all, func(i int, _ []byte) bool { return pass[i] })
	if left == 0 {
		return result, nil
	}
	return wirejson.SetMember(result, list.member, kept), nil
}

// filterInstructions removes the instructions from a handshake result unless they are
// approved.
func (g *PrimitiveGuard) filterInstructions(ctx context.Context, server string, result json.RawMessage) json.RawMessage {
	said := json.RawMessage(wirejson.Find(result, instructionsMember))
	if hasAtMostOneMember(result, instructionsMember) {
		if said == nil || wirejson.Kind(said) == 'n' || string(said) == `""` {
			return result
		}
		if pass, _ := g.catalog.FilterClientList(ctx, server, tool.KindInstructions, []json.RawMessage{said}); pass[0] {
			return result
		}
	}
	var names []string
	_ = wirejson.EachMember(result, func(name, _ []byte) error {
		if bytes.EqualFold(name, []byte(instructionsMember)) {
			names = append(names, string(name))
		}
		return nil
	})
	for _, name := range names {
		result = wirejson.DropMember(result, name)
	}
	return result
}

const instructionsMember = "instructions"

// Time limits for waiting until the catalog has processed a new list.
const (
	catalogWait         = 500 * time.Millisecond
	catalogPollInterval = 5 * time.Millisecond
)

// filterTools removes the tools that cannot be called from a list. A tool that differs from the catalog is not
// callable. Before it removes such a tool, it lets the catalog update: from the client's list if the server lists the
// tool only to some clients, else from MCPProxy's own list.
func (g *PrimitiveGuard) filterTools(ctx context.Context, server string, result json.RawMessage, to Recipient) json.RawMessage {
	tools := wirejson.Find(result, "tools")
	if wirejson.Kind(tools) != '[' {
		return result
	}
	kept, hidden, strange := filterCallable(g.catalog.Current(), server, tools, to.Scope)
	settle := func() {
		limit, poll := time.NewTimer(catalogWait), time.NewTicker(catalogPollInterval)
		defer limit.Stop()
		defer poll.Stop()
		for waiting := true; waiting && len(strange) > 0; {
			select {
			case <-poll.C:
			case <-limit.C:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
			kept, hidden, strange = filterCallable(g.catalog.Current(), server, tools, to.Scope)
		}
	}
	if len(strange) > 0 && g.source.AddDefinitions(server, strange) {
		settle()
	}
	if len(strange) > 0 {
		g.source.RefreshTools(ctx, server, to.RequestedAt)
		settle()
	}
	if hidden == 0 {
		return result
	}
	return wirejson.SetMember(result, "tools", kept)
}

// filterCallable returns the callable tools of a list and the number of the others. strange contains the tools that are
// unknown to the catalog or differ from it.
func filterCallable(s *Snapshot, server string, tools json.RawMessage, within auth.Scope) (kept json.RawMessage, hidden int, strange []json.RawMessage) {
	kept, hidden = wirejson.FilterElements(tools, func(_ int, raw []byte) bool {
		name, _ := wirejson.String(wirejson.Find(raw, "name"))
		t := s.Tool(tool.ID{Server: server, Tool: name})
		same := t != nil && isSameDefinition(t, server, raw)
		if !same {
			if _, err := tool.ParseDefinition(server, raw); err == nil { // unusable definitions never reach the catalog
				strange = append(strange, raw)
			}
		}
		return same && t.Callable() && t.InScope(within)
	})
	return kept, hidden, strange
}

// markPrivateIfScoped marks a list for one client as not cacheable for others.
func markPrivateIfScoped(result json.RawMessage, within auth.Scope) json.RawMessage {
	if said, _ := wirejson.String(wirejson.Find(result, cacheScope)); said == "" || !within.IsBounded() {
		return result
	}
	return wirejson.SetMember(result, cacheScope, []byte(`"private"`))
}

const cacheScope = "cacheScope"

func isSameDefinition(t *Tool, server string, raw json.RawMessage) bool {
	if bytes.Equal(t.Raw, raw) {
		return true
	}
	d, err := tool.ParseDefinition(server, raw)
	return err == nil && d.Fingerprint() == t.Fingerprint()
}
