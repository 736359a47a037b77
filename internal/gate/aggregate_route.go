package gate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// routedRequest is a client's request and the server that receives it.
type routedRequest struct {
	session.Request
	server string
}

// forwardToServer sends a request to the server that it names. Requests of that server to the client get an ID that
// contains the server's name; see session.PrefixRequestID.
func (s *AggregateEndpoint) forwardToServer(ctx context.Context, asked *session.Request, open aggregateSessionOpener) (session.Reply, error) {
	r := &routedRequest{Request: *asked}
	r.Head = nil                                  // headers of one server do not apply to all
	r.Params = mcp.RemoveTasksExtension(r.Params) // a task ID does not contain the name of its server
	if r.Method == mcp.CallTool {
		return s.callTool(ctx, r, open)
	}
	if err := s.routePrimitive(ctx, r); err != nil {
		return session.Reply{}, err
	}
	switch asked := uriOf(asked.Params); {
	case r.Method == mcp.ReadResource && mcp.IsAppURI(uriOf(r.Params)):
		return s.readApp(ctx, r, asked, open)
	case s.OnlyApps || !s.hasPrimitives():
		return session.Reply{}, onlyAppsProblem(asked)
	}
	return s.sendToServer(ctx, r, open)
}

// sendToServer sends a request to its server, in the client's session with it or without one.
func (s *AggregateEndpoint) sendToServer(ctx context.Context, r *routedRequest, open aggregateSessionOpener) (session.Reply, error) {
	r.prefixServerRequestIDs()
	if open == nil {
		a, err := s.Gate.GatedEndpoint(r.server).Do(ctx, &r.Request)
		return a, toSessionEndedProblem(r.server, err)
	}
	a, err := forwardInSession(ctx, r, open)
	if session.IsNotSent(err) && ctx.Err() == nil {
		a, err = forwardInSession(ctx, r, open) // the server has lost the session: retry once in a new one
	}
	return a, toSessionEndedProblem(r.server, err)
}

// forwardInSession sends a request in the client's session with the server.
func forwardInSession(ctx context.Context, r *routedRequest, open aggregateSessionOpener) (session.Reply, error) {
	to, err := open(ctx, r.server)
	if err != nil {
		return session.Reply{}, err
	}
	return to.Do(ctx, &r.Request)
}

// callTool runs a tools/call through the gate.
func (s *AggregateEndpoint) callTool(ctx context.Context, r *routedRequest, open aggregateSessionOpener) (session.Reply, error) {
	r.Params = wirejson.DropMember(r.Params, "task")
	name, isText := wirejson.String(wirejson.Find(r.Params, "name"))
	if !isText {
		return session.Reply{}, s.Gate.RefuseUnnamedCall(ctx, "", &r.Request)
	}
	n := ToolCallTarget{Lane: s.Lane, Name: name, Open: open}
	var known bool
	var refusal *problem.Problem
	if n.ID, n.Alias, known = s.resolveToolName(&r.Request, name); known {
		r.server = n.ID.Server
		r.replaceWithOwnName("name", n.ID.Tool)
		r.prefixServerRequestIDs()
		if fault := s.toolTableForCaller(&r.Request).malformed[n.ID]; fault != nil {
			refusal = malformedDefinitionProblem(tool.KindTool, r.server, name, fault)
		}
	} else {
		refusal = problem.Newf(problem.InvalidName, "The tool '%s' does not exist.", problem.ClipName(name)).
			WithHint("Use the name exactly as tools/list gives it: server__tool.").With("parameter", "name")
	}
	if refusal != nil {
		n.Err = refusal
	}
	a, err := s.Gate.CallFromAggregate(ctx, n, &r.Request)
	if a.Result != nil && a.Front == nil {
		a.Result = s.NameApps(&r.Request, s.Catalog.Current().Tool(n.ID), a.Result)
	}
	if refusal != nil && err != nil {
		err = refusal
	}
	return a, toSessionEndedProblem(n.ID.Server, err)
}

// resolveToolName returns the ID of the tool with this name, whether or not the tool exists, and server:alias if the
// name is an alias. A hashed name is resolved only within the client's scope. User interfaces use the names of their
// server.
func (s *AggregateEndpoint) resolveToolName(r *session.Request, name string) (id tool.ID, alias string, ok bool) {
	server, own, isPrefixed := tool.SplitAlias(name)
	isPrefixed = isPrefixed && tool.CheckServerName(server) == nil
	id, now := tool.ID{Server: server, Tool: own}, s.Catalog.Current()
	if isPrefixed && now.Server(server) != nil {
		switch t := now.Resolve(id, r.Caller.Scope()); {
		case t != nil && t.ID != id:
			return t.ID, id.String(), true
		case t == nil && now.Tool(id) != nil: // the name belongs to an alias
			return id, "", false
		}
		return id, "", true
	}
	if tool.IsDigestedAlias(name) {
		if t := s.toolTableForCaller(r).byHashedName[name]; t != nil {
			return t.ID, "", true
		}
	}
	if t := s.AppTool(r, name); t != nil {
		return t.ID, "", true
	}
	return id, "", isPrefixed
}

// toSessionEndedProblem converts the end of one server's session to a problem of the request. The client's session,
// which has sessions with other servers, continues.
func toSessionEndedProblem(server string, err error) error {
	if !errors.Is(err, session.ErrEnded) {
		return err
	}
	return problem.Newf(problem.ServerUnavailable, "The session with server '%s' has ended.", server).
		WithHint("The request may have been carried out: check before you try again. The next request opens a new session.").
		With("server", server)
}

// replaceWithOwnName replaces the name that the client used with the server's own name, in the params and in the
// header that repeats the name.
func (r *routedRequest) replaceWithOwnName(member, own string) {
	r.Params = wirejson.SetMember(r.Params, member, wirejson.AppendString(nil, own))
	r.Headers = slices.Clone(r.Headers)
	for i, f := range r.Headers {
		if strings.EqualFold(f.Name, mcp.HeaderName) {
			r.Headers[i] = mcp.Header{Name: mcp.HeaderName, Value: mcp.EncodeHeaderValue(own)}
		}
	}
}

// prefixServerRequestIDs adds the name of the server to the IDs of its requests to the client. It drops list_changed
// notifications, because MCPProxy announces changes for all servers together.
func (r *routedRequest) prefixServerRequestIDs() {
	say, server := r.Say, r.server
	if say == nil {
		return
	}
	r.Say = func(e session.Event) {
		switch {
		case e.ID == nil && (strings.HasSuffix(e.Method, "/list_changed") || e.Method == mcp.ResourceUpdated):
			return
		case e.ID != nil:
			e.ID = session.PrefixRequestID(server, e.ID)
		}
		say(e)
	}
}

// routePrimitive finds the server of a prompt, a resource, or a completion of their arguments.
func (s *AggregateEndpoint) routePrimitive(ctx context.Context, r *routedRequest) error {
	part, member, find := r.Params, "name", s.routePrompt
	bad := problem.New(problem.InvalidParameter, "params.name must be a string: the prompt to get", "")
	completes := r.Method == mcp.Complete
	kind := ""
	if completes {
		part = wirejson.Find(r.Params, "ref")
		kind, _ = wirejson.String(wirejson.Find(part, "type"))
	}
	switch {
	case r.Method == mcp.ReadResource, kind == "ref/resource":
		member, find = "uri", s.routeResource
		bad = problem.New(problem.InvalidParameter, "the uri must be a string: the address of a resource", "")
	case completes && kind != "ref/prompt":
		return problem.New(problem.InvalidParameter, "params.ref must be of type ref/prompt or ref/resource.", "").With("parameter", "ref")
	}
	name, ok := wirejson.String(wirejson.Find(part, member))
	if !ok && kind != "ref/prompt" { // a prompt reference without a name is reported as not found
		return bad
	}
	own, err := find(ctx, r, name)
	switch {
	case err != nil || own == name:
		return err
	case completes:
		r.Params = wirejson.SetMember(r.Params, "ref", wirejson.SetMember(part, member, wirejson.AppendString(nil, own)))
	default:
		r.replaceWithOwnName(member, own)
	}
	return nil
}

// routePrompt sets the server of the request to the server of a prompt, and returns the server's own name for the
// prompt.
func (s *AggregateEndpoint) routePrompt(ctx context.Context, r *routedRequest, name string) (own string, err error) {
	if server, own, ok := tool.SplitAlias(name); ok && s.Gate.CheckReachable(server, r.Caller) == nil {
		if one := s.Catalog.Primitives(server).FindReviewable(tool.KindPrompt, own); one != nil && s.Catalog.PrimitiveStatus(server, one) == policy.Callable {
			if _, err := tool.StrictForm(tool.KindPrompt, one.Raw); err != nil {
				return "", malformedDefinitionProblem(tool.KindPrompt, server, name, err)
			}
		}
		r.server = server
		return own, nil
	}
	for _, e := range s.listEntries(ctx, &r.Request, catalog.ListPrompts) {
		if e.name == name || tool.FormerAlias(e.server, e.own) == name {
			r.server = e.server
			return e.own, nil
		}
	}
	return "", problem.Newf(problem.InvalidParameter, "The prompt '%s' does not exist.", problem.ClipName(name)).
		WithHint("Prompts of all servers have the names that prompts/list gives, server__prompt.").With("parameter", "name")
}

// routeResource sets the server of the request to the server of a resource URI or template, and returns the server's
// own URI. It tries, in this order: the server that the URI names, the only server that lists it, the only server
// with a matching template, the only server that has resources.
func (s *AggregateEndpoint) routeResource(ctx context.Context, r *routedRequest, uri string) (own string, err error) {
	if server, own, ok := tool.SplitAliasURI(uri); ok {
		if p := s.Gate.CheckReachable(server, r.Caller); p != nil {
			return "", p
		}
		r.server = server
		return own, nil
	}
	if servers := s.appServers(&r.Request, uri); len(servers) > 1 {
		return "", ambiguousResourceProblem(uri, servers)
	} else if len(servers) == 1 {
		r.server = servers[0]
		return uri, nil
	}
	for _, l := range []catalog.ListKind{catalog.ListResources, catalog.ListTemplates} {
		var owners []string
		for _, e := range s.listEntries(ctx, &r.Request, l) {
			if (e.own == uri || l == catalog.ListTemplates && tool.MatchesTemplate(e.own, uri)) && !slices.Contains(owners, e.server) {
				owners = append(owners, e.server)
			}
		}
		switch {
		case len(owners) == 1:
			r.server = owners[0]
			return uri, nil
		case len(owners) > 1:
			return "", ambiguousResourceProblem(uri, owners)
		}
	}
	able := 0
	for _, server := range s.serversWithReadablePrimitives(&r.Request) {
		if catalog.HasCapability(server, catalog.ListResources.Capability()) {
			r.server = server.Name
			able++
		}
	}
	if able == 1 {
		return uri, nil
	}
	return "", unknownResourceProblem(uri)
}

func unknownResourceProblem(uri string) *problem.Problem {
	return problem.Newf(problem.InvalidParameter, "The resource '%s' does not exist.", problem.ClipName(uri)).
		WithHint("Use an address of resources/list, or name the server in it: "+tool.ToAliasURI("SERVER", problem.ClipName(uri))+".").With("parameter", "uri")
}

// maxOwners limits the number of servers that the problem of an ambiguous URI lists.
const maxOwners = 5

func ambiguousResourceProblem(uri string, owners []string) *problem.Problem {
	var named []string
	for _, server := range owners[:min(len(owners), maxOwners)] {
		named = append(named, tool.ToAliasURI(server, problem.ClipName(uri)))
	}
	return problem.Newf(problem.InvalidParameter, "Several servers have a resource '%s'.", problem.ClipName(uri)).
		WithHint("Name the server in the address: "+strings.Join(named, ", ")+".").With("parameter", "uri")
}
