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

// The fields of a definition. A word weighs by where it stands.
const (
	inName = iota
	inServer
	inTitle
	inDescription
	inParameter     // names of parameters
	inParameterText // their titles, descriptions and allowed values
	fields
)

// analysis is a bag of words per field. The words lie in one string, so that
// ten thousand documents are ten thousand objects for the collector, and not a
// million.
type analysis struct {
	words   string
	terms   []term
	lengths [fields]uint16
}

// term is one distinct word of a document: where it lies in words, and how
// often it stands in each field.
type term struct {
	at    uint16
	len   uint8
	count [fields]uint8
}

func (a *analysis) word(t *term) string { return a.words[t.at : int(t.at)+int(t.len)] }
