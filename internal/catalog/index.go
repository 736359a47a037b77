package catalog

import (
	"slices"

	"mcpproxy/internal/policy"
	"mcpproxy/internal/search"
)

// Hit is one tool that a search found. Score is in (0, 1].
type Hit struct {
	Tool  *Tool
	Score float64
	doc   int // in the index
}

// lookup is what a snapshot is searched with: one index of all known tools,
// and two views of it. Callable and locked tools are searched apart, because
// what exists but cannot be called must not move the scores of what can.
type lookup struct {
	parts            []*search.Part
	index            *search.Index
	callable, locked *search.View
	found            []found // tool → in which view it is
	tools            []*Tool // in the order of the index
}

// found says where a tool is found.
type found uint8

const (
	nowhere found = iota // it is for clients of its server's own address alone
	amongCallable
	amongLocked
)

// newLookup makes a lookup of the tools in parts. It takes over what old has
// of it: the index when the parts are the same, the views when the same tools
// can be called. So a tool that a person allows costs no index, and a server
// that only changes its state costs nothing.
func newLookup(old *lookup, parts []*search.Part, tools []*Tool) *lookup {
	l := &lookup{parts: parts, tools: tools, found: make([]found, len(tools))}
	for i, t := range tools {
		switch {
		case t.Status != policy.Callable:
			l.found[i] = amongLocked
		case !t.ForClients:
			l.found[i] = amongCallable
		}
	}
	sameParts := old != nil && slices.Equal(old.parts, parts)
	if sameParts {
		l.index = old.index
	} else {
		l.index = search.Assemble(parts)
	}
	if sameParts && slices.Equal(old.found, l.found) {
		l.callable, l.locked = old.callable, old.locked
		return l
	}
	l.callable = l.index.View(func(doc int) bool { return l.found[doc] == amongCallable })
	l.locked = l.index.View(func(doc int) bool { return l.found[doc] == amongLocked })
	return l
}

// Search ranks the callable tools that keep accepts (nil accepts all) and gives
// the best n and the number of all that match.
func (s *Snapshot) Search(query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.lookup.search(s.lookup.callable, nil, query, n, keep)
}

// SearchUsed is Search with what was learned from use as a prior; nil is
// nothing.
func (s *Snapshot) SearchUsed(h *search.Habits, query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.lookup.search(s.lookup.callable, h, query, n, keep)
}

// SearchLocked is Search over the tools that exist but cannot be called.
func (s *Snapshot) SearchLocked(query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	return s.lookup.search(s.lookup.locked, nil, query, n, keep)
}

// Explain says why SearchUsed found a tool.
func (s *Snapshot) Explain(used *search.Habits, query string, h Hit) []search.Reason {
	return s.lookup.callable.Explain(used, query, h.doc, &h.Tool.Definition)
}

// CallableCount is the number of tools that can be called.
func (s *Snapshot) CallableCount() int { return s.lookup.callable.Len() }

func (l *lookup) search(v *search.View, h *search.Habits, query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	var keepDoc func(int) bool
	if keep != nil {
		keepDoc = func(doc int) bool { return keep(l.tools[doc]) }
	}
	found, total := v.SearchUsed(h, query, n, keepDoc)
	hits := make([]Hit, len(found))
	for i, h := range found {
		hits[i] = Hit{l.tools[h.Doc], h.Score, h.Doc}
	}
	return hits, total
}
