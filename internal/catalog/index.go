package catalog

import (
	"slices"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/gate/policy"
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

func amongWhich(t *Tool) found {
	switch {
	case t.Status != policy.Callable:
		return amongLocked
	case !t.ForClients:
		return amongCallable
	}
	return nowhere
}

// newLookup makes a lookup of the tools in parts. It takes over what old has
// of it: the index when the parts are the same, the views when the same tools
// can be called. So a tool that a person allows costs no index, and a server
// that only changes its state costs nothing.
func newLookup(old *lookup, parts []*search.Part, tools []*Tool) *lookup {
	l := &lookup{parts: parts, tools: tools, found: make([]found, len(tools))}
	for i, t := range tools {
		l.found[i] = amongWhich(t)
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

func (l *lookup) search(v *search.View, h *search.Habits, query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	var keepDoc func(int) bool
	if keep != nil {
		keepDoc = func(doc int) bool { return keep(l.tools[doc]) }
	}
	found, total := v.Search(h, query, n, keepDoc)
	hits := make([]Hit, len(found))
	for i, h := range found {
		hits[i] = Hit{l.tools[h.Doc], h.Score, h.Doc}
	}
	return hits, total
}
