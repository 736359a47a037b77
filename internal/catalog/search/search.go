// Package search is the index over tool definitions: it ranks tools for the words of a query by BM25F, synonyms, spelling and
// word vectors.
//
// Files:
//   - server_index_part.go: ServerIndexPart, the analyzed tools of one server; analyze.go reads the words of a definition.
//   - index.go: Index, built of parts; view.go: View, the tools that a search sees.
//   - query.go: parses a query: synonyms, compounds, unknown words; clauses.go: its clauses and language.
//   - rank.go: Search; top_matches.go keeps the best matches.
//   - ranking.go: the parameters of the ranking.
//   - name_matches.go: tools and servers that the query names; name_similarity.go: names similar to the query; name_wording.go:
//     names compared by stems and by meaning.
//   - explain.go: why a tool was found.
//   - habits.go: which words led to which tools before.
//   - spelling.go: words and names with few edits between them.
//   - vectors.go, dot*.go: word vectors.
//   - split_words.go: splits text into words; compounds.go splits compound words; abbreviations.go finds short forms;
//     mutating_name.go: names that promise a change.
//   - word_lists.go: reads words.txt, and the stemmer; stem_cache.go caches stems.
//   - training_words.go: words of definitions for bench/vectors.
//
// Guarantees:
//   - Parts, indexes and views are immutable.
//   - The same query on the same definitions gives the same order and scores, in whatever order they were added.
//   - Tools outside a view have no influence.
//   - Time is bounded for any query.
//
// It works offline on the definitions alone. The caller chooses the tools of a view, because this package has no
// information about which tools may be called.
package search

// Hit is one match. Doc is its document number; Score is in (0, 1].
type Hit struct {
	Doc   int
	Score float64
}

// maxQuery is the maximum length of a query, in bytes.
const maxQuery = 4 << 10

// The fields of a definition, which have different weights.
const (
	inName = iota
	inServer
	inTitle
	inSummary       // first sentence of the description
	inDescription   // the rest of the description
	inParameter     // names of parameters
	inParameterText // titles, descriptions and allowed values of parameters
	fields
)
