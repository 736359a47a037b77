// Package search is the lexical index over tool definitions: given the words
// of an agent it ranks tools.
//
// It guarantees that an index is immutable, that the same query on the same
// definitions gives the same order and scores, whatever order they were added
// in, and that time is bounded for any query. It works offline on the
// definitions alone. It does not know what may be called: the caller filters.
package search

import "mcpproxy/internal/tool"

// Hit is one match. Doc is the index into the documents that the index was
// built from; Score is in (0, 1], the best match of a query first.
type Hit struct {
	Doc   int
	Score float64
}

// Document is an analysed definition: what an index is built from. Analysing
// is the dear part, so the catalog keeps a Document for as long as the
// definition does not change.
type Document struct {
	ID tool.ID
	// The analysed form is private to the package.
	analysis
}
