package offers

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/scope"
	"mcpproxy/internal/tool"
)

// To says to whom an answer is shown, and when it was asked for.
type To struct {
	Within scope.Scope
	Asked  time.Time
}

// Show leaves out of a server's answer what nobody has approved, and the tools that
// the client may not reach.
func (g *Guard) Show(ctx context.Context, server, method string, result json.RawMessage, to To) (json.RawMessage, error) {
	l, lists := ListOf(method)
	switch {
	case lists && !oneMember(result, l.Member()):
		return nil, inTwoWays(server, l)
	case lists && l != Tools:
		return g.shown(ctx, server, l, result)
	case lists:
		return ownCache(g.visible(ctx, server, result, to), to.Within), nil
	case method == mcp.Discover, method == mcp.Initialize:
		return g.introduced(ctx, server, result), nil
	}
	return result, nil
}

func inTwoWays(server string, l List) *problem.Problem {
	return problem.Newf(problem.UpstreamError, "Server '%s' lists its %s in a way that can be read in two.", server, l.Member()).
		WithHint("The server breaks the protocol; see its log with `mcpproxy upstream logs " + server + "`.")
}

// shown leaves out of a server's list what nobody has approved.
func (g *Guard) shown(ctx context.Context, server string, l List, result json.RawMessage) (json.RawMessage, error) {
	list := &lists[l]
	all := rawjson.Find(result, list.member)
	if all != nil && rawjson.Kind(all) != '[' && rawjson.Kind(all) != 'n' {
		return nil, inTwoWays(server, l)
	}
	if rawjson.Kind(all) != '[' {
		return result, nil
	}
	var raws []json.RawMessage
	_ = rawjson.Elements(all, func(raw []byte) error { // an answer is JSON
		raws = append(raws, raw)
		return nil
	})
	pass, strange := g.catalog.OffersShown(ctx, server, list.kind, raws)
	if strange {
		g.doubt(server, l)
	}
	kept, left := rawjson.Keep(all, func(i int, _ []byte) bool { return pass[i] })
	if left == 0 {
		return result, nil
	}
	return rawjson.SetMember(result, list.member, kept), nil
}

// introduced leaves the instructions out of what a server says of itself, unless
// they are approved.
func (g *Guard) introduced(ctx context.Context, server string, result json.RawMessage) json.RawMessage {
	said := json.RawMessage(rawjson.Find(result, instructionsMember))
	if oneMember(result, instructionsMember) {
		if said == nil || rawjson.Kind(said) == 'n' || string(said) == `""` {
			return result
		}
		if pass, _ := g.catalog.OffersShown(ctx, server, tool.KindInstructions, []json.RawMessage{said}); pass[0] {
			return result
		}
	}
	var names []string
	_ = rawjson.Members(result, func(name, _ []byte) error {
		if bytes.EqualFold(name, []byte(instructionsMember)) {
			names = append(names, string(name))
		}
		return nil
	})
	for _, name := range names {
		result = rawjson.DropMember(result, name)
	}
	return result
}

const instructionsMember = "instructions"

// The time that the catalog gets to take over a list that was just told.
const (
	catalogTime = 500 * time.Millisecond
	catalogLook = 5 * time.Millisecond
)

// visible leaves out of a list the tools that cannot be called. A tool that is
// not what the catalog knows is not callable either; before it is left out the
// catalog gets the chance to learn of it: from the client's list, where the
// server has it for some clients only, else from our own.
func (g *Guard) visible(ctx context.Context, server string, result json.RawMessage, to To) json.RawMessage {
	tools := rawjson.Find(result, "tools")
	if rawjson.Kind(tools) != '[' {
		return result
	}
	kept, hidden, strange := judge(g.catalog.Current(), server, tools, to.Within)
	settle := func() {
		limit, look := time.NewTimer(catalogTime), time.NewTicker(catalogLook)
		defer limit.Stop()
		defer look.Stop()
		for waiting := true; waiting && len(strange) > 0; {
			select {
			case <-look.C:
			case <-limit.C:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
			kept, hidden, strange = judge(g.catalog.Current(), server, tools, to.Within)
		}
	}
	if len(strange) > 0 && g.source.Learn(server, strange) {
		settle()
	}
	if len(strange) > 0 {
		g.source.Refresh(ctx, server, to.Asked)
		settle()
	}
	if hidden == 0 {
		return result
	}
	return rawjson.SetMember(result, "tools", kept)
}

// judge returns the tools of a list that can be called and the number of the
// others. strange are those that the catalog knows otherwise, or not at all.
func judge(s *catalog.Snapshot, server string, tools json.RawMessage, within scope.Scope) (kept json.RawMessage, hidden int, strange []json.RawMessage) {
	kept, hidden = rawjson.Keep(tools, func(_ int, raw []byte) bool {
		name, _ := rawjson.String(rawjson.Find(raw, "name"))
		t := s.Tool(tool.ID{Server: server, Tool: name})
		same := t != nil && sameDefinition(t, server, raw)
		if !same {
			if _, err := tool.ParseDefinition(server, raw); err == nil { // what cannot be used nobody will know
				strange = append(strange, raw)
			}
		}
		return same && t.Callable() && t.In(within)
	})
	return kept, hidden, strange
}

// ownCache has a list that is one client's alone be kept for no other.
func ownCache(result json.RawMessage, within scope.Scope) json.RawMessage {
	if said, _ := rawjson.String(rawjson.Find(result, cacheScope)); said == "" || !within.Bounded() {
		return result
	}
	return rawjson.SetMember(result, cacheScope, []byte(`"private"`))
}

const cacheScope = "cacheScope"

func sameDefinition(t *catalog.Tool, server string, raw json.RawMessage) bool {
	if bytes.Equal(t.Raw, raw) {
		return true
	}
	d, err := tool.ParseDefinition(server, raw)
	return err == nil && d.Fingerprint() == t.Fingerprint()
}
