package search

import (
	"math"
	"sync"
)

// RankingParameters contains the parameters of the ranking, which is BM25F with bonuses, and the word vectors. A part
// keeps the parameters that it was built with.
type RankingParameters struct {
	// Boosts contains the weight of one occurrence in each field. Slopes contains the penalty for a field that is
	// longer than average.
	Boosts, Slopes [fields]float32
	Saturation     float32

	HeadIDF  float32 // share of a word's IDF that comes from heads alone, for a word in a head
	Surface  float32 // exact word, in addition to its stem
	Name     float32 // words of the tool's name, regardless of its length
	Covered  float32 // the query contains the whole name, relative to the score
	Clause   float32 // the best match of one clause
	Context  float32 // the best match of a context clause
	Mass     float32 // maximum reduction for a clause without a good match
	Best     float32 // the best match of a clause, relative to the best score
	Server   float32 // the best tool of the same server
	Vector   float32 // vector similarity, relative to the best score
	Near     float32 // name similarity, relative to the best score
	Synonym  float32 // a synonym, relative to the word itself
	Instead  float32 // a synonym of a word that no tool has
	Repeat   float32 // each repetition of a word
	Compound float32 // part of a compound
	Meant    float32 // synonym of a compound
	Joined   float32 // written as one word instead of two, or vice versa
	Misspelt float32 // similar spelling
	Alike    float32 // similar vector, for a word that no tool has

	Vectors *WordVectors `json:"-"`
	lexicon *stemCache
}

// averageLengths contains the average field lengths of thousands of real tools. They are constants, so that the weight
// of a word in a tool changes only with that tool.
var averageLengths = [fields]float32{inName: 3, inServer: 1.5, inTitle: 3, inSummary: 10, inDescription: 20, inParameter: 5, inParameterText: 25}

// DefaultRanking returns the ranking that MCPProxy uses.
func DefaultRanking() *RankingParameters {
	return &RankingParameters{
		Boosts:     [fields]float32{inName: 4, inServer: 3, inTitle: 2, inSummary: 1.2, inDescription: 0.35, inParameter: 1.5, inParameterText: 0.5},
		Slopes:     [fields]float32{inName: 0.2, inServer: 0.15, inTitle: 0.2, inSummary: 1, inDescription: 0.7, inParameter: 1, inParameterText: 0.3},
		Saturation: 1.5,
		HeadIDF:    0.4, Surface: 0.45, Name: 0.23, Covered: 0.15, Clause: 0.9, Context: 0.8, Mass: 0.3, Best: 0.25, Server: 0.37, Vector: 1.5, Near: 0.6,
		Synonym: 0.12, Instead: 0.9, Repeat: 0.2, Compound: 0.4, Meant: 0.45, Joined: 0.3, Misspelt: 0.7, Alike: 0.7,
		Vectors: embeddedVectors(), lexicon: new(stemCache),
	}
}

// rawWeight returns the weight of a word in a tool before saturation.
func (r *RankingParameters) rawWeight(count *[fields]uint8, lengths *[fields]int) (w float32) {
	for f, n := range count {
		if n != 0 {
			w += float32(n) * r.Boosts[f] / (1 - r.Slopes[f] + r.Slopes[f]*float32(lengths[f])/averageLengths[f])
		}
	}
	return w
}

func (r *RankingParameters) saturate(w float32) float32 { return w / (w + r.Saturation) }

// maxScoreFactor returns the maximum score relative to the score by words.
func (r *RankingParameters) maxScoreFactor() float32 {
	return ((1+r.Covered)*(1+r.Name+r.Clause)+r.Best)*(1+r.Server) + r.Vector + r.Near
}

func computeIDF(docs, with int) float32 {
	return float32(math.Log(1 + (float64(docs-with)+0.5)/(float64(with)+0.5)))
}

// Bonuses that exceed any score by words, and factors.
const (
	literalBonus    = 4 << 20          // the query is the name
	exactBonus      = 2 * literalBonus // the query is the server's name and the tool's name
	wordedBonus     = 1 << 20          // the query is the name in other words
	changingShare   = 0.4              // factor for a tool that changes something, for a count question
	deprecatedShare = 0.5              // factor for a deprecated tool without a matching successor
)

// defaultRanking caches DefaultRanking.
var defaultRanking = sync.OnceValue(DefaultRanking)
