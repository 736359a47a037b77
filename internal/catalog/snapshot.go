package catalog

import (
	"cmp"
	"slices"

	"mcpproxy/internal/config"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/schema"
	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Tool is a tool as the product sees it. It is immutable.
type Tool struct {
	tool.Definition
	Effective tool.Hints // the override where it says something, else the server's
	CallWith  policy.Variant
	Status    policy.Status
	arguments func() *schema.Schema
}

// Arguments is the schema that the tool's arguments must satisfy; it is
// compiled at the first use.
func (t *Tool) Arguments() *schema.Schema { return t.arguments() }

// Server is a configured server as the product sees it. It is immutable.
type Server struct {
	Name        string
	Protocol    string
	Enabled     bool
	Quarantined bool
	State       upstream.State
	// Listed says that the server has told its tools, now or in an earlier
	// life of the daemon.
	Listed bool
	Tools  []*Tool // in the server's order
}

// Hit is one tool that a search found. Score is in (0, 1].
type Hit struct {
	Tool  *Tool
	Score float64
}

// Snapshot is one consistent view of everything. It never changes.
type Snapshot struct {
	version  uint64
	contents uint64
	servers  []*Server // by name
	byName   map[string]*Server
	tools    map[tool.ID]*Tool
	// callable and locked are searched apart: what exists but cannot be called
	// must not move the scores of what can.
	callable, locked *segment
}

// segment is an index with the tools that its documents stand for.
type segment struct {
	index *search.Index
	tools []*Tool
}

// Version grows with each snapshot.
func (s *Snapshot) Version() uint64 { return s.version }

// Servers are the configured servers, by name.
func (s *Snapshot) Servers() []*Server { return s.servers }

// Server is the named server, or nil.
func (s *Snapshot) Server(name string) *Server { return s.byName[name] }

// Tool is the tool with that id, callable or not, or nil.
func (s *Snapshot) Tool(id tool.ID) *Tool { return s.tools[id] }

// ToolCount is the number of known tools, callable or not.
func (s *Snapshot) ToolCount() int { return len(s.tools) }

// CallableCount is the number of tools that can be called.
func (s *Snapshot) CallableCount() int { return len(s.callable.tools) }

// Search ranks the callable tools that keep accepts (nil accepts all) and gives
// the best n and the number of all that match.
func (s *Snapshot) Search(query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.callable.search(query, n, keep)
}

// SearchLocked is Search over the tools that exist but cannot be called.
func (s *Snapshot) SearchLocked(query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.locked.search(query, n, keep)
}

func (g *segment) search(query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	var keepDoc func(int) bool
	if keep != nil {
		keepDoc = func(doc int) bool { return keep(g.tools[doc]) }
	}
	found, total := g.index.Search(query, n, keepDoc)
	hits := make([]Hit, len(found))
	for i, h := range found {
		hits[i] = Hit{g.tools[h.Doc], h.Score}
	}
	return hits, total
}

// maxNearest is how many names are suggested for one that does not exist.
const maxNearest = 3

// Nearest suggests names for an id that does not exist: server names when there
// is no such server, else callable tools of it, as "server:tool".
func (s *Snapshot) Nearest(id tool.ID) []string {
	server := s.byName[id.Server]
	var names []string
	if server == nil {
		for _, x := range s.servers {
			names = append(names, x.Name)
		}
		return search.Nearest(id.Server, names, maxNearest)
	}
	for _, t := range server.Tools {
		if t.Status == policy.Callable {
			names = append(names, t.ID.Tool)
		}
	}
	near := search.Nearest(id.Tool, names, maxNearest)
	for i, name := range near {
		near[i] = tool.ID{Server: id.Server, Tool: name}.String()
	}
	return near
}

// rebuild publishes a snapshot of what is known now.
func (c *Catalog) rebuild() {
	c.building.Lock()
	defer c.building.Unlock()

	old := c.current.Load()
	next := &Snapshot{byName: map[string]*Server{}, tools: map[tool.ID]*Tool{}}
	var callable, locked []*entry
	callableTools, lockedTools := []*Tool{}, []*Tool{}

	c.mu.Lock()
	next.contents = c.contents
	for _, configured := range c.servers {
		server := &Server{
			Name: configured.Name, Protocol: configured.Protocol,
			Enabled: configured.Enabled, Quarantined: configured.Quarantined,
			State: c.states[configured.Name],
		}
		if l := c.lists[configured.Name]; l != nil {
			server.Listed = true
			for _, e := range l.entries {
				t := newTool(configured, e)
				server.Tools = append(server.Tools, t)
				next.tools[t.ID] = t
				if t.Status == policy.Callable {
					callable, callableTools = append(callable, e), append(callableTools, t)
				} else {
					locked, lockedTools = append(locked, e), append(lockedTools, t)
				}
			}
		}
		next.servers = append(next.servers, server)
		next.byName[server.Name] = server
	}
	c.mu.Unlock()

	slices.SortFunc(next.servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	if old != nil {
		next.version = old.version + 1
	}
	// A change of state alone, the usual one, leaves the indexes as they are.
	if old != nil && old.contents == next.contents {
		next.callable = &segment{old.callable.index, callableTools}
		next.locked = &segment{old.locked.index, lockedTools}
	} else {
		next.callable = &segment{build(callable), callableTools}
		next.locked = &segment{build(locked), lockedTools}
	}
	c.current.Store(next)
}

func build(entries []*entry) *search.Index {
	documents := make([]search.Document, len(entries))
	for i, e := range entries {
		documents[i] = e.document
	}
	return search.Build(documents)
}

func newTool(server config.Server, e *entry) *Tool {
	t := &Tool{Definition: e.definition, Effective: e.definition.Hints, arguments: e.arguments}
	for _, o := range server.HintOverrides {
		if matches(o.Pattern, t.ID.Tool) {
			t.Effective = o.Hints.Over(t.Effective)
		}
	}
	t.CallWith = policy.CallWith(t.Effective)
	t.Status = policy.StatusOf(policy.StatusFacts{
		Known:          true,
		ServerEnabled:  server.Enabled,
		Quarantined:    server.Quarantined,
		DeniedByConfig: denied(server, t.ID.Tool),
		// Approvals come with the trust work; until then every listed tool is
		// accepted, and nobody can switch one off.
		Approved: true,
	})
	return t
}
