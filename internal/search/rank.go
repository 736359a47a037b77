package search

import (
	"math"
	"slices"
)

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
	place := placing{scratch: s, named: &named, used: used, keep: keep, to: q.directions()}
	top, total := place.best(n, &q)
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
	sums    []float32 // tool × (1 + clauses): the whole query, then each clause
	named   []float32 // tool → idf of the words of its name that are asked for
	servers []float32 // part → the score of its best tool
	touched []uint32
	plain   []float32 // of touched: the score without likeness, -1 for what is left out
	stamp   []uint32
	round   uint32

	top  float32                 // the highest sum over the whole query
	tops [1 + maxClauses]float32 // …and over each clause
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
		s.servers = make([]float32, len(v.ix.parts))
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
		first := ix.first[p.part]
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
		}
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
		*server = max(*server, row[0])
	}
}

// ofServer adds what the server's other tools say for a match: a server that
// answers the query well is about what it asks for.
func (s *scratch) ofServer(doc uint32, named *naming) float32 {
	score := s.row(doc)[0]
	part := s.view.ix.partOf[doc]
	r := s.view.ix.ranking
	score += r.Server * s.servers[part]
	if named.servers[part] || named.meant[doc] {
		score += s.top * r.best()
	}
	if named.listed[part] {
		score += 2 * s.top * r.best()
	}
	return score + named.bonus[doc]
}

// placing sets for every match its place among the others.
type placing struct {
	*scratch
	named *naming
	used  map[uint32]float32
	keep  func(doc int) bool
	to    []direction        // of the query and its clauses
	near  map[uint32]float32 // of those that are looked at closely: how near their names are
}

// closely is how many of the best are looked at word by word. They stay before all others.
const closely = 50

// best returns the n best matches that are kept, and how many are.
func (p *placing) best(n int, q *query) (top best, total int) {
	if n == 0 {
		return p.likest(0)
	}
	top, total = p.likest(max(n, closely))
	first := top.list[:min(closely, len(top.list))]
	names := nearness{view: p.view, asked: q.asked}
	p.near = make(map[uint32]float32, len(first))
	for _, r := range first {
		p.near[uint32(r.doc)] = names.of(uint32(r.doc))
	}
	again := best{ix: p.view.ix, n: len(first)}
	for _, r := range first {
		again.add(r.doc, p.of(uint32(r.doc), p.to))
	}
	copy(first, again.list)
	for i := 1; i < len(top.list); i++ {
		top.list[i].score = min(top.list[i].score, top.list[i-1].score)
	}
	top.list = top.list[:min(n, len(top.list))]
	return top, total
}

// likest returns the n best by words and likeness. What likeness to the query adds is
// bounded, so that only those need be looked at that it can bring among them.
func (p *placing) likest(n int) (top best, total int) {
	top = best{ix: p.view.ix, n: n}
	p.plain = p.plain[:0]
	for _, doc := range p.touched {
		score := float32(-1)
		if p.keep == nil || p.keep(int(doc)) {
			total++
			if n > 0 {
				score = p.of(doc, nil)
				top.add(int32(doc), score)
			}
		}
		p.plain = append(p.plain, score)
	}
	if len(top.list) == 0 || len(p.to) == 0 {
		return top, total
	}
	like := best{ix: p.view.ix, n: n}
	for _, r := range top.list { // most of them stay
		like.add(r.doc, p.of(uint32(r.doc), p.to))
	}
	last := top.list[len(top.list)-1].score
	bound := p.view.ix.ranking.Vector * p.top * 1.0001
	for i, doc := range p.touched {
		switch score := p.plain[i]; {
		case score < 0 || len(like.list) == n && score+bound < like.list[n-1].score:
		case score >= last && slices.ContainsFunc(top.list, func(r ranked) bool { return r.doc == int32(doc) }):
		default:
			like.add(int32(doc), p.of(doc, p.to))
		}
	}
	return like, total
}

// likeness is how like a tool is to what it is most like, of a query and its clauses.
func (ix *Index) likeness(doc uint32, to []direction) (most float32) {
	part := ix.partOf[doc]
	d := &ix.parts[part].directions[doc-ix.first[part]]
	for i := range to {
		most = max(most, d.likeness(&to[i]))
	}
	return most
}

// of is the score of a match among the others. A deprecated one comes
// right after those to use instead, or counts less where these do not match. Its id
// finds it all the same.
func (p *placing) of(doc uint32, to []direction) float32 {
	s, named := p.scratch, p.named
	of := func(doc uint32) float32 {
		return s.ofServer(doc, named) + habitShare*s.top*p.used[doc] + s.view.ix.ranking.Vector*s.top*s.view.ix.likeness(doc, to) + s.view.ix.ranking.Near*s.top*p.near[doc]
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
