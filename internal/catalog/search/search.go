// Package search is the lexical index over tool definitions: given the words
// of an agent it ranks tools.
//
// It guarantees that parts, indexes and views are immutable, that the same
// query on the same definitions has the same order and scores, whatever order
// they were added in, that what a view does not show has no influence, and that
// time is bounded for any query. It works offline on the definitions alone. It
// does not know what may be called: the caller says what a view shows.
//
// The files stand on one another in this order: lists (of words.txt), words (the
// splitter), segment, wording (names in their words), spelling, dot, vectors (learned by
// bench/vectors), lexicon, weight; analyze, word, part, index, set, view (what is searched); habits,
// short (short forms such as PR), question (what "how many" asks for), naming and query, what a query says; near, rank and best; explain.
package search

// Hit is one match. Doc is the number of the tool in the index; Score is in
// (0, 1], the best match of a query first.
type Hit struct {
	Doc   int
	Score float64
}

// maxQuery bounds what is read of a query, in bytes.
const maxQuery = 4 << 10

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
