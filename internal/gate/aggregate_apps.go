package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// MCP Apps: user interfaces of servers, which clients show with the results of tools. They are resources with the
// scheme ui://. docs/adr/0121-mcp-apps.md says which client can read which of them.

// appTable contains the user interfaces that the callable tools of a scope name.
type appTable struct {
	servers map[string][]string // by URI: the servers whose tools name it
	// tools are the tools that user interfaces may call, by the server's own name. It is nil if several servers have a
	// tool with this name.
	tools map[string]*catalog.Tool
}

func newAppTable(s *catalog.Snapshot) appTable {
	all := appTable{servers: map[string][]string{}, tools: map[string]*catalog.Tool{}}
	for _, server := range s.Servers() {
		hasApps := false
		for _, t := range server.Tools {
			if uri := t.App.URI; uri != "" && t.Callable() && t.ShadowedBy() == "" && !slices.Contains(all.servers[uri], server.Name) {
				hasApps = true
				all.servers[uri] = append(all.servers[uri], server.Name)
			}
		}
		if !hasApps {
			continue
		}
		for _, t := range server.Tools {
			switch _, taken := all.tools[t.ID.Tool]; {
			case taken:
				all.tools[t.ID.Tool] = nil
			case t.Callable() && t.ShadowedBy() == "" && !t.ForClients && !t.App.HiddenFromApps:
				all.tools[t.ID.Tool] = t
			}
		}
	}
	return all
}

// nameOf returns the URI by which clients read a user interface: its own, or one that contains the name of its server
// if another server has the same.
func (a appTable) nameOf(server, uri string) string {
	if servers := a.servers[uri]; tool.LooksLikeAliasURI(uri) || len(servers) > 1 || len(servers) == 1 && servers[0] != server {
		return tool.ToAliasURI(server, uri)
	}
	return uri
}

// appServers returns the servers to which a URI of a user interface belongs, or nothing if the rules for other
// resources decide. A server whose tools name it precedes one that has only returned it in a result.
func (s *AggregateEndpoint) appServers(r *session.Request, uri string) []string {
	if !mcp.IsAppURI(uri) {
		return nil
	}
	if servers := s.toolTableForCaller(r).apps.servers[uri]; len(servers) > 0 {
		return servers
	}
	return s.results.serversOf(clientOf(r), uri)
}

// listsPrimitive reports whether a prompt, a resource or a template is listed here.
func (s *AggregateEndpoint) listsPrimitive(apps appTable, l catalog.ListKind, e *aggregateListEntry) bool {
	if s.OnlyApps {
		return l == catalog.ListResources && slices.Contains(apps.servers[e.own], e.server)
	}
	return s.hasPrimitives() || mcp.IsAppURI(e.own)
}

// AppTool returns the tool that the user interface of a client calls by the server's own name, or nil. The client
// declares MCP Apps, and only one server with user interfaces has such a tool.
func (s *AggregateEndpoint) AppTool(r *session.Request, name string) *catalog.Tool {
	if !r.Apps {
		return nil
	}
	return s.toolTableForCaller(r).apps.tools[name]
}

// readApp reads a user interface. asked is the URI as the client wrote it.
func (s *AggregateEndpoint) readApp(ctx context.Context, r *routedRequest, asked string, open aggregateSessionOpener) (session.Reply, error) {
	uri := uriOf(r.Params)
	if !s.mayReadApp(r, uri) {
		return session.Reply{}, unknownResourceProblem(asked)
	}
	var reply session.Reply
	var err error
	if s.OnlyApps {
		reply, err = s.readOnSharedConnection(ctx, r, uri)
	} else {
		reply, err = s.sendToServer(ctx, r, open)
	}
	if err == nil && reply.Error == nil && asked != uri {
		reply.Result = replaceElements(reply.Result, "contents", func(one json.RawMessage) json.RawMessage {
			if uriOf(one) != uri {
				return one
			}
			return wirejson.SetMember(one, "uri", wirejson.AppendString(nil, asked))
		})
	}
	return reply, err
}

// mayReadApp reports whether the client may read a user interface of the server: a callable tool in its scope, or a
// result that it received, refers to it. On /mcp nothing else can be read. On other surfaces, a user interface that no
// tool refers to is an ordinary resource.
func (s *AggregateEndpoint) mayReadApp(r *routedRequest, uri string) bool {
	if slices.Contains(s.toolTableForCaller(&r.Request).apps.servers[uri], r.server) {
		return true
	}
	now := s.Catalog.Current()
	if id, ok := s.results.toolOf(clientOf(&r.Request), r.server, uri); ok {
		if t := now.Tool(id); t != nil && t.Callable() && t.InScope(r.Caller.Scope()) {
			return true
		}
	}
	if server := now.Server(r.server); s.OnlyApps || server == nil || slices.ContainsFunc(server.Tools, func(t *catalog.Tool) bool { return t.App.URI == uri }) {
		return false
	}
	return true
}

// readOnSharedConnection reads a user interface on MCPProxy's own connection, on which the calls of /mcp run.
func (s *AggregateEndpoint) readOnSharedConnection(ctx context.Context, r *routedRequest, uri string) (session.Reply, error) {
	own := session.Request{Method: mcp.ReadResource, Params: append(wirejson.AppendString([]byte(`{"uri":`), uri), '}'), Caller: r.Caller, Size: r.Size, Apps: true}
	return s.Gate.relayRequest(ctx, requestTarget{server: r.server, Doer: s.Gate.UpstreamSurface(r.server)}, &own)
}

// uriOf returns the member uri of an object, or "".
func uriOf(obj []byte) string {
	uri, _ := wirejson.String(wirejson.Find(obj, "uri"))
	return uri
}

// onlyAppsProblem returns the problem of a resource at an address where only user interfaces can be read.
func onlyAppsProblem(uri string) *problem.Problem {
	return unknownResourceProblem(uri).WithHint("Only user interfaces (ui://…) can be read here. Other resources are at /mcp/all and /mcp/all/read.")
}

// AnswerAppRequest answers requests about resources on /mcp: the user interfaces that the client can read are its only
// resources.
func (s *AggregateEndpoint) AnswerAppRequest(ctx context.Context, r *session.Request, modern bool) session.Reply {
	var a session.Reply
	var err error
	list, lists := catalog.ListKindOfMethod(r.Method)
	switch {
	case lists:
		a, err = s.listPage(ctx, r, modern, list, nil)
	case !mcp.IsAppURI(uriOf(r.Params)):
		err = onlyAppsProblem(uriOf(r.Params))
	default:
		a, err = s.forwardToServer(ctx, r, nil)
	}
	switch {
	case err != nil:
		return s.Reply.ProblemReply(modern, r.Method, err)
	case lists || !modern:
	case a.Error != nil && a.Error.Code == mcp.CodeResourceNotFound: // legacy only
		a.Error = session.InvalidParamsErrorWithMessage(a.Error.Message)
	case a.Error == nil:
		for _, m := range [...]struct{ name, value string }{{"ttlMs", "0"}, {"cacheScope", `"private"`}} {
			if wirejson.Find(a.Result, m.name) == nil {
				a.Result = wirejson.SetMember(a.Result, m.name, json.RawMessage(m.value))
			}
		}
		a = s.Reply.NewForwardedReply(true, a.Result)
	}
	return a
}

// AddApp is NameApps for the result of a call tool of /mcp. It adds the URI of the tool's user interface to the _meta of
// the result, because the client does not see the definition of the tool.
func (s *AggregateEndpoint) AddApp(r *session.Request, t *catalog.Tool, result json.RawMessage) json.RawMessage {
	if !r.Apps || t == nil {
		return result
	}
	if t.App.URI != "" && tool.ResultAppURI(result) == "" {
		result = tool.ReplaceAppURI(result, t.App.URI)
	}
	return s.NameApps(r, t, result)
}

// NameApps stores the user interfaces that a result names, so that the client can read them, and replaces the URIs of
// those that another server has, too. The other bytes of the result stay unchanged.
func (s *AggregateEndpoint) NameApps(r *session.Request, t *catalog.Tool, result json.RawMessage) json.RawMessage {
	if !r.Apps || t == nil || !bytes.Contains(result, []byte("ui:")) {
		return result
	}
	client, apps := clientOf(r), s.toolTableForCaller(r).apps
	name := func(uri string) (string, bool) {
		s.results.add(client, t.ID, uri)
		named := apps.nameOf(t.ID.Server, uri)
		return named, named != uri && mcp.IsAppURI(uri)
	}
	if uri, renamed := name(tool.ResultAppURI(result)); renamed {
		result = tool.ReplaceAppURI(result, uri)
	}
	return replaceElements(result, "content", func(block json.RawMessage) json.RawMessage {
		if uri, renamed := name(uriOf(block)); renamed {
			return wirejson.SetMember(block, "uri", wirejson.AppendString(nil, uri))
		}
		if resource := wirejson.Find(block, "resource"); resource != nil {
			if uri, renamed := name(uriOf(resource)); renamed {
				return wirejson.SetMember(block, "resource", wirejson.SetMember(resource, "uri", wirejson.AppendString(nil, uri)))
			}
		}
		return block
	})
}

// replaceElements replaces elements of an array that is a member of an object. It returns the object itself if none
// changes.
func replaceElements(obj json.RawMessage, member string, replace func(json.RawMessage) json.RawMessage) json.RawMessage {
	out, changed := json.RawMessage("["), false
	_ = wirejson.EachElement(wirejson.Find(obj, member), func(one []byte) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		other := replace(one)
		changed = changed || len(other) != len(one) // a replaced URI is longer or shorter
		out = append(out, other...)
		return nil
	})
	if !changed {
		return obj
	}
	return wirejson.SetMember(obj, member, append(out, ']'))
}

// The limits of the user interfaces that results have named, for all clients together.
const (
	maxResultApps     = 4_096
	maxResultAppURI   = 2 << 10
	resultAppLifetime = 24 * time.Hour
)

// resultApps stores which user interfaces results have named to which client.
type resultApps struct {
	mu  sync.Mutex // guards all
	all map[resultAppKey]resultApp
}

type resultAppKey struct{ client, server, uri string }

type resultApp struct {
	tool  string
	named time.Time
}

// clientOf identifies the client of a request: its session, or its actor and name.
func clientOf(r *session.Request) string {
	if r.Caller.SessionID != "" {
		return r.Caller.SessionID
	}
	return r.Caller.Actor.Principal() + "\x00" + r.Caller.ClientName + "\x00" + r.Caller.ClientVersion
}

// add stores a URI, unless it is not one of a user interface.
func (a *resultApps) add(client string, id tool.ID, uri string) {
	if !mcp.IsAppURI(uri) || len(uri) > maxResultAppURI {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.all == nil {
		a.all = map[resultAppKey]resultApp{}
	}
	evictWhenFull(a.all, maxResultApps, func(one resultApp) bool { return now.Sub(one.named) > resultAppLifetime })
	a.all[resultAppKey{client, id.Server, uri}] = resultApp{id.Tool, now}
}

// toolOf returns the tool whose result named the user interface to the client.
func (a *resultApps) toolOf(client, server, uri string) (tool.ID, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, ok := a.all[resultAppKey{client, server, uri}]
	return tool.ID{Server: server, Tool: one.tool}, ok
}

// serversOf returns the servers whose results named the user interface to the client, by name.
func (a *resultApps) serversOf(client, uri string) (servers []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.all {
		if key.client == client && key.uri == uri {
			servers = append(servers, key.server)
		}
	}
	slices.Sort(servers)
	return servers
}
