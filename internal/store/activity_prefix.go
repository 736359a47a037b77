package store

import (
	"math/bits"
	"slices"
	"strings"
)

// The text index has entries for words and for prefixes. An entry for a prefix consists of the prefix, a mark, and the
// records of all words with this prefix. With it, a search for a prefix that thousands of words share reads only one
// entry. A prefix has an entry if several words continue after it and the entries of these words are large enough. The
// empty prefix always has an entry, at the start of the first page. It marks a segment that has prefix entries.
// Older versions wrote segments without it; in those, a search reads the entries of all words with the prefix.

const (
	// prefixMark is the last character of a prefix entry. No word contains it.
	prefixMark = "\x00"
	// prefixBytes is the total size of the entries of words from which their prefix gets a separate entry. Smaller
	// groups of words are on one or two pages anyway.
	prefixBytes = pageSize / 2
)

func isPrefixEntry(word []byte) bool { return len(word) > 0 && word[len(word)-1] == prefixMark[0] }

// textIndexEntry is a word or a prefix with its records.
type textIndexEntry struct {
	word    string
	records postingList
}

// pendingPrefix is a prefix of the previous words whose entry is not complete yet.
type pendingPrefix struct {
	size    int // length of the prefix
	word    bool
	bytes   int
	records bitmap
}

func (b *pendingPrefix) mergeChild(c *pendingPrefix) {
	b.bytes += c.bytes
	for i := range b.records {
		b.records[i] |= c.records[i]
	}
}

// toPostingList converts the bitmap to a posting list.
func (b *bitmap) toPostingList() (p postingList) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			p = append(p, uint16(64*i+bits.TrailingZeros64(word)))
		}
	}
	return p
}

// addPrefixEntries returns the entries of sorted words and the entries of their prefixes, in sorted order.
func addPrefixEntries(words []textIndexEntry) []textIndexEntry {
	all := slices.Clone(words)
	open := []pendingPrefix{{}}
	before := ""
	closeTo := func(size int) {
		for last := len(open) - 1; open[last].size > size; last = len(open) - 1 {
			b := open[last]
			if open = open[:last]; open[last-1].size < size {
				open = append(open, pendingPrefix{size: size})
			}
			open[len(open)-1].mergeChild(&b)
			if !b.word && b.bytes >= prefixBytes {
				all = append(all, textIndexEntry{before[:b.size] + prefixMark, b.records.toPostingList()})
			}
		}
	}
	for _, w := range words {
		closeTo(commonPrefixLen(before, w.word))
		const overhead = 2 // the length and the size fields
		one := pendingPrefix{size: len(w.word) + 1, word: true, bytes: len(w.word) + overhead + min(2*len(w.records), bitmapSize)}
		for _, at := range w.records {
			one.records[at/64] |= 1 << (at % 64)
		}
		open, before = append(open, one), w.word
	}
	closeTo(0)
	all = append(all, textIndexEntry{prefixMark, open[0].records.toPostingList()})
	slices.SortFunc(all, func(a, b textIndexEntry) int { return strings.Compare(a.word, b.word) })
	return all
}

func commonPrefixLen(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// pageSeparator returns the shortest prefix of word that sorts after before. It is the first key of a page, so that a
// search for any prefix in the page finds this page.
func pageSeparator(before, word string) []byte {
	return []byte(word[:min(commonPrefixLen(before, word)+1, len(word))])
}
