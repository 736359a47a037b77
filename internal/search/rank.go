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
	places := placing{s, &named, used, nil}
	top := best{ix: v.ix, n: n}
	for _, doc := range s.touched {
		if keep != nil && !keep(int(doc)) {
			continue
		}
		total++
		if n > 0 {
			top.add(int32(doc), places.of(doc))
		}
	}
	if n > 0 {
		top = places.likened(&q, top, keep)
	}
	s.view = nil
	ideal := q.ideal * v.ix.ranking.best()
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

	tops         [1 + maxClauses]float32
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
	rare, headed := s.view.rare[t.stem]*t.weight, s.view.headed[t.stem]*t.weight
	for _, p := range ix.byStem.of(t.stem) {
		first, best := ix.first[p.part], float32(0)
		for _, e := range ix.parts[p.part].byStem.of(p.word) {
			doc := first + e.doc()
			if !s.view.shows(doc) {
				continue
			}
			s.touch(doc)
			weight := rare
			if e.headed() {
				weight = headed
			}
			if e.named() {
				s.named[doc] += weight
			}
			s.add(doc, weight*e.weight, t.clauses)
			best = max(best, weight*e.weight)
		}
		s.servers[p.part].cover += best
	}
	if !t.written {
		return
	}
	for _, p := range ix.byWord.of(t.word) {
		first := ix.first[p.part]
		for _, e := range ix.parts[p.part].ofWord(p.word) {
			if doc := first + e.doc(); s.view.shows(doc) {
				weight := rare
				if e.headed() {
					weight = headed
				}
				s.add(doc, ix.ranking.Surface*weight*e.weight, t.clauses)
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
	r := s.view.ix.ranking
	s.top, s.tops = top[0], top
	clauses := top[1 : 1+s.clauses]
	most := float32(0)
	for _, score := range clauses {
		most = max(most, score)
	}
	for c, score := range clauses {
		if score == 0 {
			continue
		}
		share := r.Clause * (1 - r.Mass*(1-score/most))
		if q.context&(1<<c) != 0 {
			share *= r.Context
		}
		scales[c] = share * top[0] / score
	}
	return scales
}

// finish works out the score of every match, which stands first in its row then.
func (s *scratch) finish(q *query) {
	scales, r := s.scales(q), s.view.ix.ranking
	for _, doc := range s.touched {
		row := s.row(doc)
		extra := r.Clause * row[0]
		bonus := float32(0)
		if s.clauses > 0 {
			extra = 0
			for c, score := range row[1:] {
				extra = max(extra, score*scales[c])
				if score == s.tops[1+c] && score > 0 && q.context&(1<<c) == 0 {
					bonus = r.Best * s.top
				}
			}
		}
		row[0] += extra + r.Name*s.named[doc]
		if sum := s.view.nameSum[doc]; sum > 0 {
			row[0] *= 1 + r.Covered*min(1, s.named[doc]/sum)
		}
		row[0] += bonus
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
	r := s.view.ix.ranking
	score += r.Server * server.best
	if s.covered > 0 {
		score += r.Cover * s.top * server.cover / s.covered
	}
	if named.servers[part] || named.meant[doc] {
		score += s.top * r.best()
	}
	if named.listed[part] {
		score += 2 * s.top * r.best()
	}
	return score + named.bonus[doc]
}

// placing gives every match its score among the others.
type placing struct {
	*scratch
	named *naming
	used  map[uint32]float32
	meant []direction // where the query lies, and each of its clauses
}

// likened adds to the best matches how like the query they are. What is added is
// bounded, so that only those near the best need to be looked at.
func (p *placing) likened(q *query, plain best, keep func(doc int) bool) best {
	p.meant = q.directions()
	bound := p.view.ix.ranking.Vector * p.top
	if len(p.meant) == 0 || bound == 0 {
		return plain
	}
	least := float32(0)
	if len(plain.list) == plain.n {
		least = plain.list[plain.n-1].score - bound*(1+1e-5)
	}
	all := best{ix: plain.ix, n: plain.n}
	for _, doc := range p.touched {
		p.meant, q.meant = nil, p.meant
		enough := p.of(doc) >= least
		p.meant = q.meant
		if enough && (keep == nil || keep(int(doc))) {
			all.add(int32(doc), p.of(doc))
		}
	}
	return all
}

// likeness is how like a tool is to the nearest of the directions.
func (ix *Index) likeness(doc uint32, to []direction) (most float32) {
	part := ix.partOf[doc]
	d := &ix.parts[part].directions[doc-ix.first[part]]
	for i := range to {
		most = max(most, d.likeness(&to[i]))
	}
	return most
}

// placed is the score of a match among the others. A deprecated one comes
// right after those to use instead, or counts less where these do not match. Its id
// finds it all the same.
func (p *placing) of(doc uint32) float32 {
	s, named := p.scratch, p.named
	of := func(doc uint32) float32 {
		score := s.ofServer(doc, named) + habitShare*s.top*p.used[doc]
		if p.meant != nil {
			score += s.view.ix.ranking.Vector * s.top * s.view.ix.likeness(doc, p.meant)
		}
		return score
	}
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
