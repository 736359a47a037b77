package catalog

import (
	"cmp"
	"slices"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/config"
	"mcpproxy/internal/effect"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/schema"
	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Tool is a tool as the product sees it. It is immutable.
type Tool struct {
	tool.Definition
	// Effective is the override where it says something, else the server's hint,
	// else, when the configuration enforces it, what is inferred.
	Effective tool.Hints
	CallWith  policy.Variant
	Status    policy.Status
	entry     *entry
	infer     policy.InferMode
	inferred  bool // neither the server nor an override says what it does
}

// Arguments is the schema that the tool's arguments must satisfy; it is
// compiled at the first use.
func (t *Tool) Arguments() *schema.Schema { return t.entry.arguments() }

// Inferred is what the tool seems to do, and why; nothing when it says so itself
// or the configuration wants no inference.
func (t *Tool) Inferred() effect.Inference {
	if !t.inferred {
		return effect.Inference{}
	}
	return t.entry.inferred()
}

// Server is a configured server as the product sees it. It is immutable.
type Server struct {
	Name        string
	Protocol    string
	Enabled     bool
	Quarantined bool // by its configuration, or since its launch is not the approved one
	State       upstream.State
	// Listed says that the server has told its tools, now or in an earlier
	// life of the daemon.
	Listed bool
	// Told says that it has done so since it is launched as it is, in this life.
	Told  bool
	Tools []*Tool // in the server's order
}

// Snapshot is one consistent view of everything. It never changes.
type Snapshot struct {
	version uint64
	servers []*Server // by name
	byName  map[string]*Server
	tools   map[tool.ID]*Tool
	lookup  *lookup

	replaced chan struct{} // closed when another one is published
}

// Replaced is closed when there is a later snapshot than this one.
func (s *Snapshot) Replaced() <-chan struct{} { return s.replaced }

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
	next := &Snapshot{byName: map[string]*Server{}, tools: map[tool.ID]*Tool{}, replaced: make(chan struct{})}
	var parts []*search.Part
	var tools []*Tool

	c.mu.Lock()
	for _, configured := range c.servers {
		decided := c.Book.View(configured.Name)
		server := &Server{
			Name: configured.Name, Protocol: configured.Protocol,
			Enabled: configured.Enabled, Quarantined: Quarantined(configured, decided),
			State: c.states[configured.Name],
		}
		if l := c.lists[configured.Name]; l != nil {
			server.Listed, server.Told = true, l.received
			parts = append(parts, l.part)
			for _, e := range l.entries {
				t := newTool(configured, decided, c.infer, e)
				server.Tools = append(server.Tools, t)
				next.tools[t.ID] = t
			}
			tools = append(tools, server.Tools...)
		}
		next.servers = append(next.servers, server)
		next.byName[server.Name] = server
	}
	c.mu.Unlock()

	slices.SortFunc(next.servers, func(a, b *Server) int { return cmp.Compare(a.Name, b.Name) })
	var before *lookup
	if old != nil {
		next.version, before = old.version+1, old.lookup
	}
	next.lookup = newLookup(before, parts, tools)
	c.current.Store(next)
	if old != nil {
		close(old.replaced)
	}
}

func newTool(server config.Server, decided *approval.View, infer policy.InferMode, e *entry) *Tool {
	t := &Tool{Definition: e.definition, Effective: e.definition.Hints, entry: e, infer: infer}
	for _, o := range server.HintOverrides {
		if matches(o.Pattern, t.ID.Tool) {
			t.Effective = o.Hints.Over(t.Effective)
		}
	}
	if infer != policy.InferOff && policy.Silent(t.Effective) {
		t.inferred = true
		if counts(infer) { // else it is worked out when somebody asks
			t.Effective = policy.Effective(t.Effective, e.inferred().Operation, infer)
		}
	}
	t.CallWith = policy.CallWith(t.Effective)
	t.Status = policy.StatusOf(facts(server, decided, e))
	return t
}

// counts says whether what is inferred is part of the effective hints.
func counts(infer policy.InferMode) bool {
	return infer != policy.InferOff && infer != policy.InferAdvise
}

// inferAll works out, without a lock, what a snapshot will need.
func inferAll(entries []*entry) {
	for _, e := range entries {
		if policy.Silent(e.definition.Hints) {
			e.inferred()
		}
	}
}
