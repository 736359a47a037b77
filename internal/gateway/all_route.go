package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/alias"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/offers"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// routePrompt finds the server of a prompt.
func (g *Gateway) routePrompt(ctx context.Context, r *namedRequest) error {
	name, ok := rawjson.String(rawjson.Find(r.Params, "name"))
	if !ok {
		return problem.New(problem.InvalidParameter, "params.name must be a string: the prompt to get", "")
	}
	server, own, err := g.promptOf(ctx, name, *r.Caller)
	if err != nil {
		return err
	}
	r.server = server
	r.rename("name", own)
	return nil
}

// promptOf gives what the name of a prompt stands for.
func (g *Gateway) promptOf(ctx context.Context, name string, c Caller) (server, own string, err error) {
	if server, own, ok := alias.Split(name); ok && g.door.Reachable(server, c.Actor) == nil {
		return server, own, nil
	}
	for _, i := range g.gather(ctx, Prompts, c) {
		if i.name == name {
			return i.server, i.own, nil
		}
	}
	return "", "", problem.Newf(problem.InvalidParameter, "There is no prompt '%s'.", clip(name)).
		WithHint("Prompts of all servers have the names that prompts/list gives, server__prompt.").With("parameter", "name")
}

// routeResource finds the server of the resource that part names; whole gives
// the params with the part changed.
func (g *Gateway) routeResource(ctx context.Context, r *namedRequest, part json.RawMessage, whole func(json.RawMessage) json.RawMessage) error {
	uri, ok := rawjson.String(rawjson.Find(part, "uri"))
	if !ok {
		return problem.New(problem.InvalidParameter, "the uri must be a string: the address of a resource", "")
	}
	server, own, err := g.resourceOf(ctx, uri, *r.Caller)
	if err != nil {
		return err
	}
	r.server = server
	if own != uri {
		r.Params = whole(rawjson.SetMember(part, "uri", rawjson.AppendString(nil, own)))
		if r.Method == mcp.ReadResource {
			r.rename("uri", own)
		}
	}
	return nil
}

// resourceOf gives the server that an address, or a template of addresses,
// belongs to: the one that it names, else the only one that lists it, else the
// only one with a template that it fits, else the only one that has resources.
func (g *Gateway) resourceOf(ctx context.Context, uri string, c Caller) (server, own string, err error) {
	if server, own, ok := alias.SplitURI(uri); ok {
		if p := g.door.Reachable(server, c.Actor); p != nil {
			return "", "", p
		}
		return server, own, nil
	}
	for _, o := range []Offer{Resources, Templates} {
		var owners []string
		for _, i := range g.gather(ctx, o, c) {
			if (i.own == uri || o == Templates && alias.Matches(i.own, uri)) && !slices.Contains(owners, i.server) {
				owners = append(owners, i.server)
			}
		}
		switch {
		case len(owners) == 1:
			return owners[0], uri, nil
		case len(owners) > 1:
			return "", "", ambiguous(uri, owners)
		}
	}
	able := g.offering(offers.Resources.Capability(), c.Actor)
	if len(able) == 1 {
		return able[0].Name, uri, nil
	}
	return "", "", problem.Newf(problem.InvalidParameter, "There is no resource '%s'.", clip(uri)).
		WithHint("Use an address of resources/list, or name the server in it: "+alias.URI("SERVER", clip(uri))+".").With("parameter", "uri")
}

// maxOwners is how many servers are named that an address may belong to.
const maxOwners = 5

func ambiguous(uri string, owners []string) *problem.Problem {
	var named []string
	for _, server := range owners[:min(len(owners), maxOwners)] {
		named = append(named, alias.URI(server, clip(uri)))
	}
	return problem.Newf(problem.InvalidParameter, "Several servers have a resource '%s'.", clip(uri)).
		WithHint("Name the server in the address: "+strings.Join(named, ", ")+".").With("parameter", "uri")
}

// routeCompletion finds the server of the prompt or the template whose argument
// is to be completed.
func (g *Gateway) routeCompletion(ctx context.Context, r *namedRequest) error {
	ref := json.RawMessage(rawjson.Find(r.Params, "ref"))
	whole := func(ref json.RawMessage) json.RawMessage { return rawjson.SetMember(r.Params, "ref", ref) }
	switch kind, _ := rawjson.String(rawjson.Find(ref, "type")); kind {
	case "ref/resource":
		return g.routeResource(ctx, r, ref, whole)
	case "ref/prompt":
		name, _ := rawjson.String(rawjson.Find(ref, "name"))
		server, own, err := g.promptOf(ctx, name, *r.Caller)
		if err != nil {
			return err
		}
		r.server, r.Params = server, whole(rawjson.SetMember(ref, "name", rawjson.AppendString(nil, own)))
		return nil
	}
	return problem.New(problem.InvalidParameter, "params.ref must be of type ref/prompt or ref/resource.", "").With("parameter", "ref")
}
