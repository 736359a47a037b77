package search

import "math"

// postings fills both lists of postings: first how many entries every word
// has, then the entries, document by document.
func (b *builder) postings() {
	b.ix.byStem = newPostings(b.countStems())
	b.ix.bySurface = newPostings(b.countSurfaces())
	stemFill, surfaceFill := b.ix.byStem.cursors(), b.ix.bySurface.cursors()
	g := newGather(len(b.forms))
	next := 0
	for doc := range b.docs {
		terms := b.docs[doc].terms
		for i := range terms {
			t := &terms[i]
			s := b.surfaces[next+i]
			w := b.weight(doc, t)
			g.add(doc, b.ix.stemOf[s], w, t.count[inName] > 0)
			if b.forms[b.ix.stemOf[s]] > 1 {
				b.ix.bySurface.put(surfaceFill, s, doc, w, t.count[inName] > 0)
			}
		}
		next += len(terms)
		for _, e := range g.take() {
			b.ix.byStem.put(stemFill, e.stem, doc, e.weight, e.inName)
		}
	}
	b.ix.byStem.setIDF(len(b.docs))
	b.ix.bySurface.setIDF(len(b.docs))
}

// countStems gives how many documents every stem has.
func (b *builder) countStems() []uint32 {
	counts := make([]uint32, len(b.forms))
	last := make([]int32, len(b.forms)) // stem → last document counted, plus one
	next := 0
	for doc := range b.docs {
		n := len(b.docs[doc].terms)
		for _, s := range b.surfaces[next : next+n] {
			if st := b.ix.stemOf[s]; last[st] != int32(doc)+1 {
				last[st] = int32(doc) + 1
				counts[st]++
			}
		}
		next += n
	}
	return counts
}

// countSurfaces does so for the surfaces that share their stem: of any other
// the postings are those of its stem.
func (b *builder) countSurfaces() []uint32 {
	counts := make([]uint32, len(b.ix.stemOf))
	for _, s := range b.surfaces {
		if b.forms[b.ix.stemOf[s]] > 1 {
			counts[s]++
		}
	}
	return counts
}

func newPostings(counts []uint32) postings {
	p := postings{start: make([]uint32, len(counts)+1), idf: make([]float32, len(counts))}
	sum := uint32(0)
	for i, n := range counts {
		p.start[i] = sum
		sum += n
	}
	p.start[len(counts)] = sum
	p.docs = make([]posting, sum)
	return p
}

func (p *postings) cursors() []uint32 {
	return append([]uint32(nil), p.start[:len(p.start)-1]...)
}

func (p *postings) put(fill []uint32, word int32, doc int, weight float32, inName bool) {
	e := posting{doc: uint32(doc), weight: saturated(weight)}
	if inName {
		e.doc |= inNameBit
	}
	p.docs[fill[word]] = e
	fill[word]++
}

func saturated(w float32) float32 { return w / (w + saturation) }

func (p *postings) setIDF(docs int) {
	for w := range p.idf {
		p.idf[w] = idf(docs, int(p.start[w+1]-p.start[w]))
	}
}

func idf(docs, with int) float32 {
	return float32(math.Log(1 + (float64(docs-with)+0.5)/(float64(with)+0.5)))
}

// gather adds up the surfaces of one stem in one document.
type gather struct {
	entries []gathered
	slot    []int32 // stem → where in entries, valid when its stamp is the document's
	stamp   []int32
}

type gathered struct {
	stem   int32
	weight float32
	inName bool
}

func newGather(stems int) *gather {
	return &gather{slot: make([]int32, stems), stamp: make([]int32, stems)}
}

func (g *gather) add(doc int, stem int32, weight float32, inName bool) {
	if g.stamp[stem] != int32(doc)+1 {
		g.stamp[stem] = int32(doc) + 1
		g.slot[stem] = int32(len(g.entries))
		g.entries = append(g.entries, gathered{stem: stem})
	}
	e := &g.entries[g.slot[stem]]
	e.weight += weight
	e.inName = e.inName || inName
}

// take gives what was gathered, valid until the next add.
func (g *gather) take() []gathered {
	out := g.entries
	g.entries = g.entries[:0]
	return out
}
