package catalog

import (
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// OperationLane returns the tool's lane in a scope before a call is evaluated: BaseOperationLane, or read
// if a configured rule classifies its arguments.
func (t *Tool) OperationLane() policy.Operation {
	if t.laneRule != nil {
		return policy.Read
	}
	return t.BaseOperationLane()
}

// BaseOperationLane returns the lane of the tool itself: the more dangerous of its declared and its inferred operation,
// regardless of the configured inference mode.
func (t *Tool) BaseOperationLane() policy.Operation {
	lane := t.CallWith.Operation()
	if t.undeclared || policy.HintsUnset(t.Effective) { // inference does not override declared hints
		lane = max(lane, t.entry.classification.InferredHints().Operation)
	}
	return lane
}

// InScope reports whether the tool is in a scope.
func (t *Tool) InScope(s policy.Scope) bool {
	return !s.IsBounded() || s.AllowsTool(t.ID.Server, t.ID.Tool) && policy.ScopeIncludes(s, t.OperationLane())
}

// InScope reports whether the tool with this id is in a scope, even if it does not exist. An unknown tool has no lane,
// so it is only in scopes with all lanes.
func (s *Snapshot) InScope(id tool.ID, within policy.Scope) bool {
	if t := s.Tool(id); t != nil {
		return t.InScope(within)
	}
	return within.AllowsTool(id.Server, id.Tool) && within.AllowsAllLanes()
}

// ScopedTo returns a snapshot that contains only the scope. Servers and tools outside the scope are not in it, are not
// counted, and do not affect search results, their order or their scores.
func (s *Snapshot) ScopedTo(within policy.Scope) *Snapshot {
	if !within.IsBounded() {
		return s
	}
	key := within.Key()
	s.scoped.mu.Lock()
	n := s.scoped.all[key]
	if n == nil {
		if s.scoped.all == nil || len(s.scoped.all) >= maxScopedSnapshots {
			s.scoped.all = map[policy.ScopeKey]*scopedSnapshot{}
		}
		n = &scopedSnapshot{}
		s.scoped.all[key] = n
	}
	s.scoped.mu.Unlock()
	n.once.Do(func() { n.snapshot = s.computeScoped(within) })
	return n.snapshot
}

func (s *Snapshot) computeScoped(within policy.Scope) *Snapshot {
	less := &Snapshot{version: s.version, byName: map[string]*Server{}, tools: map[tool.ID]*Tool{}, replaced: s.replaced}
	for _, server := range s.servers {
		if !within.AllowsServer(server.Name) {
			continue
		}
		one := *server
		one.Tools, one.Callable = nil, 0
		for _, t := range server.Tools {
			if !t.InScope(within) {
				continue
			}
			one.Tools = append(one.Tools, t)
			less.tools[t.ID] = t
			if visibilityOf(t) == visibleCallable {
				one.Callable++
			}
		}
		less.servers = append(less.servers, &one)
		less.byName[one.Name] = &one
	}
	for _, t := range s.always {
		if less.tools[t.ID] == t {
			less.always = append(less.always, t)
		}
	}
	less.lookup = s.lookup.restrictTo(func(t *Tool) bool { return less.tools[t.ID] == t })
	return less
}

// restrictTo returns a searchIndex over the same index that contains only the tools that there accepts.
func (l *searchIndex) restrictTo(there func(*Tool) bool) *searchIndex {
	less := &searchIndex{parts: l.parts, index: l.index, tools: l.tools, visibility: make([]visibility, len(l.visibility))}
	for i, t := range l.tools {
		if there(t) {
			less.visibility[i] = l.visibility[i]
		}
	}
	view := func(which visibility) *search.View {
		return l.index.View(func(doc int) bool { return less.visibility[doc] == which })
	}
	less.callable, less.locked = view(visibleCallable), view(visibleLocked)
	return less
}
