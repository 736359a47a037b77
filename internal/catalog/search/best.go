package search

import (
	"cmp"
	"math"
	"slices"
)

// maxFactor keeps the n best of what is added, the best first.
type topMatches struct {
	ix   *Index
	n    int
	list []ranked
}

type ranked struct {
	doc   int32
	score float32
}

// compare orders by score, then by id, so that equal scores have one order
// whatever the order of the documents.
func (b *topMatches) compare(x, y ranked) int {
	if x.score != y.score {
		return cmp.Compare(y.score, x.score)
	}
	p, q := b.ix.id(uint32(x.doc)), b.ix.id(uint32(y.doc))
	return cmp.Or(cmp.Compare(p.Server, q.Server), cmp.Compare(p.Tool, q.Tool), cmp.Compare(x.doc, y.doc))
}

// minScore is what is scored at least by what is added with success.
func (b *topMatches) minScore() float32 {
	if len(b.list) < b.n {
		return 0
	}
	return b.list[b.n-1].score
}

func (b *topMatches) add(doc int32, score float32) {
	r := ranked{doc, score}
	if len(b.list) == b.n {
		if b.compare(r, b.list[b.n-1]) >= 0 {
			return
		}
		b.list = b.list[:b.n-1]
	}
	at, _ := slices.BinarySearchFunc(b.list, r, b.compare)
	b.list = slices.Insert(b.list, at, r)
}

// hits returns the best in order, with scores as parts of the ideal.
func (b *topMatches) hits(ideal float32) []Hit {
	hits := make([]Hit, len(b.list))
	for i, r := range b.list {
		hits[i] = Hit{Doc: int(r.doc), Score: relativeScore(r.score, ideal)}
	}
	return hits
}

// relativeScore returns how much of the ideal a score is, within (0, 1]: the root of it,
// as no real text comes near the ideal, with four decimals, which is enough to
// compare by and short on the wire.
func relativeScore(score, ideal float32) float64 {
	if score >= ideal {
		return 1
	}
	s := math.Ceil(math.Sqrt(float64(score)/float64(ideal))*1e4) / 1e4
	return min(1, max(1e-4, s))
}
