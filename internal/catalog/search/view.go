package search

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// View is the part of an index that a search sees. Hidden tools have no influence on order, scores or spelling
// correction. A View is immutable, safe for concurrent use, and cheap, because nothing is analyzed again.
type View struct {
	ix        *Index
	shown     docSet // nil if all documents are shown
	docs      int
	partShown []partVisibility // part → whether all, some or none of its tools are shown
	stemsIn   []uint32         // stem → number of shown tools
	wordsIn   []uint32
	idfs      []float32 // stem → IDF
	headIDFs  []float32 // stem → IDF in names and first sentences
	nameIDFs  []float32 // tool → sum of the IDFs of its name's words
}

// partVisibility reports whether all, some or none of the tools of a part are shown.
type partVisibility uint8

const (
	fullyShown partVisibility = iota
	partlyShown
	notShown
)

// View returns a view of the tools that shown accepts; nil accepts all.
func (ix *Index) View(shown func(doc int) bool) *View {
	v := &View{ix: ix, docs: ix.Len()}
	v.partShown = make([]partVisibility, len(ix.parts))
	if shown != nil {
		v.setShown(shown)
	}
	v.stemsIn = v.countToolsByWord(&ix.byStem, func(p *ServerIndexPart, word uint32) []posting { return p.byStem.ofWord(word) })
	v.wordsIn = v.countToolsByWord(&ix.byWord, (*ServerIndexPart).exactWordPostings)
	v.computeIDFs()
	return v
}

// computeIDFs computes the IDFs. Words that are in every schema but in few names keep their weight in names.
func (v *View) computeIDFs() {
	v.idfs, v.headIDFs = make([]float32, len(v.stemsIn)), make([]float32, len(v.stemsIn))
	share := v.ix.ranking.HeadIDF
	for st, n := range v.stemsIn {
		if n == 0 {
			continue
		}
		v.idfs[st] = computeIDF(v.docs, int(n))
		v.headIDFs[st] = (1-share)*v.idfs[st] + share*computeIDF(v.docs, int(v.countToolsWithHeadStem(uint32(st))))
	}
	v.nameIDFs = make([]float32, v.ix.Len())
	for part, p := range v.ix.parts {
		for doc, named := range p.nameStems {
			for _, st := range named {
				v.nameIDFs[v.ix.first[part]+uint32(doc)] += v.headIDFs[v.ix.stemsOf[part][st]]
			}
		}
	}
}

// countToolsWithHeadStem returns the number of shown tools with the stem in their heads.
func (v *View) countToolsWithHeadStem(stem uint32) (n uint32) {
	for _, p := range v.ix.byStem.partsWithWord(stem) {
		switch part := v.ix.parts[p.part]; v.partShown[p.part] {
		case fullyShown:
			n += part.headCounts[p.word]
		case partlyShown:
			for _, e := range part.byStem.ofWord(p.word) {
				if e.inHead() && v.isShown(v.ix.first[p.part]+e.docNumber()) {
					n++
				}
			}
		}
	}
	return n
}

func (v *View) setShown(shown func(doc int) bool) {
	v.docs = 0
	v.shown = make(docSet, (v.ix.Len()+63)/64)
	for part := range v.partShown {
		first, end := v.ix.first[part], v.ix.first[part+1]
		n := 0
		for doc := first; doc < end; doc++ {
			if shown(int(doc)) {
				v.shown.add(doc)
				n++
			}
		}
		v.docs += n
		switch n {
		case int(end - first):
			v.partShown[part] = fullyShown
		case 0:
			v.partShown[part] = notShown
		default:
			v.partShown[part] = partlyShown
		}
	}
}

// countToolsByWord returns the number of shown tools for every word.
func (v *View) countToolsByWord(l *partsByWord, docs func(p *ServerIndexPart, word uint32) []posting) []uint32 {
	counts := make([]uint32, len(l.start)-1)
	for word := range counts {
		for _, p := range l.partsWithWord(uint32(word)) {
			switch v.partShown[p.part] {
			case fullyShown:
				counts[word] += uint32(len(docs(v.ix.parts[p.part], p.word)))
			case partlyShown:
				for _, e := range docs(v.ix.parts[p.part], p.word) {
					if v.isShown(v.ix.first[p.part] + e.docNumber()) {
						counts[word]++
					}
				}
			}
		}
	}
	return counts
}

// countPartToolsWithStem returns the number of shown tools of a part with a stem.
func (v *View) countPartToolsWithStem(part, stem uint32) (n uint32) {
	for _, p := range v.ix.byStem.partsWithWord(stem) {
		if p.part != part {
			continue
		}
		for _, e := range v.ix.parts[part].byStem.ofWord(p.word) {
			if v.isShown(v.ix.first[part] + e.docNumber()) {
				n++
			}
		}
	}
	return n
}

func (v *View) isShown(doc uint32) bool {
	return v.shown == nil || v.shown.has(doc)
}

// Len returns the number of shown tools.
func (v *View) Len() int { return v.docs }

// wordID returns the number of a word if shown tools have it.
func (v *View) wordID(text string) (uint32, bool) {
	w, ok := v.ix.words[text]
	return w, ok && v.wordsIn[w] > 0
}

// stemID returns the number of a stem if shown tools have it.
func (v *View) stemID(text string) (uint32, bool) {
	s, ok := v.ix.stems[text]
	return s, ok && v.stemsIn[s] > 0
}

func (v *View) headIDF(stem uint32) float32 { return v.headIDFs[stem] }

// nearestSpellings returns the words with the fewest edits from word: at most one edit if it has four letters or more,
// two if it has eight or more.
func (v *View) nearestSpellings(word string) []similarWord {
	sp := v.ix.spelling
	if len(word) < minSpelling || len(word) > maxWord || !isLowerASCIILetters(word) {
		return nil
	}
	limit := 1
	if len(word) >= 8 {
		limit = 2
	}
	var found []spellingEntry
	have := letterSet(word)
	for length := len(word) - limit; length <= min(len(word)+limit, maxWord); length++ {
		for _, first := range possibleFirstLetters(word) {
			for _, candidate := range *sp.bucket(first, length) {
				if bits.OnesCount32(have^candidate.letters) > 2*limit {
					continue
				}
				d := editDistance(word, candidate.text, limit)
				if d > limit || v.wordsIn[candidate.word] == 0 {
					continue
				}
				if d < limit {
					limit, found = d, found[:0]
				}
				found = append(found, candidate)
			}
		}
	}
	// Among equally similar words, those of more tools come first.
	slices.SortFunc(found, func(a, b spellingEntry) int {
		return cmp.Or(cmp.Compare(v.wordsIn[b.word], v.wordsIn[a.word]), strings.Compare(a.text, b.text))
	})
	found = found[:min(len(found), maxSimilar)]
	out := make([]similarWord, len(found))
	for i, w := range found {
		out[i] = similarWord{w.text, v.ix.ranking.Misspelt / float32(len(found))}
	}
	return out
}
