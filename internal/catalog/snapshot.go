package catalog

import (
	"strings"
	"sync"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/upstream"
)

// Server is a configured server with its state and tools. It is immutable.
type Server struct {
	Name        string
	Protocol    string
	Enabled     bool
	Quarantined bool // by its configuration, or because its launch is not the approved one
	State       upstream.State
	// Listed reports whether the server's tools are known, from this or an earlier
	// process.
	Listed bool
	// ListedThisRun reports whether the server has listed its tools in this process, with its current launch
	// configuration.
	ListedThisRun bool
	Tools         []*Tool // in the server's order
	Callable      int     // number of them that a search for callable tools finds
	settings      []config.ToolSettings
}

// AwaitsFirstList reports whether the server is starting and has neither listed its tools
// nor failed.
func (s *Server) AwaitsFirstList() bool {
	begins := s.State.Phase == "" || s.State.Phase == upstream.Stopped || s.State.Phase == upstream.Connecting
	return s.Enabled && !s.Quarantined && !s.Listed && begins && s.State.FailedAt.IsZero()
}

// TotalDefinitionSize returns the total size of the definitions of the server's tools.
func (s *Server) TotalDefinitionSize() (n int) {
	for _, t := range s.Tools {
		n += len(t.Raw)
	}
	return n
}

// Snapshot is one consistent view of all servers and tools. It never changes.
type Snapshot struct {
	version uint64
	servers []*Server // by name
	byName  map[string]*Server
	tools   map[tool.ID]*Tool
	aliases map[tool.ID]*Tool // by the server and the user's name
	always  []*Tool           // callable tools that every search result begins with, in the order of the file
	lookup  *searchIndex

	replaced chan struct{} // closed when the next one is published
	scoped   scopedSnapshotCache
}

// maxScopedSnapshots is the limit of scopes for which a snapshot is cached.
const maxScopedSnapshots = 64

// scopedSnapshotCache caches the snapshot for each scope, computed at its first use.
type scopedSnapshotCache struct {
	mu  sync.Mutex // guards all
	all map[policy.ScopeKey]*scopedSnapshot
}

type scopedSnapshot struct {
	once     sync.Once
	snapshot *Snapshot
}

// ReplacedChan returns a channel that is closed when a newer snapshot is published.
func (s *Snapshot) ReplacedChan() <-chan struct{} { return s.replaced }

// Version returns a number that increases with each snapshot.
func (s *Snapshot) Version() uint64 { return s.version }

// Servers returns the configured servers by name.
func (s *Snapshot) Servers() []*Server { return s.servers }

// Server returns the named server, or nil.
func (s *Snapshot) Server(name string) *Server { return s.byName[name] }

// Tool returns the tool with that id, callable or not, or nil.
func (s *Snapshot) Tool(id tool.ID) *Tool { return s.tools[id] }

// ToolCount returns the number of known tools, callable or not.
func (s *Snapshot) ToolCount() int { return len(s.tools) }

// TotalDefinitionSize returns the total size of all known definitions.
func (s *Snapshot) TotalDefinitionSize() (n int) {
	for _, server := range s.servers {
		n += server.TotalDefinitionSize()
	}
	return n
}

// maxSuggestions is the maximum number of suggestions for an unknown name.
const maxSuggestions = 3

// SuggestIDs returns similar ids for an unknown id: server names if the server is unknown, else callable tools of the
// server, as "server:tool".
func (s *Snapshot) SuggestIDs(id tool.ID) []string {
	server := s.byName[id.Server]
	var names []string
	if server == nil {
		for _, x := range s.servers {
			names = append(names, x.Name)
		}
		return search.NearestNames(id.Server, names, maxSuggestions)
	}
	for _, t := range server.Tools {
		if t.Status == policy.Callable && t.shadowedBy == "" {
			names = append(names, t.shown.ShownName())
		}
	}
	near := search.NearestNames(id.Tool, names, maxSuggestions)
	for i, name := range near {
		near[i] = tool.ID{Server: id.Server, Tool: name}.String()
	}
	return near
}

// SuggestByToolName returns "server:tool" ids of callable tools for a name that lacks the server or uses another
// separator.
func (s *Snapshot) SuggestByToolName(name string) []string {
	var found []string
	for _, server := range s.servers {
		own, _ := strings.CutPrefix(name, server.Name)
		own = strings.TrimLeft(own, "_-./ ")
		for _, t := range server.Tools {
			shown := t.shown.ShownName()
			if (t.ID.Tool == name || t.ID.Tool == own || shown == name || shown == own) && t.Status == policy.Callable && t.shadowedBy == "" && len(found) < maxSuggestions {
				found = append(found, t.shown.ShownID().String())
			}
		}
	}
	return found
}

func newTool(server config.Server, decided *approval.ServerView, infer policy.InferMode, e *analyzedTool) *Tool {
	t := newConfiguredTool(server, infer, e)
	if pin := decided.ToolDecisions(t.ID.Tool).Pin; pin != nil && pin.Fingerprint == t.Fingerprint() {
		t.pin = pin
	}
	t.Status = policy.StatusOf(newStatusFacts(server, decided, e))
	block := decided.ToolDecisions(e.definition.ID.Tool).Block
	t.Blocked = block != nil && block.Fingerprint == e.definition.Fingerprint()
	return t
}

// newConfiguredTool returns the tool that results from its definition and the configuration alone.
func newConfiguredTool(server config.Server, infer policy.InferMode, e *analyzedTool) *Tool {
	t := &Tool{Definition: e.definition, Effective: e.definition.Hints, entry: e, InferMode: infer}
	for _, o := range server.HintOverrides {
		if policy.MatchesPattern(o.Pattern, t.ID.Tool) {
			t.override = o.Hints.WithDefaults(t.override)
		}
	}
	t.Effective = t.override.WithDefaults(t.Effective)
	var inferred classify.Inference
	if areInferredHintsEnforced(infer) && policy.HintsUnset(t.Effective) { // else hints are inferred on demand
		inferred = e.classification.InferredHints()
	}
	if server.TrustSandbox {
		counts := inferred.Operation
		if inferred.Unsure { // only the cautious default
			counts = policy.NoOperation
		}
		t.proven = policy.ProvenHints(t.Effective, counts, policy.SandboxProof{ReadOnly: server.Sandbox.ProvesReadOnly(), NoNetwork: server.Sandbox.ProvesNoNetwork()})
		t.Effective = t.Effective.WithDefaults(t.proven)
	}
	if infer != policy.InferOff && policy.HintsUnset(t.Effective) {
		t.undeclared = true
		t.Effective = policy.EffectiveHints(t.Effective, inferred.Operation, infer)
	}
	t.CallWith = policy.CallToolForHints(t.Effective)
	t.settings = server.ToolSettingsOf(t.ID.Tool)
	t.shown = shownDefinition(t.Definition, t.settings)
	t.laneRule = configuredArgumentRule(server.Lanes, t.ID.Tool)
	return t
}

// precomputeInferredHints infers, without a lock, the hints that a snapshot will need.
func precomputeInferredHints(entries []*analyzedTool) {
	for _, e := range entries {
		if policy.HintsUnset(e.definition.Hints) {
			e.classification.InferredHints()
		}
	}
}

// Search ranks the callable tools that keep accepts (nil accepts all), with learned habits as a prior (may be nil). It
// returns the best n and the number of all matches.
func (s *Snapshot) Search(h *search.Habits, query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.lookup.search(s.lookup.callable, h, query, n, keep)
}

// SearchLocked is like Search, but ranks the tools that cannot be called, without habits.
func (s *Snapshot) SearchLocked(query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.lookup.search(s.lookup.locked, nil, query, n, keep)
}

// ExplainHit returns the reasons why Search found a tool.
func (s *Snapshot) ExplainHit(used *search.Habits, query string, h Hit) []search.MatchReason {
	return s.lookup.callable.MatchReasons(used, query, h.doc, h.Tool.shown)
}

// CallableCount returns the number of callable tools.
func (s *Snapshot) CallableCount() int { return s.lookup.callable.Len() }

// newStatusFacts returns the inputs of a tool's status.
func newStatusFacts(server config.Server, decided *approval.ServerView, e *analyzedTool) policy.StatusFacts {
	entry := decided.ToolDecisions(e.definition.ID.Tool)
	denies := isDeniedByConfig(server, e.definition.ID.Tool)
	return policy.StatusFacts{
		// If the configuration alone locks a tool, the reason is known without the
		// approvals.
		Known:          decided.IsLoaded() || !server.Enabled || server.Quarantined || denies,
		ServerEnabled:  server.Enabled,
		Quarantined:    IsQuarantined(server, decided),
		DeniedByConfig: denies,
		SwitchedOff:    entry.Off != nil,
		Approved:       entry.Approves(e.definition.Fingerprint()),
	}
}
