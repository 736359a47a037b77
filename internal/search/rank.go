package search

import "math"

// Search returns the n best matches that keep allows, the best first, and how
// many match at all and are allowed. A nil keep allows every tool. The answer
// for a smaller n is the beginning of that for a larger one. Habits count as a
// prior; nil are none.
func (v *View) Search(h *Habits, query string, n int, keep func(doc int) bool) (hits []Hit, total int) {
	q := v.parse(query)
	s, _ := v.ix.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	defer v.ix.scratch.Put(s)
	s.reset(v, q.clauses)
	for i := range q.terms {
		s.score(&q.terms[i])
	}
	named := v.naming(query)
	for doc := range named.bonus {
		s.touch(doc)
	}
	for doc := range named.meant {
		s.touch(doc)
	}
	for part := range named.listed {
		for doc := v.ix.first[part]; doc < v.ix.first[part+1]; doc++ {
			if v.shows(doc) {
				s.touch(doc)
			}
		}
	}
	used := v.habits(h, query)
	for doc := range used {
		s.touch(doc)
	}
	s.finish(&q)
	top := best{ix: v.ix, n: n}
	for _, doc := range s.touched {
		if keep != nil && !keep(int(doc)) {
			continue
		}
		total++
		if n > 0 {
			top.add(int32(doc), s.placed(doc, &named, used))
		}
	}
	s.view = nil
	ideal := q.ideal * bestShares
	if h != nil {
		ideal = max(ideal, 1) * (1 + habitShare)
	}
	switch { // what is named stands above the others by as much
	case named.listed != nil:
		ideal *= 3
	case named.servers != nil || named.meant != nil:
		ideal *= 2
	}
	return top.take(ideal), total
}

// scratch is the working memory of one search.
type scratch struct {
	view    *View
	clauses int
	sums    []float32  // tool × (1 + clauses): the whole query, then each clause
	named   []float32  // tool → idf of the words of its name that are asked for
	servers []standing // by part
	touched []uint32
	stamp   []uint32
	round   uint32

	top, covered float32 // the highest sum over the whole query, and coverage
}

// standing is how well the tools of a server answer.
type standing struct {
	best  float32 // the score of its best tool
	cover float32 // each word of the query where it scores best
}

func (s *scratch) reset(v *View, clauses int) {
	s.view, s.clauses = v, clauses
	if clauses < 2 {
		s.clauses = 0
	}
	docs := v.ix.Len()
	if need := docs * (1 + s.clauses); cap(s.sums) < need {
		s.sums = make([]float32, need)
	} else {
		s.sums = s.sums[:need]
	}
	if len(s.stamp) != docs {
		s.stamp, s.named, s.round = make([]uint32, docs), make([]float32, docs), 0
		s.servers = make([]standing, len(v.ix.parts))
	}
	clear(s.servers)
	s.touched = s.touched[:0]
	if s.round++; s.round == 0 {
		clear(s.stamp)
		s.round = 1
	}
}

// touch makes the tool a match, with nothing scored yet.
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

func (s *scratch) score(t *queryTerm) {
	ix := s.view.ix
	weight := s.view.idf(t.stem) * t.weight
	for _, p := range ix.byStem.of(t.stem) {
		first, best := ix.first[p.part], float32(0)
		for _, e := range ix.parts[p.part].byStem.of(p.word) {
			doc := first + e.doc&^inNameBit
			if !s.view.shows(doc) {
				continue
			}
			s.touch(doc)
			if e.doc&inNameBit != 0 {
				s.named[doc] += weight
			}
			s.add(doc, weight*e.weight, t.clauses)
			best = max(best, e.weight)
		}
		s.servers[p.part].cover += weight * best
	}
	if !t.written {
		return
	}
	for _, p := range ix.byWord.of(t.word) {
		first := ix.first[p.part]
		for _, e := range ix.parts[p.part].ofWord(p.word) {
			if doc := first + e.doc&^inNameBit; s.view.shows(doc) {
				s.add(doc, surfaceShare*weight*e.weight, t.clauses)
			}
		}
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

// scales returns for every clause what makes its best answer worth nearly the
// best answer to the whole query.
func (s *scratch) scales(q *query) (scales [maxClauses]float32) {
	var top [1 + maxClauses]float32
	for _, doc := range s.touched {
		for c, score := range s.row(doc) {
			top[c] = max(top[c], score)
		}
	}
	s.top = top[0]
	clauses := top[1 : 1+s.clauses]
	most := float32(0)
	for _, score := range clauses {
		most = max(most, score)
	}
	for c, score := range clauses {
		if score == 0 {
			continue
		}
		share := clauseShare * (1 - massShare*(1-score/most))
		if q.context&(1<<c) != 0 {
			share *= contextShare
		}
		scales[c] = share * top[0] / score
	}
	return scales
}

// finish works out the score of every match, which stands first in its row then.
func (s *scratch) finish(q *query) {
	scales := s.scales(q)
	for _, doc := range s.touched {
		row := s.row(doc)
		extra := clauseShare * row[0]
		if s.clauses > 0 {
			extra = 0
			for c, score := range row[1:] {
				extra = max(extra, score*scales[c])
			}
		}
		row[0] += extra + nameShare*s.named[doc]
		server := &s.servers[s.view.ix.partOf[doc]]
		server.best = max(server.best, row[0])
	}
	s.covered = 0
	for i := range s.servers {
		s.covered = max(s.covered, s.servers[i].cover)
	}
}

// ofServer adds what the server's other tools say for a match: a server that
// answers the query well is about what it asks for.
func (s *scratch) ofServer(doc uint32, named *naming) float32 {
	score := s.row(doc)[0]
	part := s.view.ix.partOf[doc]
	server := &s.servers[part]
	score += serverShare * server.best
	if s.covered > 0 {
		score += coverShare * s.top * server.cover / s.covered
	}
	if named.servers[part] || named.meant[doc] {
		score += s.top * bestShares
	}
	if named.listed[part] {
		score += 2 * s.top * bestShares
	}
	return score + named.bonus[doc]
}

// placed is the score of a match among the others. A deprecated one comes
// right after those to use instead, or counts less where these do not match. Its id
// finds it all the same.
func (s *scratch) placed(doc uint32, named *naming, used map[uint32]float32) float32 {
	of := func(doc uint32) float32 { return s.ofServer(doc, named) + habitShare*s.top*used[doc] }
	score, part := of(doc), s.view.ix.partOf[doc]
	first := s.view.ix.first[part]
	instead, deprecated := s.view.ix.parts[part].deprecated[doc-first]
	if !deprecated || named.bonus[doc] == exactBonus {
		return score
	}
	share := float32(deprecatedShare)
	for _, next := range instead {
		if s.stamp[first+next] == s.round {
			share = 1
			score = min(score, math.Nextafter32(of(first+next), 0))
		}
	}
	return share * score
}
