package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// AggregateDeps are the dependencies of an AggregateEndpoint.
type AggregateDeps struct {
	Catalog *catalog.Catalog
	Gate    *Gate
	Offers  *catalog.PrimitiveGuard
	Reply   *session.ReplyBuilder
	// Lane is the lane of the endpoint: /mcp/all/read, /mcp/all/write or /mcp/all/destructive. It lists the tools of
	// that lane, and treats a call as one by that call tool. CallToolNone is /mcp/all.
	Lane policy.CallToolVariant
	// OnlyApps makes it the part of /mcp for clients of MCP Apps: it lists no tools, and only the resources that are
	// user interfaces. See aggregate_apps.go.
	OnlyApps bool
}

// AggregateEndpoint is the session.Endpoint of all servers together, or of one lane of them.
type AggregateEndpoint struct {
	AggregateDeps
	unscopedTable atomic.Pointer[aggregateToolTable]
	tableMu       sync.Mutex // held while the tools are renamed; guards within
	scopedTables  map[*catalog.Snapshot]*aggregateToolTable
	results       resultApps
}

// NewAggregateEndpoint returns the surface of all servers.
func NewAggregateEndpoint(d AggregateDeps) *AggregateEndpoint {
	return &AggregateEndpoint{AggregateDeps: d}
}

// instructions returns the instructions that a client may pass to its model.
func (s *AggregateEndpoint) instructions() string {
	const named = "named server__name, and does what that server says it does; its annotations are those that its user lets count."
	switch s.Lane {
	case policy.CallToolRead:
		return "Tools of many MCP servers behind MCPProxy. All of them only read. The prompts and resources of these servers are here too. A tool or prompt is " + named
	case policy.CallToolWrite:
		return "Tools of many MCP servers behind MCPProxy. All of them change something, and none is marked destructive. A tool is " + named
	case policy.CallToolDestructive:
		return "Tools of many MCP servers behind MCPProxy. All of them are marked destructive. A tool is " + named
	}
	return "The tools, prompts and resources of many MCP servers behind MCPProxy. A tool or prompt is " + named
}

// EventDeliveryOf returns how the answer to a method is delivered. A request about one server waits for that server.
func (s *AggregateEndpoint) EventDeliveryOf(method string) session.EventDelivery {
	if method == mcp.Listen || isSingleServerMethod(method) {
		return session.Waiting
	}
	return session.Direct
}

// isSingleServerMethod reports whether requests of a method concern one server.
func isSingleServerMethod(method string) bool {
	switch method {
	case mcp.CallTool, mcp.GetPrompt, mcp.ReadResource, mcp.Complete:
		return true
	}
	return false
}

// RecordRefusedCall records a call that was refused before it reached this surface.
func (s *AggregateEndpoint) RecordRefusedCall(ctx context.Context, r *session.Request, p *problem.Problem) {
	s.Gate.RecordRefusedToolCall(ctx, "", r, p)
}

// Do answers a modern request.
func (s *AggregateEndpoint) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		return session.Reply{Result: json.RawMessage(string(s.Reply.ResultPrefix(true)) + `"supportedVersions":` + mcp.SupportedVersions + `,"capabilities":` +
			s.mergedCapabilitiesJSON(r) + `,"instructions":"` + s.instructions() + `"` + cachingJSON + `}`)}, nil
	case mcp.Listen:
		return s.serveSubscription(ctx, r), nil
	}
	return s.answerRequest(ctx, r, nil, nil), nil
}

// cachingJSON contains the caching members of a result that may change at any time and differs between clients.
const cachingJSON = `,"ttlMs":0,"cacheScope":"private"`

// aggregateSessionOpener opens, or returns, the client's session with a server. It is nil for modern requests, which
// need no session.
type aggregateSessionOpener func(ctx context.Context, server string) (session.Session, error)

// answerRequest answers the methods that the legacy and the modern protocol share. h stores which lists the client
// gets; it may be nil.
func (s *AggregateEndpoint) answerRequest(ctx context.Context, r *session.Request, open aggregateSessionOpener, h *clientKnownLists) session.Reply {
	modern := open == nil
	var a session.Reply
	var err error
	switch list, lists := catalog.ListKindOfMethod(r.Method); {
	case r.Method == mcp.CallTool, isSingleServerMethod(r.Method) && s.hasPrimitives(), r.Method == mcp.ReadResource && r.Apps:
		a, err = s.forwardToServer(ctx, r, open)
		if !modern && a.Error != nil && a.Status == http.StatusNotFound {
			a.Status = 0 // the status of one server, which a client would interpret as the end of its own session
		}
	case lists && (list == catalog.ListTools || s.hasPrimitives() || list != catalog.ListPrompts && r.Apps):
		a, err = s.listPage(ctx, r, modern, list, h)
	default:
		a = session.MethodNotFoundReply(r.Method)
	}
	if err != nil {
		return s.Reply.ProblemReply(modern, r.Method, err)
	}
	return a
}

// reachableServers returns the servers that the client of a request can use.
func (s *AggregateEndpoint) reachableServers(r *session.Request) (all []*catalog.Server) {
	for _, server := range s.Catalog.Current().Servers() {
		if s.Gate.CheckReachable(server.Name, r.Caller) == nil {
			all = append(all, server)
		}
	}
	return all
}

// hasPrimitives reports whether prompts and resources are part of the endpoint. They belong to the read lane. User
// interfaces are part of each endpoint.
func (s *AggregateEndpoint) hasPrimitives() bool {
	return s.Lane == policy.CallToolNone || s.Lane == policy.CallToolRead
}

// serversWithReadablePrimitives returns the servers whose prompts and resources the client can use.
func (s *AggregateEndpoint) serversWithReadablePrimitives(r *session.Request) []*catalog.Server {
	if !s.hasPrimitives() && !r.Apps || !hasReadLane(r.Caller) {
		return nil
	}
	return s.reachableServers(r)
}

// mergedCapabilitiesJSON returns the capabilities of all servers together. A server that has not
// stated its capabilities yet may have any.
func (s *AggregateEndpoint) mergedCapabilitiesJSON(r *session.Request) string {
	servers := s.reachableServers(r)
	out := `{"tools":{"listChanged":true}`
	for _, c := range [...]struct{ name, states string }{
		{"prompts", `,"prompts":{"listChanged":true}`},
		{"resources", `,"resources":{"listChanged":true}`},
		{"completions", `,"completions":{}`},
		{"logging", `,"logging":{}`},
	} {
		if c.name != "logging" && !s.hasPrimitives() && (c.name != "resources" || !r.Apps) {
			continue
		}
		for _, server := range servers {
			if server.State.Capabilities == nil || catalog.HasCapability(server, c.name) {
				out += c.states
				break
			}
		}
	}
	return out + "," + mcp.AppsServerExtension + "}"
}

// isInLane reports whether a tool is in the lane of the endpoint.
func (s *AggregateEndpoint) isInLane(t *catalog.Tool) bool {
	return !s.OnlyApps && (s.Lane == policy.CallToolNone || t.IsInLane(s.Lane))
}

// maxScopedTables limits the scopes whose tool tables are cached.
const maxScopedTables = 64

// toolTableForCaller returns the tools in the scope of the client of a request, as of the current
// snapshot.
func (s *AggregateEndpoint) toolTableForCaller(r *session.Request) *aggregateToolTable {
	whole := s.Catalog.Current()
	snapshot := whole.ScopedTo(r.Caller.Scope())
	if snapshot != whole {
		return s.scopedToolTable(snapshot)
	}
	if t := s.unscopedTable.Load(); t.isCurrentFor(snapshot) {
		return t
	}
	s.tableMu.Lock()
	defer s.tableMu.Unlock()
	if t := s.unscopedTable.Load(); t.isCurrentFor(snapshot) {
		return t
	}
	t := newAggregateToolTable(snapshot, s.isInLane)
	s.unscopedTable.Store(t)
	return t
}

// scopedToolTable returns the cached or a new tool table of a snapshot from which the tools outside a scope were
// removed.
func (s *AggregateEndpoint) scopedToolTable(snapshot *catalog.Snapshot) *aggregateToolTable {
	s.tableMu.Lock()
	defer s.tableMu.Unlock()
	t := s.scopedTables[snapshot]
	if t == nil {
		if s.scopedTables == nil || len(s.scopedTables) >= maxScopedTables {
			s.scopedTables = map[*catalog.Snapshot]*aggregateToolTable{}
		}
		t = newAggregateToolTable(snapshot, s.isInLane)
		s.scopedTables[snapshot] = t
	}
	return t
}

// currentListDigests returns the digests of the lists for the client of a request, and a channel that
// is closed when they may have changed.
func (s *AggregateEndpoint) currentListDigests(r *session.Request) (listDigests, <-chan struct{}) {
	replaced := s.Catalog.Current().ReplacedChan()
	l := listDigests{catalog.ListTools: s.toolTableForCaller(r).digest} // from this snapshot or a later one
	servers := s.serversWithReadablePrimitives(r)
	for _, list := range []catalog.ListKind{catalog.ListPrompts, catalog.ListResources} {
		sum := newListHasher()
		for _, server := range servers {
			if catalog.HasCapability(server, list.Capability()) {
				decisions := s.Catalog.CurrentPrimitives(server.Name).DecisionsHash()
				sum.addPart([]byte(server.Name))
				sum.addNumber(server.State.PrimitivesVersion)
				sum.addPart(decisions[:])
			}
		}
		l[list] = sum.finalSum()
	}
	return l, replaced
}
