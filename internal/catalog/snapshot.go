package catalog

import (
	"strings"
	"sync"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/upstream"
)

// Server is a configured server as the product sees it. It is immutable.
type Server struct {
	Name        string
	Protocol    string
	Enabled     bool
	Quarantined bool // by its configuration, or since its launch is not the approved one
	State       upstream.State
	// Listed reports whether the server has told its tools, now or in an earlier
	// life of the daemon.
	Listed bool
	// Told reports whether it has done so since it is launched as it is, in this life.
	Told     bool
	Tools    []*Tool // in the server's order
	Callable int     // how many of them are found by who looks for tools that can be called
}

// Unheard reports whether the server is to run, and has neither told its tools nor failed to.
func (s *Server) Unheard() bool {
	begins := s.State.Phase == "" || s.State.Phase == upstream.Stopped || s.State.Phase == upstream.Connecting
	return s.Enabled && !s.Quarantined && !s.Listed && begins && s.State.FailedAt.IsZero()
}

// DefinitionBytes is how many bytes its tools' definitions have.
func (s *Server) DefinitionBytes() (n int) {
	for _, t := range s.Tools {
		n += len(t.Raw)
	}
	return n
}

// Snapshot is one consistent view of everything. It never changes.
type Snapshot struct {
	version uint64
	servers []*Server // by name
	byName  map[string]*Server
	tools   map[tool.ID]*Tool
	lookup  *lookup

	replaced chan struct{} // closed when another one is published
	narrowed narrowed
}

// maxNarrowed is how many scopes a snapshot is kept for.
const maxNarrowed = 64

// narrowed are a snapshot's parts that scopes let through, each made when it is first
// asked for.
type narrowed struct {
	mu  sync.Mutex // guards all
	all map[policy.ScopeKey]*narrow
}

type narrow struct {
	once sync.Once
	of   *Snapshot
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

// DefinitionBytes is how many bytes the definitions of all known tools have.
func (s *Snapshot) DefinitionBytes() (n int) {
	for _, server := range s.servers {
		n += server.DefinitionBytes()
	}
	return n
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

// Named suggests names, as "server:tool", for one that is no id: of the callable
// tools that it names without their server, or with another mark between the two.
func (s *Snapshot) Named(name string) []string {
	var found []string
	for _, server := range s.servers {
		own, _ := strings.CutPrefix(name, server.Name)
		own = strings.TrimLeft(own, "_-./ ")
		for _, t := range server.Tools {
			if (t.ID.Tool == name || t.ID.Tool == own) && t.Status == policy.Callable && len(found) < maxNearest {
				found = append(found, t.ID.String())
			}
		}
	}
	return found
}

func newTool(server config.Server, decided *approval.View, infer policy.InferMode, e *entry) *Tool {
	t := underRules(server, infer, e)
	if pin := decided.Tool(t.ID.Tool).Pin; pin != nil && pin.Fingerprint == t.Fingerprint() {
		t.pin = pin
	}
	t.Status = policy.StatusOf(facts(server, decided, e))
	block := decided.Tool(e.definition.ID.Tool).Block
	t.Blocked = block != nil && block.Fingerprint == e.definition.Fingerprint()
	return t
}

// underRules is a tool as far as its definition and the configuration say what it is.
func underRules(server config.Server, infer policy.InferMode, e *entry) *Tool {
	t := &Tool{Definition: e.definition, Effective: e.definition.Hints, entry: e, Infers: infer}
	for _, o := range server.HintOverrides {
		if policy.Matches(o.Pattern, t.ID.Tool) {
			t.override = o.Hints.Over(t.override)
		}
	}
	t.Effective = t.override.Over(t.Effective)
	if infer != policy.InferOff && policy.Silent(t.Effective) {
		t.inferred = true
		if counts(infer) { // else it is worked out when somebody asks
			t.Effective = policy.Effective(t.Effective, e.nature.Inferred().Operation, infer)
		}
	}
	t.CallWith = policy.CallWith(t.Effective)
	t.declared = declaredRule(server.Lanes, t.ID.Tool)
	return t
}

// inferAll works out, without a lock, what a snapshot will need.
func inferAll(entries []*entry) {
	for _, e := range entries {
		if policy.Silent(e.definition.Hints) {
			e.nature.Inferred()
		}
	}
}

// SearchUsed ranks the callable tools that keep accepts (nil accepts all), with
// what was learned from use as a prior (nil is nothing). It returns the best n
// and the number of all that match.
func (s *Snapshot) SearchUsed(h *search.Habits, query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.lookup.search(s.lookup.callable, h, query, n, keep)
}

// SearchLocked is SearchUsed without a prior over the tools that exist but cannot
// be called.
func (s *Snapshot) SearchLocked(query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.lookup.search(s.lookup.locked, nil, query, n, keep)
}

// Explain returns why SearchUsed found a tool.
func (s *Snapshot) Explain(used *search.Habits, query string, h Hit) []search.Reason {
	return s.lookup.callable.Explain(used, query, h.doc, h.Tool.Definition)
}

// CallableCount is the number of tools that can be called.
func (s *Snapshot) CallableCount() int { return s.lookup.callable.Len() }

// facts is what the status of a tool follows from.
func facts(server config.Server, decided *approval.View, e *entry) policy.StatusFacts {
	entry := decided.Tool(e.definition.ID.Tool)
	denies := denied(server, e.definition.ID.Tool)
	return policy.StatusFacts{
		// What the configuration alone locks is locked for a known reason.
		Known:          decided.Known() || !server.Enabled || server.Quarantined || denies,
		ServerEnabled:  server.Enabled,
		Quarantined:    Quarantined(server, decided),
		DeniedByConfig: denies,
		SwitchedOff:    entry.Off != nil,
		Approved:       entry.Approves(e.definition.Fingerprint()),
	}
}
