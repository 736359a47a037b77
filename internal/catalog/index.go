package catalog

import (
	"slices"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/gate/policy"
)

// Hit is one search result. Score is in (0, 1].
type Hit struct {
	Tool  *Tool
	Score float64
	Rank  int // place among the matches, from 0; -1 for a tool that is always listed and does not match
	doc   int // document number in the index
}

// searchIndex has one index of all known tools and two views of it. Callable and locked
// tools are searched separately, so that locked tools do not change the scores of
// callable ones.
type searchIndex struct {
	parts            []*search.ServerIndexPart
	index            *search.Index
	callable, locked *search.View
	visibility       []visibility // by document number
	tools            []*Tool      // by document number
}

// visibility is the view that a tool is in.
type visibility uint8

const (
	notSearchable visibility = iota // only on its server's own endpoint, or only for user interfaces
	visibleCallable
	visibleLocked
)

func visibilityOf(t *Tool) visibility {
	switch {
	case t.App.HiddenFromModel, t.shadowedBy != "" || t.Status == policy.Callable && t.ForClients:
		return notSearchable
	case t.Status != policy.Callable:
		return visibleLocked
	}
	return visibleCallable
}

// newSearchIndex returns an index of the tools in parts. If the parts are the same as in old, it reuses old's index. If
// the same tools can be called, it reuses old's views. So an approval needs no new index, and a change of a server's
// state changes nothing.
func newSearchIndex(old *searchIndex, parts []*search.ServerIndexPart, tools []*Tool) *searchIndex {
	l := &searchIndex{parts: parts, tools: tools, visibility: make([]visibility, len(tools))}
	for i, t := range tools {
		l.visibility[i] = visibilityOf(t)
	}
	sameParts := old != nil && slices.Equal(old.parts, parts)
	if sameParts {
		l.index = old.index
	} else {
		l.index = search.NewIndex(parts)
	}
	if sameParts && slices.Equal(old.visibility, l.visibility) {
		l.callable, l.locked = old.callable, old.locked
		return l
	}
	l.callable = l.index.View(func(doc int) bool { return l.visibility[doc] == visibleCallable })
	l.locked = l.index.View(func(doc int) bool { return l.visibility[doc] == visibleLocked })
	return l
}

func (l *searchIndex) search(v *search.View, h *search.Habits, query string, n int, keep func(*Tool) bool) ([]Hit, int) {
	var keepDoc func(int) bool
	if keep != nil {
		keepDoc = func(doc int) bool { return keep(l.tools[doc]) }
	}
	found, total := v.Search(h, query, n, keepDoc)
	hits := make([]Hit, len(found))
	for i, h := range found {
		hits[i] = Hit{l.tools[h.Doc], h.Score, i, h.Doc}
	}
	return hits, total
}
