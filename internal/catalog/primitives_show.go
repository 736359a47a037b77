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

// Audience says to whom an answer is shown, and when it was asked for.
type Audience struct {
	Within auth.Scope
	Asked  time.Time
}

// Show leaves out of a server's answer what nobody has approved, and the tools that
// the client may not reach.
func (g *PrimitiveGuard) Show(ctx context.Context, server, method string, result json.RawMessage, to Audience) (json.RawMessage, error) {
	l, lists := ListOf(method)
	switch {
	case lists && !oneMember(result, l.Member()):
		return nil, inTwoWays(server, l)
	case lists && l != ListTools:
		return g.shown(ctx, server, l, result)
	case lists:
		return ownCache(g.visible(ctx, server, result, to), to.Within), nil
	case method == mcp.Discover, method == mcp.Initialize:
		return g.introduced(ctx, server, result), nil
	}
	return result, nil
}

func inTwoWays(server string, l PrimitiveList) *problem.Problem {
	return problem.Newf(problem.UpstreamError, "Server '%s' lists its %s in a way that can be read in two.", server, l.Member()).
		WithHint("The server breaks the protocol; see its log with `mcpproxy upstream logs " + server + "`.")
}

// shown leaves out of a server's list what nobody has approved.
func (g *PrimitiveGuard) shown(ctx context.Context, server string, l PrimitiveList, result json.RawMessage) (json.RawMessage, error) {
	list := &lists[l]
	all := wirejson.Find(result, list.member)
	if all != nil && wirejson.Kind(all) != '[' && wirejson.Kind(all) != 'n' {
		return nil, inTwoWays(server, l)
	}
	if wirejson.Kind(all) != '[' {
		return result, nil
	}
	var raws []json.RawMessage
	_ = wirejson.Elements(all, func(raw []byte) error { // an answer is JSON
		raws = append(raws, raw)
		return nil
	})
	pass, strange := g.catalog.OffersShown(ctx, server, list.kind, raws)
	if strange {
		g.doubt(server, l)
	}
	kept, left := wirejson.Filter(all, func(i int, _ []byte) bool { return pass[i] })
	if left == 0 {
		return result, nil
	}
	return wirejson.SetMember(result, list.member, kept), nil
}

// introduced leaves the instructions out of what a server says of itself, unless
// they are approved.
func (g *PrimitiveGuard) introduced(ctx context.Context, server string, result json.RawMessage) json.RawMessage {
	said := json.RawMessage(wirejson.Find(result, instructionsMember))
	if oneMember(result, instructionsMember) {
		if said == nil || wirejson.Kind(said) == 'n' || string(said) == `""` {
			return result
		}
		if pass, _ := g.catalog.OffersShown(ctx, server, tool.KindInstructions, []json.RawMessage{said}); pass[0] {
			return result
		}
	}
	var names []string
	_ = wirejson.Members(result, func(name, _ []byte) error {
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

// The time that the catalog gets to take over a list that was just told.
const (
	catalogTime = 500 * time.Millisecond
	catalogLook = 5 * time.Millisecond
)

// visible leaves out of a list the tools that cannot be called. A tool that is
// not what the catalog knows is not callable either; before it is left out the
// catalog gets the chance to learn of it: from the client's list, where the
// server has it for some clients only, else from our own.
func (g *PrimitiveGuard) visible(ctx context.Context, server string, result json.RawMessage, to Audience) json.RawMessage {
	tools := wirejson.Find(result, "tools")
	if wirejson.Kind(tools) != '[' {
		return result
	}
	kept, hidden, strange := judgePrimitives(g.catalog.Current(), server, tools, to.Within)
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
			kept, hidden, strange = judgePrimitives(g.catalog.Current(), server, tools, to.Within)
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
	return wirejson.SetMember(result, "tools", kept)
}

// judgePrimitives returns the tools of a list that can be called and the number of the
// others. strange are those that the catalog knows otherwise, or not at all.
func judgePrimitives(s *Snapshot, server string, tools json.RawMessage, within auth.Scope) (kept json.RawMessage, hidden int, strange []json.RawMessage) {
	kept, hidden = wirejson.Filter(tools, func(_ int, raw []byte) bool {
		name, _ := wirejson.String(wirejson.Find(raw, "name"))
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
func ownCache(result json.RawMessage, within auth.Scope) json.RawMessage {
	if said, _ := wirejson.String(wirejson.Find(result, cacheScope)); said == "" || !within.Bounded() {
		return result
	}
	return wirejson.SetMember(result, cacheScope, []byte(`"private"`))
}

const cacheScope = "cacheScope"

func sameDefinition(t *Tool, server string, raw json.RawMessage) bool {
	if bytes.Equal(t.Raw, raw) {
		return true
	}
	d, err := tool.ParseDefinition(server, raw)
	return err == nil && d.Fingerprint() == t.Fingerprint()
}
