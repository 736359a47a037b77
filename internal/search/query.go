package search

import (
	"strings"
	"unicode/utf8"
)

// Bounds on a query: what is beyond them is not read.
const (
	maxQuery      = 4 << 10 // bytes
	maxQueryWords = 64      // distinct words
	maxClauses    = 6
	maxMisspelt   = 6 // words that spelling is tried for
)

// What else a word of a query counts.
const (
	repeatShare = 0.15 // each time that it is said again
	joinedShare = 0.5  // written as one word instead of two, or the other way
)

// query is the words of a query, each once, found in the vocabulary.
type query struct {
	terms   []queryTerm
	clauses int
	ideal   float32 // what a document would score with every word at its best
}

type queryTerm struct {
	stem    int32
	surface int32 // -1 when the postings of the stem say the same, or there is none
	weight  float32
	clauses uint32 // bit set of the clauses that the word stands in
}

// parse reads a query.
func (ix *Index) parse(text string) query {
	r := reader{ix: ix, seen: make(map[string]int, 16)}
	text = clip(text, maxQuery)
	if r.read(text, true); len(r.words) == 0 {
		r.read(text, false)
	}
	return r.resolve()
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// reader gathers the distinct words of a query.
type reader struct {
	ix      *Index
	words   []queryWord
	seen    map[string]int
	clauses int
}

type queryWord struct {
	text    string
	clauses uint32
	count   int
	known   bool // to the vocabulary
}

func (r *reader) read(text string, skipStops bool) {
	sp := splitter{emit: func(word []byte) {
		w := string(word)
		if skipStops && (stopWords[w] || fillers[w]) {
			return
		}
		i, ok := r.seen[w]
		if !ok {
			if len(r.words) == maxQueryWords {
				return
			}
			i = len(r.words)
			r.seen[w] = i
			r.words = append(r.words, queryWord{text: w})
		}
		r.words[i].count++
		r.words[i].clauses |= 1 << r.clauses
	}}
	for text != "" {
		var clause string
		clause, text = cutClause(text)
		before := len(r.words)
		sp.text(clause)
		if len(r.words) > before && r.clauses < maxClauses-1 {
			r.clauses++
		}
	}
}

// cutClause cuts after the first sentence, or before what is wanted next.
func cutClause(text string) (clause, rest string) {
	for i := 0; i+1 < len(text); i++ {
		switch text[i] {
		case '.', '?', '!', ';', '\n':
			if text[i+1] == ' ' || text[i+1] == '\n' {
				return text[:i], text[i+1:]
			}
		case ',', ' ':
			for _, then := range [...]string{", and ", ", then ", " and then ", " and also "} {
				if strings.HasPrefix(text[i:], then) {
					return text[:i], text[i+len(then):]
				}
			}
		}
	}
	return text, ""
}

// resolve finds the words in the vocabulary, and what may be meant by those
// that are not there.
func (r *reader) resolve() query {
	q := query{clauses: r.clauses + 1}
	used := make(map[int32]bool, len(r.words))
	for i := range r.words {
		w := &r.words[i]
		if t, ok := r.ix.lookup(w.text); ok {
			used[t.stem] = true
			q.add(r.ix, t, 1+repeatShare*float32(min(w.count, 8)-1), w.clauses)
			w.known = true
		}
	}
	misspelt := 0
	for i, w := range r.words {
		share := float32(synonymInstead)
		if w.known {
			share = synonymShare
		}
		for _, st := range r.ix.synonyms[stem(w.text)] {
			if !used[st] {
				used[st], r.words[i].known = true, true
				q.add(r.ix, queryTerm{stem: st, surface: -1}, share, w.clauses)
			}
		}
		if i > 0 {
			r.joined(&q, r.words[i-1], w)
		}
		if !r.words[i].known && misspelt < maxMisspelt {
			misspelt++
			r.guess(&q, w)
		}
	}
	return q
}

// joined adds the word that two neighbours are when written as one: "data
// base" is found as "database".
func (r *reader) joined(q *query, a, b queryWord) {
	if len(a.text) < 2 || len(b.text) < 2 || len(a.text)+len(b.text) > maxWord {
		return
	}
	word := a.text + b.text
	if _, ok := r.ix.surfaces[word]; !ok || r.seen[word] > 0 {
		return
	}
	t, _ := r.ix.lookup(word)
	q.add(r.ix, t, joinedShare, a.clauses&b.clauses)
}

// guess adds what an unknown word may stand for: two words written as one, or
// else words that are spelt nearly so.
func (r *reader) guess(q *query, w queryWord) {
	q.ideal += idf(len(r.ix.ids), 0)
	for i := 3; i+3 <= len(w.text); i++ {
		first, ok := r.ix.surfaces[w.text[:i]]
		second, also := r.ix.surfaces[w.text[i:]]
		if ok && also {
			q.add(r.ix, queryTerm{stem: r.ix.stemOf[first], surface: first}, joinedShare, w.clauses)
			q.add(r.ix, queryTerm{stem: r.ix.stemOf[second], surface: second}, joinedShare, w.clauses)
			return
		}
	}
	for _, near := range r.ix.spelling.nearest(w.text) {
		if t, ok := r.ix.lookup(near.word); ok {
			q.add(r.ix, t, near.weight, w.clauses)
		}
	}
}

func (ix *Index) lookup(word string) (queryTerm, bool) {
	if s, ok := ix.surfaces[word]; ok {
		return queryTerm{stem: ix.stemOf[s], surface: s}, true
	}
	st, ok := ix.stems[stem(word)]
	return queryTerm{stem: st, surface: -1}, ok
}

func (q *query) add(ix *Index, t queryTerm, weight float32, clauses uint32) {
	t.weight, t.clauses = weight, clauses
	q.terms = append(q.terms, t)
	q.ideal += weight * ix.byStem.idf[t.stem] * (1 + surfaceShare)
}

// exact gives the documents whose name the query is.
func (ix *Index) exact(text string) []int32 {
	name := strings.ToLower(strings.TrimSpace(clip(text, maxQuery)))
	if docs, ok := ix.full[name]; ok {
		return docs
	}
	if docs, ok := ix.names[name]; ok {
		return docs
	}
	if server, tool, ok := strings.Cut(name, "__"); ok {
		return ix.full[server+":"+tool]
	}
	return nil
}
