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
	s, _ := v.ix.scratch.Get().(*searchBuffers)
	if s == nil {
		s = new(searchBuffers)
	}
	defer v.ix.scratch.Put(s)
	s.reset(v, q.clauses)
	for i := range q.terms {
		s.addTerm(&q.terms[i])
	}
	s.maskHidden()
	named := v.findNamed(query)
	used := v.habitScores(h, query)
	s.addNamedAndUsed(&named, used)
	s.finalScores(&q)
	place := ranker{searchBuffers: s, named: &named, used: used, keep: keep, vectors: q.unitVectors(), countOnly: q.countOnly}
	top, total := place.topN(n, &q)
	s.view = nil
	ideal := q.ideal * v.ix.ranking.maxFactor()
	if h != nil {
		ideal = max(ideal, 1) * (1 + habitShare)
	}
	switch { // what is named stands above the others by as much
	case named.listServers != nil:
		ideal *= 3
	case named.servers != nil || named.byMeaning != nil:
		ideal *= 2
	}
	return top.hits(ideal), total
}

// searchBuffers is the working memory of one search.
type searchBuffers struct {
	view    *View
	width   int       // of a row: the whole query, then each clause
	sums    []float32 // tool × width
	named   []float32 // tool → idf of the words of its name that are asked for
	servers []float32 // part → the score of its best tool
	matched set
	kept    set // of the matched

	top  float32                 // the highest sum over the whole query
	tops [1 + maxClauses]float32 // …and over each clause
}

func (s *searchBuffers) reset(v *View, clauses int) {
	s.view, s.width = v, 1
	if clauses > 1 {
		s.width += clauses
	}
	docs := v.ix.Len()
	s.sums = zeros(s.sums, docs*s.width)
	s.named = zeros(s.named, docs)
	s.servers = zeros(s.servers, len(v.ix.parts))
	s.matched = zeros(s.matched, (docs+63)/64)
}

// zeros returns n zeros, in the memory of old ones if it has the room.
func zeros[S ~[]E, E any](old S, n int) S {
	if cap(old) < n {
		return make(S, n)
	}
	clear(old[:n])
	return old[:n]
}

// maskHidden takes out what the view does not show. To look at each posting for that would take
// longer.
func (s *searchBuffers) maskHidden() {
	for i, shown := range s.view.shown {
		s.matched[i] &= shown
	}
}

// addNamedAndUsed adds the tools that are named or used to those that match.
func (s *searchBuffers) addNamedAndUsed(n *nameMatches, used map[uint32]float32) {
	for doc := range n.bonus {
		s.matched.add(doc)
	}
	for doc := range n.byMeaning {
		s.matched.add(doc)
	}
	for part := range n.listServers {
		for doc := s.view.ix.first[part]; doc < s.view.ix.first[part+1]; doc++ {
			if s.view.isShown(doc) {
				s.matched.add(doc)
			}
		}
	}
	for doc := range used {
		s.matched.add(doc)
	}
}

func (s *searchBuffers) row(doc uint32) []float32 {
	return s.sums[int(doc)*s.width : (int(doc)+1)*s.width]
}

// addTerm adds what a term is worth to the tools that have it: by its stem, and by the very
// word if that is known.
func (s *searchBuffers) addTerm(t *queryTerm) {
	ix := s.view.ix
	to := termScorer{searchBuffers: s, columns: columnsOf(t.clauses, s.width)}
	to.weights[0], to.weights[1] = s.view.idfs[t.stem]*t.weight, s.view.headIDFs[t.stem]*t.weight
	to.surface[0], to.surface[1] = ix.ranking.Surface*to.weights[0], ix.ranking.Surface*to.weights[1]
	var words []partWord // a word is in no part that its stem is not in
	if t.written {
		words = ix.byWord.of(t.word)
	}
	for _, p := range ix.byStem.of(t.stem) {
		word := len(words) > 0 && words[0].part == p.part
		if s.view.partShown[p.part] != notShown {
			part, first := ix.parts[p.part], ix.first[p.part]
			switch docs := part.byStem.of(p.word); {
			case !word:
				to.addStem(first, docs)
			case part.sameAsStem(words[0].word):
				to.addStemAndWord(first, docs)
			default:
				to.addStem(first, docs)
				to.addWord(first, part.byWord.of(words[0].word))
			}
		}
		if word {
			words = words[1:]
		}
	}
}

// termScorer adds up what a term is worth.
type termScorer struct {
	*searchBuffers
	weights, surface [2]float32 // of the stem, and of the very word beside it: anywhere, and in heads
	columns          []int      // the clauses that the term stands in
}

func columnsOf(clauses uint32, width int) (columns []int) {
	for c := 1; c < width; c++ {
		if clauses&(1<<(c-1)) != 0 {
			columns = append(columns, c)
		}
	}
	return columns
}

func (a *termScorer) addStem(first uint32, docs []posting) {
	for _, e := range docs {
		doc := first + e.doc()
		weight := a.weights[e.headBit()]
		a.addTo(doc, e, weight)
		x, row := weight*e.weight, a.row(doc)
		row[0] += x
		for _, c := range a.columns {
			row[c] += x
		}
	}
}

// addWord is for tools that stem has met.
func (a *termScorer) addWord(first uint32, docs []posting) {
	for _, e := range docs {
		x, row := a.surface[e.headBit()]*e.weight, a.row(first+e.doc())
		row[0] += x
		for _, c := range a.columns {
			row[c] += x
		}
	}
}

// addStemAndWord is stem and word at once.
func (a *termScorer) addStemAndWord(first uint32, docs []posting) {
	for _, e := range docs {
		doc := first + e.doc()
		weight := a.weights[e.headBit()]
		a.addTo(doc, e, weight)
		x, y, row := weight*e.weight, a.surface[e.headBit()]*e.weight, a.row(doc)
		row[0] = row[0] + x + y
		for _, c := range a.columns {
			row[c] = row[c] + x + y
		}
	}
}

func (a *termScorer) addTo(doc uint32, e posting, weight float32) {
	a.matched.add(doc)
	if e.inName() {
		a.searchBuffers.named[doc] += weight
	}
}

// clauseScales returns for every clause what makes its best answer worth nearly the
// best answer to the whole query.
func (s *searchBuffers) clauseScales(q *parsedQuery) (scales [maxClauses]float32) {
	var top [1 + maxClauses]float32
	for doc := range s.matched.all {
		for c, score := range s.row(doc) {
			top[c] = max(top[c], score)
		}
	}
	r := s.view.ix.ranking
	s.top, s.tops = top[0], top
	clauses := top[1:s.width]
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

// finalScores works out the score of every match, which stands first in its row then.
func (s *searchBuffers) finalScores(q *parsedQuery) {
	scales, r := s.clauseScales(q), s.view.ix.ranking
	for doc := range s.matched.all {
		row := s.row(doc)
		extra := r.Clause * row[0]
		bonus := float32(0)
		if s.width > 1 {
			extra = 0
			for c, score := range row[1:] {
				extra = max(extra, score*scales[c])
				if score == s.tops[1+c] && score > 0 && q.context&(1<<c) == 0 {
					bonus = r.Best * s.top
				}
			}
		}
		row[0] += extra + r.Name*s.named[doc]
		if sum := s.view.nameIDFs[doc]; sum > 0 {
			row[0] *= 1 + r.Covered*min(1, s.named[doc]/sum)
		}
		row[0] += bonus
		server := &s.servers[s.view.ix.partOf[doc]]
		*server = max(*server, row[0])
	}
}

// ranker sets for every match its place among the others.
type ranker struct {
	*searchBuffers
	named      *nameMatches
	used       map[uint32]float32
	keep       func(doc int) bool
	vectors    []unitVector       // of the query and its clauses
	nameScores map[uint32]float32 // of those that are looked at closely: how near their names are
	countOnly  bool               // a number or a size is asked for: what changes anything is worth less
}

// rerankSize is how many of the best are looked at word by word. They stay before all others.
const rerankSize = 50

// maxFactor returns the n best matches that are kept, and how many are.
func (p *ranker) topN(n int, q *parsedQuery) (top topMatches, total int) {
	if n == 0 {
		return p.topBySimilarity(0)
	}
	top, total = p.topBySimilarity(max(n, rerankSize))
	first := top.list[:min(rerankSize, len(top.list))]
	names := nameSimilarity{view: p.view, asked: q.asked}
	p.nameScores = make(map[uint32]float32, len(first))
	for _, r := range first {
		p.nameScores[uint32(r.doc)] = names.score(uint32(r.doc))
	}
	again := topMatches{ix: p.view.ix, n: len(first)}
	for _, r := range first {
		again.add(r.doc, p.score(uint32(r.doc), p.vectors))
	}
	copy(first, again.list)
	for i := 1; i < len(top.list); i++ {
		top.list[i].score = min(top.list[i].score, top.list[i-1].score)
	}
	top.list = top.list[:min(n, len(top.list))]
	return top, total
}

// topBySimilarity returns the n best by words and likeness. What likeness to the query adds is
// bounded, so that only those need be looked at that it can bring among them.
func (p *ranker) topBySimilarity(n int) (top topMatches, total int) {
	top = topMatches{ix: p.view.ix, n: n}
	total = p.filter()
	if n == 0 || total == 0 {
		return top, total
	}
	for doc := range p.kept.all {
		if p.maxScore(doc) >= top.minScore() {
			top.add(int32(doc), p.score(doc, nil))
		}
	}
	if len(p.vectors) == 0 {
		return top, total
	}
	like := topMatches{ix: p.view.ix, n: n}
	for _, r := range top.list { // most of them stay
		like.add(r.doc, p.score(uint32(r.doc), p.vectors))
	}
	last := top.list[len(top.list)-1].score
	bound := p.view.ix.ranking.Vector * p.top * 1.0001
	for doc := range p.kept.all {
		if p.maxScore(doc)+bound < like.minScore() {
			continue
		}
		switch score := p.score(doc, nil); {
		case score+bound < like.minScore():
		case score >= last && slices.ContainsFunc(top.list, func(r ranked) bool { return r.doc == int32(doc) }):
		default:
			like.add(int32(doc), p.score(doc, p.vectors))
		}
	}
	return like, total
}

// filter works out which matches are kept, and returns how many.
func (p *ranker) filter() int {
	p.kept = append(p.kept[:0], p.matched...)
	if p.keep != nil {
		for doc := range p.matched.all {
			if !p.keep(int(doc)) {
				p.kept.remove(doc)
			}
		}
	}
	return p.kept.len()
}

// maxScore is what a match scores at most without likeness: what the best tool of its server
// does, unless it is named or was used.
func (p *ranker) maxScore(doc uint32) float32 {
	if p.named.any() || p.used != nil {
		return math.MaxFloat32
	}
	best := p.servers[p.view.ix.partOf[doc]]
	return best + p.view.ix.ranking.Server*best
}

// maxSimilarity is how like a tool is to what it is most like, of a query and its clauses.
func (ix *Index) maxSimilarity(doc uint32, to []unitVector) (most float32) {
	part := ix.partOf[doc]
	d := &ix.parts[part].unitVectors[doc-ix.first[part]]
	for i := range to {
		most = max(most, d.cosine(&to[i]))
	}
	return most
}

// score is the score of a match among the others. A deprecated one comes
// right after those to use instead, or counts less where these do not match. Its id
// finds it all the same.
func (p *ranker) score(doc uint32, to []unitVector) float32 {
	ix := p.view.ix
	score, part := p.baseScore(doc, to), ix.partOf[doc]
	if ix.parts[part].deprecated == nil {
		return score
	}
	first := ix.first[part]
	instead, deprecated := ix.parts[part].deprecated[doc-first]
	if !deprecated || p.named.bonus[doc] == exactBonus {
		return score
	}
	share := float32(deprecatedShare)
	for _, next := range instead {
		if p.matched.has(first + next) {
			share = 1
			score = min(score, math.Nextafter32(p.baseScore(first+next, to), 0))
		}
	}
	return share * score
}

// baseScore is the score of a match, deprecated or not.
func (p *ranker) baseScore(doc uint32, to []unitVector) float32 {
	r := p.view.ix.ranking
	score := p.serverScore(doc)
	if p.used != nil {
		score += habitShare * p.top * p.used[doc]
	}
	if len(to) > 0 {
		score += r.Vector * p.top * p.view.ix.maxSimilarity(doc, to)
	}
	if p.nameScores != nil {
		score += r.Near * p.top * p.nameScores[doc]
	}
	if part := p.view.ix.partOf[doc]; p.countOnly && p.view.ix.parts[part].mutating[doc-p.view.ix.first[part]] {
		score *= changingShare
	}
	return score
}

// serverScore adds what the server's other tools say for a match: a server that
// answers the query well is about what it asks for.
func (p *ranker) serverScore(doc uint32) float32 {
	r, part := p.view.ix.ranking, p.view.ix.partOf[doc]
	score := p.row(doc)[0] + r.Server*p.servers[part]
	if !p.named.any() {
		return score
	}
	if p.named.servers[part] || p.named.byMeaning[doc] {
		score += p.top * r.maxFactor()
	}
	if p.named.listServers[part] {
		score += 2 * p.top * r.maxFactor()
	}
	return score + p.named.bonus[doc]
}
