package search

import (
	"math"
	"slices"
)

// Search returns the n best matches that keep accepts, best first, and the number of all accepted matches. A nil keep
// accepts every tool. The result for a smaller n is a prefix of the result for a larger n. h is a prior and may be nil.
func (v *View) Search(h *Habits, query string, n int, keep func(doc int) bool) (hits []Hit, total int) {
	q := v.parseQuery(query)
	s, _ := v.ix.scratch.Get().(*searchBuffers)
	if s == nil {
		s = new(searchBuffers)
	}
	defer v.ix.scratch.Put(s)
	s.reset(v, q.clauses)
	for i := range q.terms {
		s.scoreTerm(&q.terms[i])
	}
	s.removeHidden()
	named := v.findNameMatches(query)
	used := v.habitScores(h, query)
	s.addNamedAndUsed(&named, used)
	s.combineClauseScores(&q)
	place := ranker{searchBuffers: s, named: &named, used: used, keep: keep, vectors: q.unitVectors(), countOnly: q.countOnly}
	top, total := place.topN(n, &q)
	s.view = nil
	ideal := q.ideal * v.ix.ranking.maxScoreFactor()
	if h != nil {
		ideal = max(ideal, 1) * (1 + habitShare)
	}
	switch { // bonuses put named tools first
	case named.listServers != nil:
		ideal *= 3
	case named.servers != nil || named.byMeaning != nil:
		ideal *= 2
	}
	return top.toHits(ideal), total
}

// searchBuffers is the memory of one search.
type searchBuffers struct {
	view    *View
	width   int       // columns of a row: the query, then each clause
	sums    []float32 // document × width: score by words
	named   []float32 // document → IDF of the matched words of its name
	servers []float32 // part → score of its best match
	matched docSet
	kept    docSet // documents that keep accepts

	top  float32                 // best score by words for the query
	tops [1 + maxClauses]float32 // best score by words for the query, then for each clause
}

func (s *searchBuffers) reset(v *View, clauses int) {
	s.view, s.width = v, 1
	if clauses > 1 {
		s.width += clauses
	}
	docs := v.ix.Len()
	s.sums = resizeZeroed(s.sums, docs*s.width)
	s.named = resizeZeroed(s.named, docs)
	s.servers = resizeZeroed(s.servers, len(v.ix.parts))
	s.matched = resizeZeroed(s.matched, (docs+63)/64)
}

// resizeZeroed returns a slice of n zeros. It reuses old's memory.
func resizeZeroed[S ~[]E, E any](old S, n int) S {
	if cap(old) < n {
		return make(S, n)
	}
	clear(old[:n])
	return old[:n]
}

// removeHidden removes the tools that the view does not show. A check of each posting would be slower.
func (s *searchBuffers) removeHidden() {
	for i, shown := range s.view.shown {
		s.matched[i] &= shown
	}
}

// addNamedAndUsed adds the tools that the query names or that were used after similar queries.
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

func (s *searchBuffers) docScores(doc uint32) []float32 {
	return s.sums[int(doc)*s.width : (int(doc)+1)*s.width]
}

// scoreTerm adds the score of a term to the tools that contain it: by stem, and by exact word.
func (s *searchBuffers) scoreTerm(t *queryTerm) {
	ix := s.view.ix
	to := termScorer{searchBuffers: s, columns: clauseColumns(t.clauses, s.width)}
	to.weights[0], to.weights[1] = s.view.idfs[t.stem]*t.weight, s.view.headIDFs[t.stem]*t.weight
	to.surface[0], to.surface[1] = ix.ranking.Surface*to.weights[0], ix.ranking.Surface*to.weights[1]
	var words []wordInPart // only parts with the stem can contain the exact word
	if t.written {
		words = ix.byWord.partsWithWord(t.word)
	}
	for _, p := range ix.byStem.partsWithWord(t.stem) {
		word := len(words) > 0 && words[0].part == p.part
		if s.view.partShown[p.part] != notShown {
			part, first := ix.parts[p.part], ix.first[p.part]
			switch docs := part.byStem.ofWord(p.word); {
			case !word:
				to.addStemScores(first, docs)
			case part.usesStemPostings(words[0].word):
				to.addStemAndWordScores(first, docs)
			default:
				to.addStemScores(first, docs)
				to.addExactWordScores(first, part.byWord.ofWord(words[0].word))
			}
		}
		if word {
			words = words[1:]
		}
	}
}

// termScorer adds the score of one term.
type termScorer struct {
	*searchBuffers
	weights, surface [2]float32 // for the stem, and the addition for the exact word: anywhere, and in a head
	columns          []int      // the clauses of the term
}

func clauseColumns(clauses uint32, width int) (columns []int) {
	for c := 1; c < width; c++ {
		if clauses&(1<<(c-1)) != 0 {
			columns = append(columns, c)
		}
	}
	return columns
}

func (a *termScorer) addStemScores(first uint32, docs []posting) {
	for _, e := range docs {
		doc := first + e.docNumber()
		weight := a.weights[e.headBit()]
		a.addMatch(doc, e, weight)
		x, row := weight*e.weight, a.docScores(doc)
		row[0] += x
		for _, c := range a.columns {
			row[c] += x
		}
	}
}

// addExactWordScores adds the scores for the exact word to tools that addStemScores has scored.
func (a *termScorer) addExactWordScores(first uint32, docs []posting) {
	for _, e := range docs {
		x, row := a.surface[e.headBit()]*e.weight, a.docScores(first+e.docNumber())
		row[0] += x
		for _, c := range a.columns {
			row[c] += x
		}
	}
}

// addStemAndWordScores does the work of addStemScores and addExactWordScores in one pass.
func (a *termScorer) addStemAndWordScores(first uint32, docs []posting) {
	for _, e := range docs {
		doc := first + e.docNumber()
		weight := a.weights[e.headBit()]
		a.addMatch(doc, e, weight)
		x, y, row := weight*e.weight, a.surface[e.headBit()]*e.weight, a.docScores(doc)
		row[0] = row[0] + x + y
		for _, c := range a.columns {
			row[c] = row[c] + x + y
		}
	}
}

func (a *termScorer) addMatch(doc uint32, e posting, weight float32) {
	a.matched.add(doc)
	if e.inName() {
		a.searchBuffers.named[doc] += weight
	}
}

// clauseScales returns a factor for each clause. With it, the best match of the clause is nearly as good as the best
// match of the query.
func (s *searchBuffers) clauseScales(q *parsedQuery) (scales [maxClauses]float32) {
	var top [1 + maxClauses]float32
	for doc := range s.matched.all {
		for c, score := range s.docScores(doc) {
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

// combineClauseScores combines the scores of all clauses for every match, and stores the result in column 0 of its row.
// ranker.finalScore adds servers, use, vectors and names.
func (s *searchBuffers) combineClauseScores(q *parsedQuery) {
	scales, r := s.clauseScales(q), s.view.ix.ranking
	for doc := range s.matched.all {
		row := s.docScores(doc)
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

// ranker ranks the matches.
type ranker struct {
	*searchBuffers
	named      *nameMatches
	used       map[uint32]float32
	keep       func(doc int) bool
	vectors    []unitVector       // vectors of the query and its clauses
	nameScores map[uint32]float32 // document → similarity of its name
	countOnly  bool               // the query asks for a number or size: tools that change something rank lower
}

// rerankSize is the number of top matches that are ranked again with name similarity.
const rerankSize = 50

// topN returns the n best accepted matches, and the number of all accepted matches.
func (p *ranker) topN(n int, q *parsedQuery) (top topMatches, total int) {
	if n == 0 {
		return p.topByWordsAndVectors(0)
	}
	top, total = p.topByWordsAndVectors(max(n, rerankSize))
	first := top.list[:min(rerankSize, len(top.list))]
	names := nameSimilarityScorer{view: p.view, asked: q.asked}
	p.nameScores = make(map[uint32]float32, len(first))
	for _, r := range first {
		p.nameScores[uint32(r.doc)] = names.scoreName(uint32(r.doc))
	}
	again := topMatches{ix: p.view.ix, n: len(first)}
	for _, r := range first {
		again.addMatch(r.doc, p.finalScore(uint32(r.doc), p.vectors))
	}
	copy(first, again.list)
	for i := 1; i < len(top.list); i++ {
		top.list[i].score = min(top.list[i].score, top.list[i-1].score)
	}
	top.list = top.list[:min(n, len(top.list))]
	return top, total
}

// topByWordsAndVectors returns the n best matches by words and vectors. The vector bonus is bounded, so it is computed
// only for candidates that can reach the top.
func (p *ranker) topByWordsAndVectors(n int) (top topMatches, total int) {
	top = topMatches{ix: p.view.ix, n: n}
	total = p.filterMatches()
	if n == 0 || total == 0 {
		return top, total
	}
	for doc := range p.kept.all {
		if p.maxScoreWithoutVectors(doc) >= top.minScore() {
			top.addMatch(int32(doc), p.finalScore(doc, nil))
		}
	}
	if len(p.vectors) == 0 {
		return top, total
	}
	like := topMatches{ix: p.view.ix, n: n}
	for _, r := range top.list { // most of them stay in the list
		like.addMatch(r.doc, p.finalScore(uint32(r.doc), p.vectors))
	}
	last := top.list[len(top.list)-1].score
	bound := p.view.ix.ranking.Vector * p.top * 1.0001
	for doc := range p.kept.all {
		if p.maxScoreWithoutVectors(doc)+bound < like.minScore() {
			continue
		}
		switch score := p.finalScore(doc, nil); {
		case score+bound < like.minScore():
		case score >= last && slices.ContainsFunc(top.list, func(r scoredDoc) bool { return r.doc == int32(doc) }):
		default:
			like.addMatch(int32(doc), p.finalScore(doc, p.vectors))
		}
	}
	return like, total
}

// filterMatches computes which matches are accepted, and returns their number.
func (p *ranker) filterMatches() int {
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

// maxScoreWithoutVectors returns the maximum score of a match without vectors.
func (p *ranker) maxScoreWithoutVectors(doc uint32) float32 {
	if p.named.hasMatches() || p.used != nil {
		return math.MaxFloat32
	}
	best := p.servers[p.view.ix.partOf[doc]]
	return best + p.view.ix.ranking.Server*best
}

// maxSimilarity returns the highest similarity of a tool to one of the vectors, which are of the query and its clauses.
func (ix *Index) maxSimilarity(doc uint32, to []unitVector) (most float32) {
	part := ix.partOf[doc]
	d := &ix.parts[part].unitVectors[doc-ix.first[part]]
	for i := range to {
		most = max(most, d.cosine(&to[i]))
	}
	return most
}

// finalScore returns the final score of a match. A deprecated tool ranks right after its matching successors. If there
// is none, its score is reduced. Its exact id always finds it.
func (p *ranker) finalScore(doc uint32, to []unitVector) float32 {
	ix := p.view.ix
	score, part := p.scoreIgnoringDeprecation(doc, to), ix.partOf[doc]
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
			score = min(score, math.Nextafter32(p.scoreIgnoringDeprecation(first+next, to), 0))
		}
	}
	return share * score
}

// scoreIgnoringDeprecation returns the score of a match as if the tool were not deprecated.
func (p *ranker) scoreIgnoringDeprecation(doc uint32, to []unitVector) float32 {
	r := p.view.ix.ranking
	score := p.scoreWithServerBonus(doc)
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

// scoreWithServerBonus returns the score of a match by its words, with bonuses for other good matches of its server
// and for named tools and servers.
func (p *ranker) scoreWithServerBonus(doc uint32) float32 {
	r, part := p.view.ix.ranking, p.view.ix.partOf[doc]
	score := p.docScores(doc)[0] + r.Server*p.servers[part]
	if !p.named.hasMatches() {
		return score
	}
	if p.named.servers[part] || p.named.byMeaning[doc] {
		score += p.top * r.maxScoreFactor()
	}
	if p.named.listServers[part] {
		score += 2 * p.top * r.maxScoreFactor()
	}
	return score + p.named.bonus[doc]
}
