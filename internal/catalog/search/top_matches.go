package search

import (
	"cmp"
	"math"
	"slices"
)

// topMatches keeps the n best matches, best first.
type topMatches struct {
	ix   *Index
	n    int
	list []scoredDoc
}

type scoredDoc struct {
	doc   int32
	score float32
}

// compareDocs orders by score, then by id, so that the order does not depend on document
// numbers.
func (b *topMatches) compareDocs(x, y scoredDoc) int {
	if x.score != y.score {
		return cmp.Compare(y.score, x.score)
	}
	p, q := b.ix.toolID(uint32(x.doc)), b.ix.toolID(uint32(y.doc))
	return cmp.Or(cmp.Compare(p.Server, q.Server), cmp.Compare(p.Tool, q.Tool), cmp.Compare(x.doc, y.doc))
}

// minScore returns the score that the next match must reach.
func (b *topMatches) minScore() float32 {
	if len(b.list) < b.n {
		return 0
	}
	return b.list[b.n-1].score
}

func (b *topMatches) addMatch(doc int32, score float32) {
	r := scoredDoc{doc, score}
	if len(b.list) == b.n {
		if b.compareDocs(r, b.list[b.n-1]) >= 0 {
			return
		}
		b.list = b.list[:b.n-1]
	}
	at, _ := slices.BinarySearchFunc(b.list, r, b.compareDocs)
	b.list = slices.Insert(b.list, at, r)
}

// toHits returns the matches in order, with scores relative to the ideal score.
func (b *topMatches) toHits(ideal float32) []Hit {
	hits := make([]Hit, len(b.list))
	for i, r := range b.list {
		hits[i] = Hit{Doc: int(r.doc), Score: relativeScore(r.score, ideal)}
	}
	return hits
}

// relativeScore returns the score relative to the ideal score, in (0, 1], with four decimals. It is the square root of
// the quotient, because real texts stay far below the ideal score.
func relativeScore(score, ideal float32) float64 {
	if score >= ideal {
		return 1
	}
	s := math.Ceil(math.Sqrt(float64(score)/float64(ideal))*1e4) / 1e4
	return min(1, max(1e-4, s))
}
