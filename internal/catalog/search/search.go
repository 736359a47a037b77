// Package search is the index over tool definitions: it ranks tools for the words of a
// query by BM25F, synonyms, spelling and word vectors. A Part (part.go) is the tools of
// one server, an Index (index.go) several parts, a View (view.go) what a search sees of
// it. query.go parses queries, naming.go matches names, rank.go ranks, explain.go gives
// reasons, habits.go learns from use. lists.go reads words.txt; words.go splits text into
// words.
//
// Guarantees:
//   - Parts, indexes and views are immutable.
//   - The same query on the same definitions gives the same order and scores, in whatever
//     order they were added.
//   - What a view does not show has no influence.
//   - Time is bounded for any query.
//
// It works offline on the definitions alone, and does not know what may be called: the
// caller chooses what a view shows.
package search

// Hit is one match. Doc is its document number; Score is in (0, 1].
type Hit struct {
	Doc   int
	Score float64
}

// maxQuery bounds a query, in bytes.
const maxQuery = 4 << 10

// The fields of a definition, which have different weights.
const (
	inName = iota
	inServer
	inTitle
	inSummary       // first sentence of the description
	inDescription   // its rest
	inParameter     // names of parameters
	inParameterText // their titles, descriptions and allowed values
	fields
)
