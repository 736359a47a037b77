// Package union is the surface of all servers at once: their tools, prompts and
// resources under names that tell whose they are, as one session.Surface.
//
// A name follows from the server and its own name alone (package alias), and so
// does the way back: a request is sent to the server that its name stands for,
// with the server's own name in the place of it. A tools/call goes through the
// door as a named call, everything else to the server's surface, which the door
// guards. What is listed follows from the snapshot of the catalog and from what
// package offers knows; a snapshot tells when it is replaced, which is how
// clients learn of changes.
//
// It guarantees that what is about one server reaches that server as it does on
// the server's own path, in a session of the client's own that the first request
// opens; that the end of one server's session is not that of the client's; that
// a page of a list goes on where the one before ended, whatever has changed
// meanwhile; and that a client is told of a change of a list that it has seen.
// It decides nothing about a call, records nothing itself, and knows no
// transport.
//
// Where things are: names.go names, route.go finds back what a name stands for,
// list.go makes the lists, session.go and listen.go are a client's session.
package union

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/door"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/offers"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
)

// Deps is what a Surface is made of.
type Deps struct {
	Catalog *catalog.Catalog
	Door    *door.Door
	Offers  *offers.Guard
	Reply   *reply.Writer
}

// Surface is a session.Surface.
type Surface struct {
	Deps
	named  atomic.Pointer[tools]
	naming sync.Mutex // held while the tools are named anew, and guards within
	within map[*catalog.Snapshot]*tools
}

// New makes a Surface.
func New(d Deps) *Surface { return &Surface{Deps: d} }

// instructions is what a client may tell its model about this surface.
const instructions = "These are the tools, prompts and resources of many MCP servers, through MCPProxy. " +
	"A tool or prompt is named server__name, and does what that server says it does; its annotations are those that its user lets count."

// Form returns how requests of a method are answered: what is about one server
// as that server answers it.
func (s *Surface) Form(method string) session.Form {
	if method == mcp.Listen || forOneServer(method) {
		return session.Waiting
	}
	return session.AtOnce
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
func (s *Surface) Refused(ctx context.Context, r *session.Request, p *problem.Problem) {
	s.Door.Refused(ctx, "", r, p)
}

// Do answers a modern request.
func (s *Surface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		return session.Reply{Result: json.RawMessage(string(s.Reply.Front(true)) + `"supportedVersions":` + mcp.Served + `,"capabilities":` +
			s.capabilities(r) + `,"instructions":"` + instructions + `"` + caching + `}`)}, nil
	case mcp.Listen:
		return s.listen(ctx, r), nil
	}
	return s.answer(ctx, r, nil, nil), nil
}

// caching is said of what may change at any time, and differ between clients.
const caching = `,"ttlMs":0,"cacheScope":"private"`

// opener returns the client's session with a server; nil is for modern requests,
// which stand for themselves.
type opener func(ctx context.Context, server string) (session.Session, error)

// answer answers what there is in both eras. h, if there is one, notes which
// lists the client gets.
func (s *Surface) answer(ctx context.Context, r *session.Request, open opener, h *heard) session.Reply {
	modern := open == nil
	var a session.Reply
	var err error
	switch list, lists := offers.ListOf(r.Method); {
	case forOneServer(r.Method):
		a, err = s.pass(ctx, r, open)
		if !modern && a.Error != nil && a.Status == http.StatusNotFound {
			a.Status = 0 // it is that of one server; a client takes it for the end of its session
		}
	case lists:
		a, err = s.list(ctx, r, modern, list, h)
	default:
		a = reply.MethodNotFound(r.Method)
	}
	if err != nil {
		return s.Reply.Problem(modern, r.Method, err)
	}
	return a
}

// reachable returns the servers that the client of a request can speak to.
func (s *Surface) reachable(r *session.Request) (all []*catalog.Server) {
	for _, server := range s.Catalog.Current().Servers() {
		if s.Door.Reachable(server.Name, r.Caller) == nil {
			all = append(all, server)
		}
	}
	return all
}

// readable returns the servers whose prompts and resources the client may use.
func (s *Surface) readable(r *session.Request) []*catalog.Server {
	if !door.MayRead(r.Caller) {
		return nil
	}
	return s.reachable(r)
}

// capabilities returns what the servers can do together, as far as it is passed
// on. A server that has not stated yet what it can do may be able to do anything.
func (s *Surface) capabilities(r *session.Request) string {
	servers := s.reachable(r)
	out := `{"tools":{"listChanged":true}`
	for _, c := range [...]struct{ name, states string }{
		{"prompts", `,"prompts":{"listChanged":true}`},
		{"resources", `,"resources":{"listChanged":true}`},
		{"completions", `,"completions":{}`},
		{"logging", `,"logging":{}`},
	} {
		for _, server := range servers {
			if server.State.Capabilities == nil || offers.Has(server, c.name) {
				out += c.states
				break
			}
		}
	}
	return out + "}"
}

// maxNamed is for how many scopes the names of tools are remembered.
const maxNamed = 64

// tools returns the tools that the client of a request may reach, as they are now.
func (s *Surface) tools(r *session.Request) *tools {
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
func (s *Surface) toolsWithin(snapshot *catalog.Snapshot) *tools {
	s.naming.Lock()
	defer s.naming.Unlock()
	t := s.within[snapshot]
	if t == nil {
		if s.within == nil || len(s.within) >= maxNamed {
			s.within = map[*catalog.Snapshot]*tools{}
		}
		t = nameTools(snapshot)
		s.within[snapshot] = t
	}
	return t
}

// listed returns what the lists say to the client of a request, and a channel
// that is closed when they may say something else.
func (s *Surface) listed(r *session.Request) (listed, <-chan struct{}) {
	replaced := s.Catalog.Current().Replaced()
	l := listed{offers.Tools: s.tools(r).digest} // of this snapshot, or of one that has replaced it
	servers := s.readable(r)
	for _, list := range []offers.List{offers.Prompts, offers.Resources} {
		sum := newDigest()
		for _, server := range servers {
			if offers.Has(server, list.Capability()) {
				decisions := s.Catalog.OffersNow(server.Name).Decisions()
				sum.add([]byte(server.Name))
				sum.number(server.State.Offers)
				sum.add(decisions[:])
			}
		}
		l[list] = sum.end()
	}
	return l, replaced
}
