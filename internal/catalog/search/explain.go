package search

import (
	"cmp"
	"math"
	"slices"

	"mcpproxy/internal/catalog/tool"
)

// MatchReason is one reason why a tool was found: a word of the query, the matching words of the tool, and their
// fields.
type MatchReason struct {
	Asked  string
	Found  []string
	How    MatchRelation
	Fields []string // name, server, title, summary, description, parameter, parameter_text
	Share  float64  // share of the score by words; 0 for a match by name or by use
}

// MatchRelation describes how a word of the query matches a tool.
type MatchRelation uint8

// The relations, closest first.
const (
	SameWord    MatchRelation = iota // the same word
	SameStem                         // another form of the word
	JoinedWords                      // words written as one word, or one word written as several
	Synonym                          // a synonym
	Misspelt                         // a word with similar spelling
	ByName                           // the query names the tool or its server
	ByUse                            // the tool was called after similar searches
)

func (r MatchRelation) String() string {
	return [...]string{"same", "stem", "joined", "synonym", "misspelt", "named", "used"}[r]
}

// fieldNames are the names of the fields, in order.
var fieldNames = [fields]string{"name", "server", "title", "summary", "description", "parameter", "parameter_text"}

// MatchReasons returns the reasons why the query finds the tool with that definition, the most important reason first.
// h may be nil. It analyzes the definition again, because the index does not store positions.
func (v *View) MatchReasons(h *Habits, query string, doc int, d *tool.Definition) []MatchReason {
	q := v.parseQuery(query)
	terms, lengths := v.ix.analyzeTool(d)
	var reasons []MatchReason
	sum := 0.0
	for i := range q.terms {
		if r, ok := v.termReason(&q.terms[i], terms, lengths); ok {
			sum += r.Share
			reasons = append(reasons, r)
		}
	}
	for i := range reasons {
		reasons[i].Share = math.Round(reasons[i].Share/sum*1e3) / 1e3
	}
	slices.SortStableFunc(reasons, func(a, b MatchReason) int { return cmp.Compare(b.Share, a.Share) })
	if v.habitScores(h, query)[uint32(doc)] > 0 {
		reasons = append(reasons, MatchReason{Asked: query, Found: []string{}, How: ByUse, Fields: []string{}})
	}
	return append(v.nameReasons(query, uint32(doc), d), reasons...)
}

// nameReasons returns the reasons for matches by name, which come first.
func (v *View) nameReasons(query string, doc uint32, d *tool.Definition) (reasons []MatchReason) {
	n := v.findNameMatches(query)
	if n.bonus[doc] > 0 || n.byMeaning[doc] {
		reasons = append(reasons, MatchReason{Asked: query, Found: []string{d.ShownName()}, How: ByName, Fields: []string{fieldNames[inName]}})
	}
	if part := v.ix.partOf[doc]; n.servers[part] || n.listServers[part] {
		reasons = append(reasons, MatchReason{Asked: query, Found: []string{d.ID.Server}, How: ByName, Fields: []string{fieldNames[inServer]}})
	}
	return reasons
}

// toolWord is a word of a tool with its number in the index.
type toolWord struct {
	text string
	stem uint32
	toolTerm
}

func (ix *Index) analyzeTool(d *tool.Definition) ([]toolWord, *[fields]int) {
	a := newDefinitionAnalyzer(ix.ranking.lexicon)
	terms, lengths := a.extractTerms(d)
	words := make([]toolWord, 0, len(terms))
	for _, t := range terms {
		text := a.words[t.word]
		if w, ok := ix.words[text]; ok {
			words = append(words, toolWord{text, ix.stemOf[w], t})
		}
	}
	return words, lengths
}

// termReason returns the reason for a query term.
func (v *View) termReason(t *queryTerm, words []toolWord, lengths *[fields]int) (MatchReason, bool) {
	r, rank := MatchReason{Asked: t.asked, How: t.how}, v.ix.ranking
	var total float32
	var in [fields]bool
	for _, w := range words {
		if w.stem != t.stem {
			continue
		}
		weight := rank.rawWeight(&w.count, lengths)
		total += weight
		if t.written && v.ix.words[w.text] == t.word {
			r.Share += float64(rank.Surface) * float64(rank.saturate(weight))
		}
		r.Found = append(r.Found, w.text)
		for f, n := range w.count {
			in[f] = in[f] || n > 0
		}
	}
	if r.How == SameWord && !slices.Contains(r.Found, t.asked) {
		r.How = SameStem
	}
	for f, name := range fieldNames {
		if in[f] {
			r.Fields = append(r.Fields, name)
		}
	}
	r.Share = (r.Share + float64(rank.saturate(total))) * float64(v.headIDF(t.stem)*t.weight)
	return r, len(r.Found) > 0
}
