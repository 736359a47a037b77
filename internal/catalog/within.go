package catalog

import (
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// Lane is what the tool counts as in a scope before a call of it is judged: what it does
// by itself, or the least where a person has said that its arguments decide.
func (t *Tool) Lane() policy.Operation {
	if t.declared != nil {
		return policy.Read
	}
	return t.OwnLane()
}

// OwnLane is what the tool does by itself: the worst of what it is called with and what
// it seems to do, whatever the configuration makes of that.
func (t *Tool) OwnLane() policy.Operation {
	lane := t.CallWith.Operation()
	if t.inferred || policy.Silent(t.Effective) { // where it says so itself, nothing is guessed
		lane = max(lane, t.entry.nature.Inferred().Operation)
	}
	return lane
}

// In reports whether the tool is in a scope.
func (t *Tool) In(s policy.Scope) bool {
	return !s.Bounded() || s.Tool(t.ID.Server, t.ID.Tool) && policy.Within(s, t.Lane())
}

// InScope reports whether a tool is in a scope, whether there is one (any more) or
// not. What does not exist has no lane: it is in no scope that has not all of them.
func (s *Snapshot) InScope(id tool.ID, within policy.Scope) bool {
	if t := s.Tool(id); t != nil {
		return t.In(within)
	}
	return within.Tool(id.Server, id.Tool) && within.AllLanes()
}

// Within returns the snapshot of a world in which only what is in the scope exists:
// no other server or tool is in it, is counted, or changes what is found, in which
// order and with which score.
func (s *Snapshot) Within(within policy.Scope) *Snapshot {
	if !within.Bounded() {
		return s
	}
	key := within.Key()
	s.narrowed.mu.Lock()
	n := s.narrowed.all[key]
	if n == nil {
		if s.narrowed.all == nil || len(s.narrowed.all) >= maxNarrowed {
			s.narrowed.all = map[policy.ScopeKey]*narrow{}
		}
		n = &narrow{}
		s.narrowed.all[key] = n
	}
	s.narrowed.mu.Unlock()
	n.once.Do(func() { n.of = s.narrow(within) })
	return n.of
}

func (s *Snapshot) narrow(within policy.Scope) *Snapshot {
	less := &Snapshot{version: s.version, byName: map[string]*Server{}, tools: map[tool.ID]*Tool{}, replaced: s.replaced}
	for _, server := range s.servers {
		if !within.Server(server.Name) {
			continue
		}
		one := *server
		one.Tools, one.Callable = nil, 0
		for _, t := range server.Tools {
			if !t.In(within) {
				continue
			}
			one.Tools = append(one.Tools, t)
			less.tools[t.ID] = t
			if amongWhich(t) == amongCallable {
				one.Callable++
			}
		}
		less.servers = append(less.servers, &one)
		less.byName[one.Name] = &one
	}
	less.lookup = s.lookup.narrow(func(t *Tool) bool { return less.tools[t.ID] == t })
	return less
}

// narrow returns a lookup of the tools that there are; the index is the same.
func (l *lookup) narrow(there func(*Tool) bool) *lookup {
	less := &lookup{parts: l.parts, index: l.index, tools: l.tools, found: make([]found, len(l.found))}
	for i, t := range l.tools {
		if there(t) {
			less.found[i] = l.found[i]
		}
	}
	view := func(which found) *search.View {
		return l.index.View(func(doc int) bool { return less.found[doc] == which })
	}
	less.callable, less.locked = view(amongCallable), view(amongLocked)
	return less
}
