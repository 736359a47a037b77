package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// AggregateDeps is what a Surface is made of.
type AggregateDeps struct {
	Catalog *catalog.Catalog
	Gate    *Gate
	Offers  *catalog.PrimitiveGuard
	Reply   *session.ReplyWriter
}

// Aggregate is a session.Endpoint.
type Aggregate struct {
	AggregateDeps
	named  atomic.Pointer[aggregateTools]
	naming sync.Mutex // held while the tools are named anew, and guards within
	within map[*catalog.Snapshot]*aggregateTools
}

// NewAggregate makes a Surface.
func NewAggregate(d AggregateDeps) *Aggregate { return &Aggregate{AggregateDeps: d} }

// instructions is what a client may tell its model about this surface.
const instructions = "These are the tools, prompts and resources of many MCP servers, through MCPProxy. " +
	"A tool or prompt is named server__name, and does what that server says it does; its annotations are those that its user lets count."

// Delivery returns how requests of a method are answered: what is about one server
// as that server answers it.
func (s *Aggregate) Delivery(method string) session.EventDelivery {
	if method == mcp.Listen || forOneServer(method) {
		return session.Waiting
	}
	return session.Direct
}

// forOneServer reports whether requests of a method are about something of one
// server.
func forOneServer(method string) bool {
	switch method {
	case mcp.CallTool, mcp.GetPrompt, mcp.ReadResource, mcp.Complete:
		return true
	}
	return false
}

// Refused puts a call on record that was refused before it got here.
func (s *Aggregate) Refused(ctx context.Context, r *session.Request, p *problem.Problem) {
	s.Gate.Refused(ctx, "", r, p)
}

// Do answers a modern request.
func (s *Aggregate) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		return session.Reply{Result: json.RawMessage(string(s.Reply.ResultStart(true)) + `"supportedVersions":` + mcp.SupportedVersions + `,"capabilities":` +
			s.capabilities(r) + `,"instructions":"` + instructions + `"` + caching + `}`)}, nil
	case mcp.Listen:
		return s.listen(ctx, r), nil
	}
	return s.answer(ctx, r, nil, nil), nil
}

// caching is said of what may change at any time, and differ between clients.
const caching = `,"ttlMs":0,"cacheScope":"private"`

// aggregateOpener returns the client's session with a server; nil is for modern requests,
// which stand for themselves.
type aggregateOpener func(ctx context.Context, server string) (session.Session, error)

// answer answers what there is in both eras. h, if there is one, notes which
// lists the client gets.
func (s *Aggregate) answer(ctx context.Context, r *session.Request, open aggregateOpener, h *knownLists) session.Reply {
	modern := open == nil
	var a session.Reply
	var err error
	switch list, lists := catalog.ListKindOf(r.Method); {
	case forOneServer(r.Method):
		a, err = s.pass(ctx, r, open)
		if !modern && a.Error != nil && a.Status == http.StatusNotFound {
			a.Status = 0 // it is that of one server; a client takes it for the end of its session
		}
	case lists:
		a, err = s.list(ctx, r, modern, list, h)
	default:
		a = session.MethodNotFoundReply(r.Method)
	}
	if err != nil {
		return s.Reply.ProblemReply(modern, r.Method, err)
	}
	return a
}

// reachable returns the servers that the client of a request can speak to.
func (s *Aggregate) reachable(r *session.Request) (all []*catalog.Server) {
	for _, server := range s.Catalog.Current().Servers() {
		if s.Gate.Reachable(server.Name, r.Caller) == nil {
			all = append(all, server)
		}
	}
	return all
}

// readable returns the servers whose prompts and resources the client may use.
func (s *Aggregate) readable(r *session.Request) []*catalog.Server {
	if !mayRead(r.Caller) {
		return nil
	}
	return s.reachable(r)
}

// capabilities returns what the servers can do together, as far as it is passed
// on. A server that has not stated yet what it can do may be able to do anything.
func (s *Aggregate) capabilities(r *session.Request) string {
	servers := s.reachable(r)
	out := `{"tools":{"listChanged":true}`
	for _, c := range [...]struct{ name, states string }{
		{"prompts", `,"prompts":{"listChanged":true}`},
		{"resources", `,"resources":{"listChanged":true}`},
		{"completions", `,"completions":{}`},
		{"logging", `,"logging":{}`},
	} {
		for _, server := range servers {
			if server.State.Capabilities == nil || catalog.HasCapability(server, c.name) {
				out += c.states
				break
			}
		}
	}
	return out + "}"
}

// maxNamed is for how many scopes the names of tools are remembered.
const maxNamed = 64

// aggregateTools returns the tools that the client of a request may reach, as they are now.
func (s *Aggregate) tools(r *session.Request) *aggregateTools {
	whole := s.Catalog.Current()
	snapshot := whole.Within(r.Caller.Scope())
	if snapshot != whole {
		return s.toolsWithin(snapshot)
	}
	if t := s.named.Load(); t.current(snapshot) {
		return t
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	if t := s.named.Load(); t.current(snapshot) {
		return t
	}
	t := nameTools(snapshot)
	s.named.Store(t)
	return t
}

// toolsWithin is tools where something is left out.
func (s *Aggregate) toolsWithin(snapshot *catalog.Snapshot) *aggregateTools {
	s.naming.Lock()
	defer s.naming.Unlock()
	t := s.within[snapshot]
	if t == nil {
		if s.within == nil || len(s.within) >= maxNamed {
			s.within = map[*catalog.Snapshot]*aggregateTools{}
		}
		t = nameTools(snapshot)
		s.within[snapshot] = t
	}
	return t
}

// aggregateListed returns what the lists say to the client of a request, and a channel
// that is closed when they may say something else.
func (s *Aggregate) listed(r *session.Request) (aggregateListed, <-chan struct{}) {
	replaced := s.Catalog.Current().Replaced()
	l := aggregateListed{catalog.ListTools: s.tools(r).digest} // of this snapshot, or of one that has replaced it
	servers := s.readable(r)
	for _, list := range []catalog.ListKind{catalog.ListPrompts, catalog.ListResources} {
		sum := newDigest()
		for _, server := range servers {
			if catalog.HasCapability(server, list.Capability()) {
				decisions := s.Catalog.CurrentPrimitives(server.Name).DecisionsHash()
				sum.add([]byte(server.Name))
				sum.number(server.State.Offers)
				sum.add(decisions[:])
			}
		}
		l[list] = sum.end()
	}
	return l, replaced
}
