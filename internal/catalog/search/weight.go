package search

import (
	"math"
	"sync"
)

// Ranking is the shape of the ranking: its numbers, and the vectors. It is
// BM25F, with shares for what else speaks for a tool. A part keeps the one that it was
// made with.
type Ranking struct {
	// A field's boost is what one occurrence in it is worth; its slope how much a
	// long field is held against the tool, beside a field of usual length.
	Boosts, Slopes [fields]float32
	Saturation     float32

	HeadIDF  float32 // of a word in a name or a first sentence: how much of its rarity is that among those alone
	Surface  float32 // the very word, beside its stem
	Name     float32 // words of the tool's name, however long its name is
	Covered  float32 // a tool whose whole name is asked for, as a part of what it has
	Clause   float32 // the best answer to one clause of the query
	Context  float32 // …of a clause that only tells the circumstances
	Mass     float32 // …of a clause that nothing answers well, at most so much less
	Best     float32 // the tool that answers a clause best, as a part of the best sum
	Server   float32 // the best tool of the same server
	Vector   float32 // likeness to the query, as a part of the best sum
	Near     float32 // the words of the query that the name says, or nearly so, as a part of the best sum
	Synonym  float32 // a synonym, beside the word itself
	Instead  float32 // …and for a word that no tool uses
	Repeat   float32 // each time that a word is said again
	Compound float32 // being a part of what two words mean together
	Meant    float32 // having the meaning of such two words
	Joined   float32 // written as one word instead of two, or the other way
	Misspelt float32 // spelt nearly so
	Alike    float32 // a word that lies near one that no tool uses

	Vectors *Vectors `json:"-"`
	lexicon *stemCache
}

// averageLengths are the lengths of fields in thousands of real tools. They do not follow the
// catalogue, so that what a word weighs in a tool changes with that tool only.
var averageLengths = [fields]float32{inName: 3, inServer: 1.5, inTitle: 3, inSummary: 10, inDescription: 20, inParameter: 5, inParameterText: 25}

// DefaultRanking is the ranking of the product.
func DefaultRanking() *Ranking {
	return &Ranking{
		Boosts:     [fields]float32{inName: 4, inServer: 3, inTitle: 2, inSummary: 1.2, inDescription: 0.35, inParameter: 1.5, inParameterText: 0.5},
		Slopes:     [fields]float32{inName: 0.2, inServer: 0.15, inTitle: 0.2, inSummary: 1, inDescription: 0.7, inParameter: 1, inParameterText: 0.3},
		Saturation: 1.5,
		HeadIDF:    0.3, Surface: 0.45, Name: 0.23, Covered: 0.15, Clause: 0.9, Context: 0.8, Mass: 0.3, Best: 0.25, Server: 0.37, Vector: 1.5, Near: 0.6,
		Synonym: 0.12, Instead: 0.9, Repeat: 0.2, Compound: 0.4, Meant: 0.45, Joined: 0.3, Misspelt: 0.7, Alike: 0.7,
		Vectors: embeddedVectors(), lexicon: new(stemCache),
	}
}

// rawWeight returns the weight of a word in a tool before saturation.
func (r *Ranking) rawWeight(count *[fields]uint8, lengths *[fields]int) (w float32) {
	for f, n := range count {
		if n != 0 {
			w += float32(n) * r.Boosts[f] / (1 - r.Slopes[f] + r.Slopes[f]*float32(lengths[f])/averageLengths[f])
		}
	}
	return w
}

func (r *Ranking) saturated(w float32) float32 { return w / (w + r.Saturation) }

// maxFactor is how many times its words a tool scores at most.
func (r *Ranking) maxFactor() float32 {
	return ((1+r.Covered)*(1+r.Name+r.Clause)+r.Best)*(1+r.Server) + r.Vector + r.Near
}

func idf(docs, with int) float32 {
	return float32(math.Log(1 + (float64(docs-with)+0.5)/(float64(with)+0.5)))
}

// What is above any sum of words, and what is a part of any.
const (
	literalBonus    = 4 << 20          // the query is the name, to the letter
	exactBonus      = 2 * literalBonus // …with that of its server
	wordedBonus     = 1 << 20          // …or in its words
	changingShare   = 0.4              // what a tool is worth that changes something, to who only asks how much there is
	deprecatedShare = 0.5              // what a tool is worth that is deprecated, with none to use instead
)

// defaultRanking is what Default returns, made once.
var defaultRanking = sync.OnceValue(DefaultRanking)
