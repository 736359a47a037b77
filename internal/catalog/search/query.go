package search

import (
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Bounds on a query: what is beyond them is not read.
const (
	maxQueryWords = 64 // distinct words
	maxClauses    = 6
	maxMisspelt   = 6 // words that spelling is tried for
	maxAlike      = 3 // …and words that lie near
)

// query is the words of a query, each once, found in the vocabulary.
type query struct {
	terms   []queryTerm
	clauses int
	context uint32                 // bit set of the clauses that only tell the circumstances
	ideal   float32                // what a tool would score with every word at its best
	only    bool                   // asks for a number or a size, and for nothing to be done
	sums    [1 + maxClauses]vector // the words' vectors: of the whole query, then of each clause
	asked   []asked
}

// asked is a word that the query says.
type asked struct {
	stem  uint32
	known bool  // stem is set
	row   int32 // of its vector, -1 if it has none
	rare  float32
}

type queryTerm struct {
	stem    uint32
	word    uint32
	written bool // word is set: tools have the very word
	weight  float32
	clauses uint32 // bit set of the clauses that the word stands in
	asked   string // the word of the query
	how     Relation
}

// parse reads a query.
func (v *View) parse(text string) query {
	r := reader{view: v, seen: make(map[string]int, 16)}
	text = wirejson.Clip(text, maxQuery)
	if r.read(text, true); len(r.words) == 0 {
		r.read(text, false)
	}
	r.list(text)
	return r.resolve()
}

// reader gathers the distinct words of a query.
type reader struct {
	view     *View
	words    []queryWord
	seen     map[string]int
	clauses  int
	context  uint32
	phrases  []phrase
	recent   []string // words of the clause, the last ones
	typed    int      // words that count
	plural   bool     // the last of them is one
	wish     bool     // one of them is a verb that does more than look
	measured bool     // something is asked for by "how many" or its like
}

// phrase is a verb with its particle, such as "log into", which is a login.
type phrase struct {
	verb, asked, word string
	clauses           uint32
}

type queryWord struct {
	text    string
	root    string // its stem
	clauses uint32
	count   int
	known   bool // to the vocabulary
}

func (r *reader) read(text string, skipStops bool) {
	foreign := foreignStops(text)
	list := !strings.ContainsAny(text, ".?!")
	before := ""
	sp := splitter{plurals: true, emit: func(word []byte) {
		w := string(word)
		r.phrase(before, w)
		how := before == "how"
		before = w
		if names, ok := measures()[w]; ok && how {
			r.measured = true
			r.noteKnown(names)
			return
		}
		if skipStops && (stopWords()[w] || fillers()[w] || foreign[w]) {
			return
		}
		r.short(w)
	}}
	for text != "" {
		before, r.recent = "", r.recent[:0]
		var clause string
		clause, text = cutClause(text, list)
		had := len(r.words)
		sp.text(clause)
		if tellsCircumstances(clause) {
			r.context |= 1 << r.clauses
		}
		if len(r.words) > had && r.clauses < maxClauses-1 {
			r.clauses++
		}
	}
}

// short notes a word, with what it is short for or the short form that it completes.
func (r *reader) short(word string) {
	r.typed++
	r.plural = r.several(word)
	r.wish = r.wish || wishes()[stem(word)] && !looking()[word]
	if !r.view.knows(word) {
		if one, ok := strings.CutSuffix(word, "s"); ok && len(one) > 1 && r.view.knows(one) {
			word = one
		}
	}
	form := word
	if one, ok := singular(word); ok {
		form = one
	}
	if long, ok := shortForms()[form]; ok && r.noteKnown(long) {
		r.plural = form != word
		if !r.view.knows(word) {
			return
		}
	}
	r.note(word, 1<<r.clauses)
	if r.recent = append(r.recent, word); len(r.recent) > maxLong {
		r.recent = r.recent[1:]
	}
	if form, ok := shortOf(r.recent); ok && r.lacks(shortForms()[form]) {
		r.noteKnown([]string{form})
	}
}

// several reports whether a word is the plural of one that tools have.
func (r *reader) several(word string) bool {
	for _, ending := range [...][2]string{{"ies", "y"}, {"es", ""}, {"s", ""}} {
		if one, ok := strings.CutSuffix(word, ending[0]); ok && len(one) > 1 {
			if _, ok := r.view.word(one + ending[1]); ok {
				return true
			}
		}
	}
	return false
}

// lacks reports whether tools do not have all of the words.
func (r *reader) lacks(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return !r.view.knows(word) })
}

// noteKnown notes words if tools have all of them, and reports whether they do.
func (r *reader) noteKnown(words []string) bool {
	if r.lacks(words) {
		return false
	}
	for _, word := range words {
		r.note(word, 1<<r.clauses)
	}
	return true
}

// knows reports whether tools have a word, in whatever form.
func (v *View) knows(word string) bool {
	_, ok := v.lookup(word)
	return ok
}

// note notes a word of the clauses.
func (r *reader) note(word string, clauses uint32) {
	i, ok := r.seen[word]
	if !ok {
		if len(r.words) == maxQueryWords {
			return
		}
		i = len(r.words)
		r.seen[word] = i
		r.words = append(r.words, queryWord{text: word, root: stem(word)})
	}
	r.words[i].count++
	r.words[i].clauses |= clauses
}

// phrase notes two words that are one where tools have it.
func (r *reader) phrase(a, b string) {
	if a == "" || !particles()[b] || stopWords()[a] {
		return
	}
	word := stem(a) + strings.TrimSuffix(b, "to")
	if _, ok := r.view.word(word); ok && len(r.phrases) < maxClauses {
		r.phrases = append(r.phrases, phrase{a, a + " " + b, word, 1 << r.clauses})
	}
}

// foreignStops returns the stop words of the language that a query seems to be in,
// nothing for English and for what has none of its own.
func foreignStops(text string) (stops map[string]bool) {
	words := plainWords(text)
	most := 1
	for _, language := range otherStops() {
		n := 0
		for _, w := range words {
			switch {
			case language[w] && !stopWords()[w]:
				n++
			case stopWords()[w] && !language[w]:
				n--
			}
		}
		if n > most {
			most, stops = n, language
		}
	}
	return stops
}

// cutClause cuts after the first sentence, or before what is wanted next.
func cutClause(text string, list bool) (clause, rest string) {
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
			if strings.Contains(text[:i], " ") {
				for _, mark := range [...]string{", ", " + ", " and ", " or "} {
					if rest, ok := strings.CutPrefix(text[i:], mark); ok && beginsWish(mark, rest, list) {
						return text[:i], rest
					}
				}
			}
		}
	}
	return text, ""
}

// place adds the vector of a word.
func (q *query) place(v *Vectors, stem string, weight float32, clauses uint32) {
	if !v.add(&q.sums[0], stem, weight) || q.clauses < 2 {
		return
	}
	for c := range q.clauses {
		if clauses&(1<<c) != 0 {
			v.add(&q.sums[1+c], stem, weight)
		}
	}
}

// ask notes a stem that the query says.
func (q *query) ask(v *View, root string) {
	a := asked{row: v.ix.ranking.Vectors.row(root), rare: idf(v.docs, 0)}
	if a.stem, a.known = v.stem(root); a.known {
		a.rare = v.idf(a.stem)
	}
	q.asked = append(q.asked, a)
}

// directions are where the query lies, and each of its clauses.
func (q *query) directions() (out []direction) {
	for i := range q.sums {
		if d := q.sums[i].direction(); d != (direction{}) {
			out = append(out, d)
		}
	}
	return out
}

// beginsWish reports whether a wish of its own begins behind the mark: several words
// behind one that lists, a verb behind another.
func beginsWish(mark, text string, list bool) bool {
	word, rest, more := strings.Cut(text, " ")
	return list && more && rest != "" && (mark == ", " || mark == " + ") || verbs()[strings.ToLower(word)]
}

// resolve finds the words in the vocabulary, and what may be meant by those
// that are not there.
func (r *reader) resolve() query {
	q := query{clauses: r.clauses + 1, context: r.context, only: r.asksOnly()}
	used := make(map[uint32]bool, len(r.words))
	for i := range r.words {
		w := &r.words[i]
		q.place(r.view.ix.ranking.Vectors, w.root, 1, w.clauses)
		q.ask(r.view, w.root)
		if t, ok := r.view.find(w.text, w.root); ok {
			used[t.stem] = true
			t.asked = w.text
			q.add(r.view, t, 1+r.view.ix.ranking.Repeat*float32(min(w.count, 8)-1), w.clauses)
			w.known = true
		}
	}
	for _, p := range r.phrases {
		if t, ok := r.view.lookup(p.word); ok && !r.said(p.word) {
			for i := range q.terms {
				if q.terms[i].asked == p.verb {
					q.terms[i].weight *= r.view.ix.ranking.Compound
				}
			}
			t.asked, t.how = p.asked, Joined
			q.add(r.view, t, 1, p.clauses)
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
				q.add(r.view, queryTerm{stem: st, asked: w.text, how: Synonym}, share, w.clauses)
			}
		}
		if i > 0 {
			r.joined(&q, r.words[i-1], w)
		}
		if r.parted(&q, w) {
			continue
		}
		if !r.words[i].known && alike < maxAlike && r.alike(&q, w) {
			alike++
			continue
		}
		if !r.words[i].known && misspelt < maxMisspelt {
			misspelt++
			r.guess(&q, w)
		}
	}
	return q
}

// list reads a short query for several things that is no question, such as
// "databases", as a wish to list them.
func (r *reader) list(text string) {
	if !strings.Contains(text, "?") && r.plural && !r.wish && !r.measured && r.typed <= maxListed && r.clauses <= 1 && r.view.knows("list") {
		r.note("list", 1)
	}
}

// maxListed is how many words a query has at most that is read as a wish to list.
const maxListed = 2

func (r *reader) said(word string) bool {
	_, ok := r.seen[word]
	return ok
}

// joined adds the word that two neighbours are when written as one: "data
// base" is found as "database".
func (r *reader) joined(q *query, a, b queryWord) {
	if len(a.text) < 2 || len(b.text) < 2 || len(a.text)+len(b.text) > maxWord {
		return
	}
	word := a.text + b.text
	r.compound(q, a, b, word)
	if _, ok := r.view.word(word); !ok || r.said(word) {
		return
	}
	t, _ := r.view.lookup(word)
	t.asked, t.how = a.text+" "+b.text, Joined
	q.add(r.view, t, r.view.ix.ranking.Joined, a.clauses&b.clauses)
}

// compound reads two neighbours that together are a word of the table of synonyms,
// such as "web page", as the one thing that they mean: its synonyms count, and
// each of the two less than a word that means something by itself.
func (r *reader) compound(q *query, a, b queryWord, word string) {
	others := r.view.ix.synonyms[stem(word)]
	if len(others) == 0 {
		return
	}
	for i := range q.terms {
		if t := &q.terms[i]; t.how <= Stem && (t.asked == a.text || t.asked == b.text) {
			t.weight *= r.view.ix.ranking.Compound
		}
	}
	for _, st := range others {
		if r.view.stemsIn[st] > 0 && !slices.ContainsFunc(q.terms, func(t queryTerm) bool { return t.stem == st && t.how != Synonym }) {
			q.add(r.view, queryTerm{stem: st, asked: a.text + " " + b.text, how: Synonym}, r.view.ix.ranking.Meant, a.clauses&b.clauses)
		}
	}
}

// parted adds the words that a word is when it is several written as one, and
// reports whether tools have any.
func (r *reader) parted(q *query, w queryWord) (found bool) {
	pieces := segments(w.text)
	if compounds()[w.text] || compounds()[strings.TrimSuffix(w.text, "s")] {
		pieces = halves(w.text)
	}
	for _, piece := range pieces {
		if t, ok := r.view.lookup(piece); ok && !stopWords()[piece] && !r.said(piece) {
			found = true
			t.asked, t.how = w.text, Joined
			q.add(r.view, t, r.view.ix.ranking.Joined, w.clauses)
		}
	}
	return found
}

// guess adds what an unknown word may stand for: two words of tools written as
// one, or else words that are spelt nearly so.
func (r *reader) guess(q *query, w queryWord) {
	q.ideal += idf(r.view.docs, 0)
	for i := 3; i+3 <= len(w.text); i++ {
		first, ok := r.view.lookup(w.text[:i])
		if !ok {
			continue
		}
		if second, ok := r.view.lookup(w.text[i:]); ok {
			for _, t := range [2]queryTerm{first, second} {
				t.asked, t.how = w.text, Joined
				q.add(r.view, t, r.view.ix.ranking.Joined, w.clauses)
			}
			return
		}
	}
	for _, near := range r.view.nearest(w.text) {
		if t, ok := r.view.lookup(near.word); ok {
			t.asked, t.how = w.text, Misspelt
			q.add(r.view, t, near.weight, w.clauses)
		}
	}
}

// alike adds words of tools that lie near an unknown one.
func (r *reader) alike(q *query, w queryWord) bool {
	v := r.view.ix.ranking.Vectors
	found := v.nearest(w.root, r.view.ix.lying, func(s string) bool {
		_, ok := r.view.stem(s)
		return ok
	})
	for _, n := range found {
		st, _ := r.view.stem(n.word)
		q.add(r.view, queryTerm{stem: st, asked: w.text, how: Synonym}, r.view.ix.ranking.Alike*n.weight/float32(len(found)), w.clauses)
	}
	return len(found) > 0
}

func (v *View) lookup(word string) (queryTerm, bool) {
	if _, ok := v.word(word); ok {
		return v.find(word, "")
	}
	return v.find(word, stem(word))
}

// find is lookup for a word whose stem is known.
func (v *View) find(word, root string) (queryTerm, bool) {
	if w, ok := v.word(word); ok {
		return queryTerm{stem: v.ix.stemOf[w], word: w, written: true}, true
	}
	st, ok := v.stem(root)
	return queryTerm{stem: st, how: Stem}, ok
}

func (q *query) add(v *View, t queryTerm, weight float32, clauses uint32) {
	t.weight, t.clauses = weight, clauses
	q.terms = append(q.terms, t)
	q.ideal += weight * v.idf(t.stem) * (1 + v.ix.ranking.Surface)
}

// Relation is how a word of the query is found in a tool.
type Relation uint8

// The relations, the closest first.
const (
	Same     Relation = iota // the very word
	Stem                     // another form of the word
	Joined                   // words written as one, or one as several
	Synonym                  // a word of the same meaning
	Misspelt                 // a word that is spelt nearly so
	Named                    // the query is the name of the tool, or begins with or is that of its server
	Used                     // the tool was called after searches with such words
)

func (r Relation) String() string {
	return [...]string{"same", "stem", "joined", "synonym", "misspelt", "named", "used"}[r]
}

// tellsCircumstances reports whether a sentence tells who asks and why, and asks
// for nothing: "I'm planning a trip to Rome." Its words count less.
func tellsCircumstances(sentence string) bool {
	sentence = strings.ToLower(strings.TrimSpace(sentence))
	for _, beginning := range wordFile().Of("circumstances").Lines {
		if strings.HasPrefix(sentence, beginning+" ") {
			for _, word := range strings.Fields(sentence) {
				if asking()[strings.Trim(word, ",;:\"'")] {
					return false
				}
			}
			return true
		}
	}
	return false
}

// asksOnly reports whether the words of a query ask how many or how large something is,
// and name nothing to be done.
func (r *reader) asksOnly() bool {
	if !r.measured {
		return false
	}
	for i := range r.words {
		if changing()[r.words[i].text] || changing()[r.words[i].root] {
			return false
		}
	}
	return true
}
