// Package search is the lexical index over tool definitions: given the words
// of an agent it ranks tools.
//
// It guarantees that parts, indexes and views are immutable, that the same
// query on the same definitions gives the same order and scores, whatever order
// they were added in, that what a view does not show has no influence, and that
// time is bounded for any query. It works offline on the definitions alone. It
// does not know what may be called: the caller says what a view shows.
package search

// Hit is one match. Doc is the number of the tool in the index; Score is in
// (0, 1], the best match of a query first.
type Hit struct {
	Doc   int
	Score float64
}

// The fields of a definition. A word weighs by where it stands.
const (
	inName = iota
	inServer
	inTitle
	inSummary       // the first sentence of the description
	inDescription   // the rest of it
	inParameter     // names of parameters
	inParameterText // their titles, descriptions and allowed values
	fields
)

// term is one distinct word of a tool: which of the part's words, and how
// often it stands in each field.
type term struct {
	word  uint32
	count [fields]uint8
}
