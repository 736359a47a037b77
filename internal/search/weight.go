package search

import "math"

// The shape of the ranking: BM25F. A field's boost is what one occurrence in
// it is worth; its slope how much a long field is held against the tool, beside
// a field of usual length. The usual lengths are those of thousands of real
// tools and do not follow the catalogue, so that what a word weighs in a tool
// changes with that tool only.
const saturation = 1.5

var (
	boosts = [fields]float32{inName: 4, inServer: 2.4, inTitle: 2, inSummary: 1.4, inDescription: 0.4, inParameter: 1.5, inParameterText: 0.5}
	slopes = [fields]float32{inName: 0.2, inServer: 0.15, inTitle: 0.2, inSummary: 1, inDescription: 0.7, inParameter: 1, inParameterText: 0.3}
	usual  = [fields]float32{inName: 3, inServer: 1.5, inTitle: 3, inSummary: 10, inDescription: 20, inParameter: 5, inParameterText: 25}
)

// weigh returns the weight of a word in a tool before saturation.
func weigh(count *[fields]uint8, lengths *[fields]int) (w float32) {
	for f, n := range count {
		if n != 0 {
			w += float32(n) * boosts[f] / (1 - slopes[f] + slopes[f]*float32(lengths[f])/usual[f])
		}
	}
	return w
}

func saturated(w float32) float32 { return w / (w + saturation) }

func idf(docs, with int) float32 {
	return float32(math.Log(1 + (float64(docs-with)+0.5)/(float64(with)+0.5)))
}

// What else counts in the ranking, beside the sum over the words.
const (
	surfaceShare = 0.33             // the very word, beside its stem
	nameShare    = 0.23             // words of the tool's name, however long its name is
	clauseShare  = 0.9              // the best answer to one sentence of the query
	contextShare = 0.8              // …of a sentence that only tells the circumstances
	massShare    = 0.3              // …of a sentence that nothing answers well, at most so much less
	serverShare  = 0.5              // the best tool of the same server
	coverShare   = 0.2              // what the tools of the server have of the query together
	literalBonus = 4 << 20          // above any sum: the query is the name, to the letter
	exactBonus   = 2 * literalBonus // …with that of its server
	wordedBonus  = 1 << 20          // …or in its words

	deprecatedShare = 0.5 // what a tool is worth that is deprecated, with none to use instead

	bestShares = (1+nameShare+clauseShare)*(1+serverShare) + coverShare
)
