package search

import (
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Index is the search index over several parts. It is immutable and safe for concurrent use. Searches use a View of it.
//
// Words are indexed by stem, which matches any form, and also in their exact form, so that an exact match has more
// weight.
type Index struct {
	ranking *RankingParameters
	parts   []*ServerIndexPart
	first   []uint32 // part → its first document; the last element is the number of documents
	partOf  []uint32 // document → part

	byServer map[string][]uint32 // server → its parts

	words   map[string]uint32
	stemOf  []uint32 // word → stem
	stems   map[string]uint32
	stemsOf [][]uint32 // part → its stems

	byStem, byWord partsByWord
	spelling       spellingIndex
	synonyms       map[string][]uint32 // stem as text → stems

	vectorRows []int // row numbers of the stems' vectors

	scratch sync.Pool // buffers of searches
}

// partsByWord maps each word to the parts that contain it, and to its number in each part.
type partsByWord struct {
	start []uint32 // word → first entry; the last element is the number of entries
	parts []wordInPart
}

type wordInPart struct{ part, word uint32 }

func (l *partsByWord) partsWithWord(word uint32) []wordInPart {
	return l.parts[l.start[word]:l.start[word+1]]
}

// NewIndex returns an index over the parts. Documents are numbered in the order of the parts.
func NewIndex(parts []*ServerIndexPart) *Index {
	ix := &Index{ranking: defaultRanking(), parts: parts, first: make([]uint32, len(parts)+1), byServer: make(map[string][]uint32, len(parts))}
	most, all := 0, 0
	if len(parts) > 0 {
		ix.ranking = parts[0].ranking
	}
	for i, p := range parts {
		ix.first[i+1] = ix.first[i] + uint32(len(p.ids))
		most, all = max(most, len(p.words)), all+len(p.words)
		if len(p.ids) > 0 {
			ix.byServer[p.ids[0].Server] = append(ix.byServer[p.ids[0].Server], uint32(i))
		}
	}
	// Estimates the size, because servers share most of their words.
	ix.words = make(map[string]uint32, max(most, all/6))
	ix.stems = make(map[string]uint32, max(most, all/6))
	ix.partOf = make([]uint32, ix.first[len(parts)])
	words, stems := make([][]uint32, len(parts)), make([][]uint32, len(parts))
	for i, p := range parts {
		for doc := ix.first[i]; doc < ix.first[i+1]; doc++ {
			ix.partOf[doc] = uint32(i)
		}
		words[i], stems[i] = ix.assignWordNumbers(p)
	}
	ix.stemsOf = stems
	ix.byWord = newPartsByWord(words, len(ix.words))
	ix.byStem = newPartsByWord(stems, len(ix.stems))
	ix.spelling = newSpellingIndex(ix.words)
	ix.synonyms = synonymsInVocabulary(ix.stems)
	for row, stem := range ix.ranking.Vectors.stems {
		if _, ok := ix.stems[stem]; ok {
			ix.vectorRows = append(ix.vectorRows, row)
		}
	}
	return ix
}

// assignWordNumbers returns the numbers of a part's words and stems. New words and stems get the next number. The stem
// of a known word is not computed again.
func (ix *Index) assignWordNumbers(p *ServerIndexPart) (words, stems []uint32) {
	words, stems = make([]uint32, len(p.words)), make([]uint32, len(p.stems))
	for i, text := range p.words {
		w, ok := ix.words[text]
		if !ok {
			root := p.stems[p.stemOf[i]]
			st, known := ix.stems[root]
			if !known {
				st = uint32(len(ix.stems))
				ix.stems[root] = st
			}
			w = uint32(len(ix.words))
			ix.words[text] = w
			ix.stemOf = append(ix.stemOf, st)
		}
		words[i], stems[p.stemOf[i]] = w, ix.stemOf[w]
	}
	return words, stems
}

// newPartsByWord inverts a map from parts to words.
func newPartsByWord(words [][]uint32, n int) partsByWord {
	l := partsByWord{start: make([]uint32, n+1)}
	for _, of := range words {
		for _, word := range of {
			l.start[word+1]++
		}
	}
	next := countsToOffsets(l.start)
	l.parts = make([]wordInPart, l.start[n])
	for part, of := range words {
		for local, word := range of {
			l.parts[next[word]] = wordInPart{uint32(part), uint32(local)}
			next[word]++
		}
	}
	return l
}

// Len returns the number of tools.
func (ix *Index) Len() int { return len(ix.partOf) }

func (ix *Index) toolID(doc uint32) tool.ID {
	part := ix.partOf[doc]
	return ix.parts[part].ids[doc-ix.first[part]]
}
