package search

import "slices"

// What else counts in the ranking, beside the sum over the words.
const (
	surfaceShare = 0.3  // the very word, beside its stem
	nameShare    = 0.12 // words of the tool's name, however long its name is
	clauseShare  = 0.5  // the best answer to one sentence of the query
	serverShare  = 0.4  // the best tool of the same server
	kinShare     = 0.1  // the best other tool of the same server
	exactBonus   = 1e6  // above any sum: the query is the name

	bestShares = (1 + nameShare + clauseShare) * (1 + serverShare + kinShare)
)

// Search gives the n best matches that keep allows, the best first, and how
// many match at all and are allowed. A nil keep allows every document.
func (ix *Index) Search(query string, n int, keep func(doc int) bool) (hits []Hit, total int) {
	q := ix.parse(query)
	s := ix.scratch.Get().(*scratch)
	defer ix.scratch.Put(s)
	s.reset(len(ix.ids), ix.servers, q.clauses)
	for i := range q.terms {
		s.score(ix, &q.terms[i])
	}
	fuse := s.fusion(&q)
	exact := ix.exact(query)
	for _, doc := range exact {
		s.touch(uint32(doc))
	}
	s.finish(ix, &fuse)
	top := best{ix: ix, n: n}
	for _, doc := range s.touched {
		if keep != nil && !keep(int(doc)) {
			continue
		}
		total++
		if n > 0 {
			score := s.ofServer(ix, doc)
			if slices.Contains(exact, int32(doc)) {
				score += exactBonus
			}
			top.add(int32(doc), score)
		}
	}
	return top.take(q.ideal * bestShares), total
}

// scratch is the working memory of one search.
type scratch struct {
	clauses int
	sums    []float32 // document × (1 + clauses): the whole query, then each clause
	named   []float32 // document → idf of the words of its name that are asked for
	servers []topTwo  // server → scores of its best tools
	touched []uint32
	stamp   []uint32
	round   uint32
}

func (s *scratch) reset(docs, servers, clauses int) {
	s.clauses = clauses
	if clauses < 2 {
		s.clauses = 0
	}
	if need := docs * (1 + s.clauses); cap(s.sums) < need {
		s.sums = make([]float32, need)
	} else {
		s.sums = s.sums[:need]
	}
	if len(s.stamp) != docs {
		s.stamp, s.named, s.round = make([]uint32, docs), make([]float32, docs), 0
		s.servers = make([]topTwo, servers)
	}
	clear(s.servers)
	s.touched = s.touched[:0]
	if s.round++; s.round == 0 {
		clear(s.stamp)
		s.round = 1
	}
}

// touch makes the document a match, with nothing scored yet.
func (s *scratch) touch(doc uint32) {
	if s.stamp[doc] == s.round {
		return
	}
	s.stamp[doc] = s.round
	s.touched = append(s.touched, doc)
	s.named[doc] = 0
	clear(s.row(doc))
}

func (s *scratch) row(doc uint32) []float32 {
	width := 1 + s.clauses
	return s.sums[int(doc)*width : (int(doc)+1)*width]
}

func (s *scratch) score(ix *Index, t *queryTerm) {
	idf := ix.byStem.idf[t.stem] * t.weight
	stems := ix.byStem.of(t.stem)
	surfaces := ix.bySurface.of(t.surface)
	share := float32(surfaceShare)
	if t.surface >= 0 && len(surfaces) == 0 {
		idf, share = idf*(1+surfaceShare), 0
	}
	for _, e := range stems {
		doc := e.doc &^ inNameBit
		s.touch(doc)
		if e.doc&inNameBit != 0 {
			s.named[doc] += idf
		}
		s.add(doc, idf*e.weight, t.clauses)
	}
	for _, e := range surfaces {
		s.add(e.doc&^inNameBit, share*idf*e.weight, t.clauses)
	}
}

func (s *scratch) add(doc uint32, score float32, clauses uint32) {
	row := s.row(doc)
	row[0] += score
	for c := 1; c < len(row); c++ {
		if clauses&(1<<(c-1)) != 0 {
			row[c] += score
		}
	}
}

// fusion is how much each clause counts.
type fusion struct{ scale [maxClauses]float32 }

// fusion scales every clause so that its best answer is worth the best answer
// to the whole query.
func (s *scratch) fusion(q *query) (f fusion) {
	if s.clauses == 0 {
		return f
	}
	var top [1 + maxClauses]float32
	for _, doc := range s.touched {
		for c, v := range s.row(doc) {
			top[c] = max(top[c], v)
		}
	}
	for c := 1; c <= s.clauses; c++ {
		if top[c] > 0 {
			f.scale[c-1] = clauseShare * top[0] / top[c]
		}
	}
	return f
}

// finish gives every match its score, which stands first in its row then.
func (s *scratch) finish(ix *Index, f *fusion) {
	for _, doc := range s.touched {
		row := s.row(doc)
		extra := clauseShare * row[0]
		if s.clauses > 0 {
			extra = 0
			for c, v := range row[1:] {
				extra = max(extra, v*f.scale[c])
			}
		}
		row[0] += extra + nameShare*s.named[doc]
		s.servers[ix.server[doc]].add(row[0])
	}
}

// ofServer adds what the server's other tools say for a match: a server that
// answers the query well is about what it asks for.
func (s *scratch) ofServer(ix *Index, doc uint32) float32 {
	score := s.row(doc)[0]
	server := &s.servers[ix.server[doc]]
	other := server.first
	if score == server.first {
		other = server.second
	}
	return score + serverShare*server.first + kinShare*other
}

// topTwo are the two highest scores.
type topTwo struct{ first, second float32 }

func (t *topTwo) add(score float32) {
	switch {
	case score > t.first:
		t.first, t.second = score, t.first
	case score > t.second:
		t.second = score
	}
}
