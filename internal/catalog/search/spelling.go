package search

import (
	"cmp"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// spellingIndex finds vocabulary words with similar spelling. Words are in buckets by
// first letter and length, so that few are compared.
type spellingIndex struct {
	buckets [][]spellingEntry // 26 × (maxWord + 1)
}

// spellingEntry is a word of the vocabulary.
type spellingEntry struct {
	text    string
	word    uint32
	letters uint32
}

// letterSet returns the set of a word's letters. One mistake changes at most two letters.
func letterSet(word string) (set uint32) {
	for i := range len(word) {
		set |= 1 << (word[i] - 'a')
	}
	return set
}

func (sp *spellingIndex) bucket(first byte, length int) *[]spellingEntry {
	return &sp.buckets[int(first-'a')*(maxWord+1)+length]
}

// similarWord is a similar word with its weight.
type similarWord struct {
	word   string
	weight float32
}

const (
	minSpelling = 4 // shorter words have too many neighbors
	maxSimilar  = 3
)

func newSpellingIndex(vocabulary map[string]uint32) spellingIndex {
	sp := spellingIndex{buckets: make([][]spellingEntry, 26*(maxWord+1))}
	for text, word := range vocabulary {
		if len(text) >= minSpelling-1 && isLowerASCIILetters(text) {
			b := sp.bucket(text[0], len(text))
			*b = append(*b, spellingEntry{text, word, letterSet(text)})
		}
	}
	return sp
}

// possibleFirstLetters returns the letters that the correct word may begin with: the first letter, or the second if the
// first two are swapped.
func possibleFirstLetters(word string) []byte {
	if word[0] == word[1] {
		return []byte{word[0]}
	}
	return []byte{word[0], word[1]}
}

// editDistance returns the number of edits (delete, insert, replace, swap neighbors)
// between a and b, or limit+1 if there are more.
func editDistance(a, b string, limit int) int {
	if a == b {
		return 0
	}
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	var rows [3][maxCompared + 1]uint8
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := 0; j <= len(b); j++ {
		last[j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		row[0] = uint8(i)
		smallest := row[0]
		for j := 1; j <= len(b); j++ {
			cost := uint8(1)
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			smallest = min(smallest, d)
		}
		if int(smallest) > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return int(last[len(b)])
}

const maxCompared = 128 // bytes of a name that NearestNames compares

// NearestNames returns the n names most similar to name, nearest first. Names without
// similarity are omitted.
func NearestNames(name string, among []string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	want := normalizeForSpelling(name)
	limit := max(2, len(want)/3)
	for _, other := range among {
		have := normalizeForSpelling(other)
		d := editDistance(want, have, limit)
		if d > limit && len(want) >= 3 && len(have) >= 3 && (strings.Contains(have, want) || strings.Contains(want, have)) {
			d = limit
		}
		if d <= limit {
			found = append(found, candidate{other, d})
		}
	}
	slices.SortFunc(found, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.name, y.name))
	})
	out := make([]string, 0, min(max(n, 0), len(found)))
	for _, c := range found[:cap(out)] {
		out = append(out, c.name)
	}
	return out
}

// ClosestName returns the most probable correction of a name, or "".
func ClosestName(name string, among []string) string {
	if near := NearestNames(name, among, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// normalizeForSpelling returns a name in lower case with one kind of separator.
func normalizeForSpelling(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '/' || r == ' ' {
			return '_'
		}
		return r
	}, wirejson.ClipText(strings.ToLower(wirejson.ClipText(name, maxCompared)), maxCompared))
}
