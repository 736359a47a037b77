package search

import (
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Limits for a query. Everything beyond them is ignored.
const (
	maxQueryWords = 64 // distinct words
	maxClauses    = 6
	maxMisspelt   = 6 // words with spelling correction
	maxAlike      = 3 // words with similar words
)

// parsedQuery contains the distinct words of a query, looked up in the vocabulary.
type parsedQuery struct {
	terms     []queryTerm
	clauses   int
	context   uint32                    // bit set of clauses that only give context
	ideal     float32                   // score of a tool with the best match for every word
	countOnly bool                      // the query asks for a number or size, and for no action
	sums      [1 + maxClauses]vectorSum // sums of word vectors: for the query, then for each clause
	asked     []queryStem
}

// queryStem is a stem of the query.
type queryStem struct {
	stem  uint32
	known bool  // stem is set
	row   int32 // row of its vector, -1 if there is none
	rare  float32
}

type queryTerm struct {
	stem    uint32
	word    uint32
	written bool // word is set: tools contain exactly this word
	weight  float32
	clauses uint32 // bit set of clauses with the word
	asked   string // the word in the query
	how     MatchRelation
}

// parseQuery parses a query.
func (v *View) parseQuery(text string) parsedQuery {
	r := queryParser{view: v, seen: make(map[string]int, 16)}
	text = wirejson.ClipText(text, maxQuery)
	if r.parseWords(text, true); len(r.words) == 0 {
		r.parseWords(text, false)
	}
	r.addImpliedListVerb(text)
	return r.resolveWords()
}

// queryParser collects the distinct words of a query.
type queryParser struct {
	view      *View
	words     []queryWord
	seen      map[string]int
	clauses   int
	context   uint32
	phrases   []verbPhrase
	recent    []string // last words of the clause
	counted   int      // number of words that are not stop words
	plural    bool     // the last of these words is a plural
	hasAction bool     // a word is a verb other than "list" and similar verbs
	asksCount bool     // the query contains "how many" or similar words
}

// verbPhrase is a verb with its particle, such as "log into", which means "login".
type verbPhrase struct {
	verb, asked, word string
	clauses           uint32
}

type queryWord struct {
	text    string
	root    string // its stem
	clauses uint32
	count   int
	known   bool // in the vocabulary
}

func (r *queryParser) parseWords(text string, skipStops bool) {
	foreign := stopWordsOfTextLanguage(text)
	list := !strings.ContainsAny(text, ".?!")
	before := ""
	sp := splitter{plurals: true, emit: func(word []byte) {
		w := string(word)
		r.addVerbPhrase(before, w)
		how := before == "how"
		before = w
		if names, ok := measureNouns()[w]; ok && how {
			r.asksCount = true
			r.addWordsIfKnown(names)
			return
		}
		if skipStops && (stopWords()[w] || fillers()[w] || foreign[w]) {
			return
		}
		r.addWordWithShortForms(w)
	}}
	for text != "" {
		before, r.recent = "", r.recent[:0]
		var clause string
		clause, text = cutClause(text, list)
		had := len(r.words)
		sp.splitText(clause)
		if isContextSentence(clause) {
			r.context |= 1 << r.clauses
		}
		if len(r.words) > had && r.clauses < maxClauses-1 {
			r.clauses++
		}
	}
}

// addWordWithShortForms adds a word with its expansion, or the abbreviation that it completes.
func (r *queryParser) addWordWithShortForms(word string) {
	r.counted++
	r.plural = r.isPluralOfKnown(word)
	r.hasAction = r.hasAction || actionStems()[toStem(word)] && !readingVerbs()[word]
	if !r.view.hasWord(word) {
		if one, ok := strings.CutSuffix(word, "s"); ok && len(one) > 1 && r.view.hasWord(one) {
			word = one
		}
	}
	form := word
	if one, ok := singularAbbreviation(word); ok {
		form = one
	}
	if long, ok := shortForms()[form]; ok && r.addWordsIfKnown(long) {
		r.plural = form != word
		if !r.view.hasWord(word) {
			return
		}
	}
	r.addWord(word, 1<<r.clauses)
	if r.recent = append(r.recent, word); len(r.recent) > maxLongFormWords {
		r.recent = r.recent[1:]
	}
	if form, ok := findAbbreviation(r.recent); ok && r.hasUnknownWord(shortForms()[form]) {
		r.addWordsIfKnown([]string{form})
	}
}

// isPluralOfKnown reports whether a word is the plural of a known one.
func (r *queryParser) isPluralOfKnown(word string) bool {
	for _, ending := range [...][2]string{{"ies", "y"}, {"es", ""}, {"s", ""}} {
		if one, ok := strings.CutSuffix(word, ending[0]); ok && len(one) > 1 {
			if _, ok := r.view.wordID(one + ending[1]); ok {
				return true
			}
		}
	}
	return false
}

// hasUnknownWord reports whether any of the words is unknown.
func (r *queryParser) hasUnknownWord(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return !r.view.hasWord(word) })
}

// addWordsIfKnown adds words if all are known, and reports whether they are.
func (r *queryParser) addWordsIfKnown(words []string) bool {
	if r.hasUnknownWord(words) {
		return false
	}
	for _, word := range words {
		r.addWord(word, 1<<r.clauses)
	}
	return true
}

// hasWord reports whether tools have a word, in any form.
func (v *View) hasWord(word string) bool {
	_, ok := v.lookupWord(word)
	return ok
}

// addWord adds a word that occurs in the given clauses.
func (r *queryParser) addWord(word string, clauses uint32) {
	i, ok := r.seen[word]
	if !ok {
		if len(r.words) == maxQueryWords {
			return
		}
		i = len(r.words)
		r.seen[word] = i
		r.words = append(r.words, queryWord{text: word, root: toStem(word)})
	}
	r.words[i].count++
	r.words[i].clauses |= clauses
}

// addVerbPhrase adds two words as one word if that is known.
func (r *queryParser) addVerbPhrase(a, b string) {
	if a == "" || !particles()[b] || stopWords()[a] {
		return
	}
	word := toStem(a) + strings.TrimSuffix(b, "to")
	if _, ok := r.view.wordID(word); ok && len(r.phrases) < maxClauses {
		r.phrases = append(r.phrases, verbPhrase{a, a + " " + b, word, 1 << r.clauses})
	}
}

// addWordVector adds the vector of a word.
func (q *parsedQuery) addWordVector(v *WordVectors, stem string, weight float32, clauses uint32) {
	if !v.addStemVector(&q.sums[0], stem, weight) || q.clauses < 2 {
		return
	}
	for c := range q.clauses {
		if clauses&(1<<c) != 0 {
			v.addStemVector(&q.sums[1+c], stem, weight)
		}
	}
}

// addStem adds a stem of the query.
func (q *parsedQuery) addStem(v *View, root string) {
	a := queryStem{row: v.ix.ranking.Vectors.rowOf(root), rare: computeIDF(v.docs, 0)}
	if a.stem, a.known = v.stemID(root); a.known {
		a.rare = v.headIDF(a.stem)
	}
	q.asked = append(q.asked, a)
}

// unitVectors returns the vectors of the query and of each clause.
func (q *parsedQuery) unitVectors() (out []unitVector) {
	for i := range q.sums {
		if d := q.sums[i].toUnitVector(); d != (unitVector{}) {
			out = append(out, d)
		}
	}
	return out
}

// resolveWords looks up the words in the vocabulary, and guesses unknown ones.
func (r *queryParser) resolveWords() parsedQuery {
	q := parsedQuery{clauses: r.clauses + 1, context: r.context, countOnly: r.isCountQuestion()}
	used := make(map[uint32]bool, len(r.words))
	for i := range r.words {
		w := &r.words[i]
		q.addWordVector(r.view.ix.ranking.Vectors, w.root, 1, w.clauses)
		q.addStem(r.view, w.root)
		if t, ok := r.view.lookupStemmed(w.text, w.root); ok {
			used[t.stem] = true
			t.asked = w.text
			q.addTerm(r.view, t, 1+r.view.ix.ranking.Repeat*float32(min(w.count, 8)-1), w.clauses)
			w.known = true
		}
	}
	for _, p := range r.phrases {
		if t, ok := r.view.lookupWord(p.word); ok && !r.hasWord(p.word) {
			for i := range q.terms {
				if q.terms[i].asked == p.verb {
					q.terms[i].weight *= r.view.ix.ranking.Compound
				}
			}
			t.asked, t.how = p.asked, JoinedWords
			q.addTerm(r.view, t, 1, p.clauses)
			used[t.stem] = true
		}
	}
	misspelt, alike := 0, 0
	for i, w := range r.words {
		share := r.view.ix.ranking.Instead
		if w.known {
			share = r.view.ix.ranking.Synonym
		}
		for _, st := range r.view.ix.synonyms[w.root] {
			if !used[st] && r.view.stemsIn[st] > 0 {
				used[st], r.words[i].known = true, true
				q.addTerm(r.view, queryTerm{stem: st, asked: w.text, how: Synonym}, share, w.clauses)
			}
		}
		if i > 0 {
			r.addJoinedWord(&q, r.words[i-1], w)
		}
		if r.addSegments(&q, w) {
			continue
		}
		if !r.words[i].known && alike < maxAlike && r.addSimilarWords(&q, w) {
			alike++
			continue
		}
		if !r.words[i].known && misspelt < maxMisspelt {
			misspelt++
			r.addGuesses(&q, w)
		}
	}
	return q
}

// addImpliedListVerb treats a short query for several things, such as "databases", as a request
// to list them.
func (r *queryParser) addImpliedListVerb(text string) {
	if !strings.Contains(text, "?") && r.plural && !r.hasAction && !r.asksCount && r.counted <= maxListed && r.clauses <= 1 && r.view.hasWord("list") {
		r.addWord("list", 1)
	}
}

// maxListed is the maximum number of words of a query to which addImpliedListVerb adds "list".
const maxListed = 2

func (r *queryParser) hasWord(word string) bool {
	_, ok := r.seen[word]
	return ok
}

// addJoinedWord adds the compound of two neighbors: "data base" finds "database".
func (r *queryParser) addJoinedWord(q *parsedQuery, a, b queryWord) {
	if len(a.text) < 2 || len(b.text) < 2 || len(a.text)+len(b.text) > maxWord {
		return
	}
	word := a.text + b.text
	r.addCompoundSynonyms(q, a, b, word)
	if _, ok := r.view.wordID(word); !ok || r.hasWord(word) {
		return
	}
	t, _ := r.view.lookupWord(word)
	t.asked, t.how = a.text+" "+b.text, JoinedWords
	q.addTerm(r.view, t, r.view.ix.ranking.Joined, a.clauses&b.clauses)
}

// addCompoundSynonyms treats two neighbors that form a word with synonyms, such as "web page", as one meaning. It adds
// the synonyms and reduces the weight of each single word.
func (r *queryParser) addCompoundSynonyms(q *parsedQuery, a, b queryWord, word string) {
	others := r.view.ix.synonyms[toStem(word)]
	if len(others) == 0 {
		return
	}
	for i := range q.terms {
		if t := &q.terms[i]; t.how <= SameStem && (t.asked == a.text || t.asked == b.text) {
			t.weight *= r.view.ix.ranking.Compound
		}
	}
	for _, st := range others {
		if r.view.stemsIn[st] > 0 && !slices.ContainsFunc(q.terms, func(t queryTerm) bool { return t.stem == st && t.how != Synonym }) {
			q.addTerm(r.view, queryTerm{stem: st, asked: a.text + " " + b.text, how: Synonym}, r.view.ix.ranking.Meant, a.clauses&b.clauses)
		}
	}
}

// addSegments adds the words that a compound word consists of, and reports whether any of them is known.
func (r *queryParser) addSegments(q *parsedQuery, w queryWord) (found bool) {
	pieces := splitCompound(w.text)
	if compounds()[w.text] || compounds()[strings.TrimSuffix(w.text, "s")] {
		pieces = splitIntoTwoWords(w.text)
	}
	for _, piece := range pieces {
		if t, ok := r.view.lookupWord(piece); ok && !stopWords()[piece] && !r.hasWord(piece) {
			found = true
			t.asked, t.how = w.text, JoinedWords
			q.addTerm(r.view, t, r.view.ix.ranking.Joined, w.clauses)
		}
	}
	return found
}

// addGuesses adds guesses for an unknown word: its segments, or else words with similar spelling.
func (r *queryParser) addGuesses(q *parsedQuery, w queryWord) {
	q.ideal += computeIDF(r.view.docs, 0)
	for i := 3; i+3 <= len(w.text); i++ {
		first, ok := r.view.lookupWord(w.text[:i])
		if !ok {
			continue
		}
		if second, ok := r.view.lookupWord(w.text[i:]); ok {
			for _, t := range [2]queryTerm{first, second} {
				t.asked, t.how = w.text, JoinedWords
				q.addTerm(r.view, t, r.view.ix.ranking.Joined, w.clauses)
			}
			return
		}
	}
	for _, near := range r.view.nearestSpellings(w.text) {
		if t, ok := r.view.lookupWord(near.word); ok {
			t.asked, t.how = w.text, Misspelt
			q.addTerm(r.view, t, near.weight, w.clauses)
		}
	}
}

// addSimilarWords adds words with similar vectors.
func (r *queryParser) addSimilarWords(q *parsedQuery, w queryWord) bool {
	v := r.view.ix.ranking.Vectors
	found := v.nearestStems(w.root, r.view.ix.vectorRows, func(s string) bool {
		_, ok := r.view.stemID(s)
		return ok
	})
	for _, n := range found {
		st, _ := r.view.stemID(n.word)
		q.addTerm(r.view, queryTerm{stem: st, asked: w.text, how: Synonym}, r.view.ix.ranking.Alike*n.weight/float32(len(found)), w.clauses)
	}
	return len(found) > 0
}

func (v *View) lookupWord(word string) (queryTerm, bool) {
	if _, ok := v.wordID(word); ok {
		return v.lookupStemmed(word, "")
	}
	return v.lookupStemmed(word, toStem(word))
}

// lookupStemmed is like lookupWord for a word with a known stem.
func (v *View) lookupStemmed(word, root string) (queryTerm, bool) {
	if w, ok := v.wordID(word); ok {
		return queryTerm{stem: v.ix.stemOf[w], word: w, written: true}, true
	}
	st, ok := v.stemID(root)
	return queryTerm{stem: st, how: SameStem}, ok
}

func (q *parsedQuery) addTerm(v *View, t queryTerm, weight float32, clauses uint32) {
	t.weight, t.clauses = weight, clauses
	q.terms = append(q.terms, t)
	q.ideal += weight * v.headIDF(t.stem) * (1 + v.ix.ranking.Surface)
}

// isCountQuestion reports whether the query asks how many or how large something is, and
// requests no action.
func (r *queryParser) isCountQuestion() bool {
	if !r.asksCount {
		return false
	}
	for i := range r.words {
		if mutatingVerbs()[r.words[i].text] || mutatingVerbs()[r.words[i].root] {
			return false
		}
	}
	return true
}
