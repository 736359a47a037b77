package search

import (
	"cmp"
	"math"
	"slices"
)

// best keeps the n best of what is added: a heap with the worst of them on top.
type best struct {
	ix   *Index
	n    int
	heap []ranked
}

type ranked struct {
	doc   int32
	score float32
}

// compare orders by score, then by id, so that equal scores have one order
// whatever the order of the documents.
func (b *best) compare(x, y ranked) int {
	if x.score != y.score {
		return cmp.Compare(y.score, x.score)
	}
	p, q := b.ix.id(uint32(x.doc)), b.ix.id(uint32(y.doc))
	return cmp.Or(cmp.Compare(p.Server, q.Server), cmp.Compare(p.Tool, q.Tool), cmp.Compare(x.doc, y.doc))
}

func (b *best) add(doc int32, score float32) {
	r := ranked{doc, score}
	if len(b.heap) < b.n {
		b.heap = append(b.heap, r)
		b.up(len(b.heap) - 1)
		return
	}
	if b.compare(r, b.heap[0]) < 0 {
		b.heap[0] = r
		b.down()
	}
}

func (b *best) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if b.compare(b.heap[i], b.heap[parent]) <= 0 {
			return
		}
		b.heap[i], b.heap[parent] = b.heap[parent], b.heap[i]
		i = parent
	}
}

func (b *best) down() {
	for i := 0; ; {
		worst := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(b.heap) && b.compare(b.heap[child], b.heap[worst]) > 0 {
				worst = child
			}
		}
		if worst == i {
			return
		}
		b.heap[i], b.heap[worst] = b.heap[worst], b.heap[i]
		i = worst
	}
}

// take gives the best in order, with scores as parts of the ideal.
func (b *best) take(ideal float32) []Hit {
	slices.SortFunc(b.heap, b.compare)
	hits := make([]Hit, len(b.heap))
	for i, r := range b.heap {
		hits[i] = Hit{Doc: int(r.doc), Score: share(r.score, ideal)}
	}
	return hits
}

// share gives how much of the ideal a score is, within (0, 1]: the root of it,
// as no real text comes near the ideal, with four decimals, which is enough to
// compare by and short on the wire.
func share(score, ideal float32) float64 {
	if score >= ideal {
		return 1
	}
	s := math.Ceil(math.Sqrt(float64(score)/float64(ideal))*1e4) / 1e4
	return min(1, max(1e-4, s))
}
