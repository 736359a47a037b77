package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// primitiveNamed is an offer that a request is about.
type primitiveNamed struct {
	kind tool.Kind
	name string
}

// about finds what a request would use. bad is a request that does not say it
// in a way that everybody reads alike.
func about(r *session.Request) (used []primitiveNamed, bad *problem.Problem) {
	params := r.Params
	find := func(part json.RawMessage, member string) json.RawMessage {
		if !oneMember(part, member) {
			bad = problem.Newf(problem.InvalidParameter, "%s is spelled in a way that can be read in two", member).With("parameter", member)
		}
		return wirejson.Find(part, member)
	}
	name := func(part json.RawMessage, member string, kinds ...tool.Kind) {
		value := find(part, member)
		own, ok := wirejson.String(value)
		switch {
		case value == nil:
			return // which the server says itself
		case !ok:
			bad = problem.Newf(problem.InvalidParameter, "%s must be a string: what %s is about", member, r.Method).With("parameter", member)
			return
		}
		for _, kind := range kinds {
			used = append(used, primitiveNamed{kind, own})
		}
	}
	switch r.Method {
	case mcp.GetPrompt:
		name(params, "name", tool.KindPrompt)
	case mcp.ReadResource, mcp.Subscribe:
		name(params, "uri", tool.KindResource)
	case mcp.Complete:
		ref := find(params, "ref")
		switch kind, _ := wirejson.String(find(ref, "type")); kind {
		case "ref/prompt":
			name(ref, "name", tool.KindPrompt)
		case "ref/resource":
			name(ref, "uri", tool.KindTemplate, tool.KindResource)
		}
	}
	return used, bad
}

// PrimitiveLocked is the refusal of a use of something that nobody has approved.
type PrimitiveLocked struct {
	What    string // as the record names it
	Problem *problem.Problem
}

func (e *PrimitiveLocked) Error() string { return e.Problem.Error() }
func (e *PrimitiveLocked) Unwrap() error { return e.Problem }

// Use refuses the use of what nobody has approved, and returns the request
// otherwise, a subscription without what may not be used. Its errors are a Locked,
// a problem, or ctx.Err().
func (g *PrimitiveGuard) Use(ctx context.Context, server string, r *session.Request) (*session.Request, error) {
	if r.Method == mcp.Listen {
		return g.listen(ctx, server, r)
	}
	used, bad := about(r)
	if bad != nil {
		return nil, bad
	}
	if len(used) == 0 {
		return r, nil
	}
	if err := g.knowUsed(ctx, server, used[0].kind); err != nil {
		return nil, locked(server, used[0], policy.DisabledUnknown, err)
	}
	for _, u := range used {
		if status := g.catalog.OfferUse(server, u.kind, u.name); status != policy.Callable {
			return nil, locked(server, u, status, nil)
		}
	}
	return r, nil
}

// knowUsed has the catalog know what the server offers as far as the use of
// something of that kind depends on it.
func (g *PrimitiveGuard) knowUsed(ctx context.Context, server string, kind tool.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, useListTime)
	defer cancel()
	wanted := []PrimitiveList{ListResources, ListTemplates}
	if kind == tool.KindPrompt {
		wanted = []PrimitiveList{ListPrompts}
	}
	for _, l := range wanted {
		if err := g.know(ctx, server, l, staleUseAfter); err != nil {
			return err
		}
	}
	return nil
}

// locked refuses the use of an offer; err is why its status is not known.
func locked(server string, u primitiveNamed, status policy.Status, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	what := u.kind.Word() + " '" + problem.Brief(u.name) + "'"
	p := problem.Newf(problem.OfferLocked, "The %s of server '%s' cannot be used: its status is %s.", what, server, status).
		WithHint(status.PrimitiveRemedy()).With("status", status.String()).With("server", server)
	if err != nil {
		p.Because(err)
	}
	return &PrimitiveLocked{what, p}
}

// listen takes out of a subscription the resources that may not be read.
func (g *PrimitiveGuard) listen(ctx context.Context, server string, r *session.Request) (*session.Request, error) {
	wanted := wirejson.Find(r.Params, "notifications")
	uris := wirejson.Find(wanted, "resourceSubscriptions")
	if !oneMember(r.Params, "notifications") || !oneMember(wanted, "resourceSubscriptions") {
		return nil, problem.New(problem.InvalidParameter, "notifications.resourceSubscriptions is spelled in a way that can be read in two", "")
	}
	if wirejson.Kind(uris) != '[' {
		return r, nil
	}
	if err := g.knowUsed(ctx, server, tool.KindResource); err != nil {
		return nil, locked(server, primitiveNamed{tool.KindResource, "*"}, policy.DisabledUnknown, err)
	}
	kept, left := wirejson.Filter(uris, func(_ int, raw []byte) bool {
		uri, ok := wirejson.String(raw)
		return ok && g.catalog.OfferUse(server, tool.KindResource, uri) == policy.Callable
	})
	if left == 0 {
		return r, nil
	}
	less := *r
	less.Params = wirejson.SetMember(r.Params, "notifications", wirejson.SetMember(wanted, "resourceSubscriptions", kept))
	return &less, nil
}

// oneMember reports whether an object has no member of a name but the one that
// is spelled so. Of several, or in another spelling, a client may take the one
// that was not looked at.
func oneMember(object json.RawMessage, wanted string) bool {
	found := 0
	_ = wirejson.Members(object, func(name, _ []byte) error {
		if bytes.EqualFold(name, []byte(wanted)) {
			found++
			if string(name) != wanted {
				found++
			}
		}
		return nil
	})
	return found <= 1
}
