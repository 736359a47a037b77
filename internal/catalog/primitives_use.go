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

// primitiveRef is a primitive that a request uses.
type primitiveRef struct {
	kind tool.DefinitionKind
	name string
}

// primitivesUsedBy returns the primitives that a request would use. bad is the error for an
// ambiguous request.
func primitivesUsedBy(r *session.Request) (used []primitiveRef, bad *problem.Problem) {
	params := r.Params
	find := func(part json.RawMessage, member string) json.RawMessage {
		if !hasAtMostOneMember(part, member) {
			bad = problem.Newf(problem.InvalidParameter, "The request has more than one member '%s'.", member).With("parameter", member)
		}
		return wirejson.Find(part, member)
	}
	name := func(part json.RawMessage, member string, kinds ...tool.DefinitionKind) {
		value := find(part, member)
		own, ok := wirejson.String(value)
		switch {
		case value == nil:
			return // the server's own method
		case !ok:
			bad = problem.Newf(problem.InvalidParameter, "%s of %s must be a string.", member, r.Method).With("parameter", member)
			return
		}
		for _, kind := range kinds {
			used = append(used, primitiveRef{kind, own})
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

// PrimitiveLockedError rejects the use of a primitive that is not approved.
type PrimitiveLockedError struct {
	What    string // its name in the activity record
	Problem *problem.Problem
}

func (e *PrimitiveLockedError) Error() string { return e.Problem.Error() }
func (e *PrimitiveLockedError) Unwrap() error { return e.Problem }

// CheckUse rejects the use of unapproved primitives. Otherwise it returns the request. From a subscription, it removes
// the primitives that may not be used. Its errors are a PrimitiveLockedError, a problem, or ctx.Err().
func (g *PrimitiveGuard) CheckUse(ctx context.Context, server string, r *session.Request) (*session.Request, error) {
	if r.Method == mcp.Listen {
		return g.filterSubscription(ctx, server, r)
	}
	used, bad := primitivesUsedBy(r)
	if bad != nil {
		return nil, bad
	}
	if len(used) == 0 {
		return r, nil
	}
	if err := g.ensureFreshListsForUse(ctx, server, used[0].kind); err != nil {
		return nil, newLockedError(server, used[0], policy.DisabledUnknown, err)
	}
	for _, u := range used {
		if status := g.catalog.primitiveUseStatus(server, u.kind, u.name); status != policy.Callable {
			return nil, newLockedError(server, u, status, nil)
		}
	}
	return r, nil
}

// ensureFreshListsForUse makes sure that the catalog has the lists that are needed for a use of that kind.
func (g *PrimitiveGuard) ensureFreshListsForUse(ctx context.Context, server string, kind tool.DefinitionKind) error {
	ctx, cancel := context.WithTimeout(ctx, useListTimeout)
	defer cancel()
	wanted := []ListKind{ListResources, ListTemplates}
	if kind == tool.KindPrompt {
		wanted = []ListKind{ListPrompts}
	}
	for _, l := range wanted {
		if err := g.ensureListIsFresh(ctx, server, l, useStaleAfter); err != nil {
			return err
		}
	}
	return nil
}

// newLockedError returns the error for the use of a locked primitive. err is the reason why its status is unknown, or
// nil.
func newLockedError(server string, u primitiveRef, status policy.ToolStatus, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	what := u.kind.Label() + " '" + problem.ClipName(u.name) + "'"
	p := problem.Newf(problem.OfferLocked, "The %s of server '%s' cannot be used: its status is %s.", what, server, status).
		WithHint(status.PrimitiveRemedy()).With("status", status.String()).With("server", server)
	if err != nil {
		p.Because(err)
	}
	return &PrimitiveLockedError{what, p}
}

// filterSubscription removes the resources that may not be read from a subscription.
func (g *PrimitiveGuard) filterSubscription(ctx context.Context, server string, r *session.Request) (*session.Request, error) {
	wanted := wirejson.Find(r.Params, "notifications")
	uris := wirejson.Find(wanted, "resourceSubscriptions")
	if !hasAtMostOneMember(r.Params, "notifications") || !hasAtMostOneMember(wanted, "resourceSubscriptions") {
		return nil, problem.New(problem.InvalidParameter, "The request has more than one member notifications or resourceSubscriptions.", "")
	}
	if wirejson.Kind(uris) != '[' {
		return r, nil
	}
	if err := g.ensureFreshListsForUse(ctx, server, tool.KindResource); err != nil {
		return nil, newLockedError(server, primitiveRef{tool.KindResource, "*"}, policy.DisabledUnknown, err)
	}
	kept, left := wirejson.FilterElements(uris, func(_ int, raw []byte) bool {
		uri, ok := wirejson.String(raw)
		return ok && g.catalog.primitiveUseStatus(server, tool.KindResource, uri) == policy.Callable
	})
	if left == 0 {
		return r, nil
	}
	less := *r
	less.Params = wirejson.SetMember(r.Params, "notifications", wirejson.SetMember(wanted, "resourceSubscriptions", kept))
	return &less, nil
}

// hasAtMostOneMember reports whether an object has at most one member whose name matches wanted in any case, and
// whether that one is spelled exactly like wanted. If there were several, another parser might use the one that was not
// checked.
func hasAtMostOneMember(object json.RawMessage, wanted string) bool {
	found := 0
	_ = wirejson.EachMember(object, func(name, _ []byte) error {
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
