package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// The text index has entries for words and for prefixes. An entry for a prefix consists of the prefix, a mark, and the
// records of all words with this prefix. With it, a search for a prefix that thousands of words share reads only one
// entry. A prefix has an entry if several words continue after it and the entries of these words are large enough. The
// empty prefix always has an entry, at the start of the first page. It marks a segment that has prefix entries.
// Segments of older versions have none until addPrefixesToNextSegment writes them. Until then, searches read the
// entries of all words with the prefix.

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

// nextSegmentWithoutPrefixes selects the next segment of an older version.
const nextSegmentWithoutPrefixes = `SELECT segment FROM activity_segment s
	WHERE segment > ? AND NOT EXISTS (SELECT 1 FROM activity_text t WHERE t.segment = s.segment AND t.first = x'00') ORDER BY segment LIMIT 1`

// addPrefixesToNextSegment rewrites one segment of an older version with prefix entries. It needs only the pages of the
// segment. more reports whether there may be more such segments. The caller must hold tidying.
func (e *sqliteEngine) addPrefixesToNextSegment(ctx context.Context) (more bool, err error) {
	if e.prefixedUpTo == maxKey {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	err = e.writeConn.runTx(ctx, func() error {
		var segment int64
		more, err = firstRow(ctx, e.writeConn, scanTargets{&segment}, nextSegmentWithoutPrefixes, e.prefixedUpTo)
		if err != nil {
			return err
		}
		if !more {
			e.prefixedUpTo = maxKey
			return nil
		}
		e.prefixedUpTo = segment // an unreadable segment is left unchanged
		index := segmentWords{words: map[string]postingList{}}
		var data sql.RawBytes
		if err := eachRow(ctx, e.writeConn, scanTargets{&data}, func() error { return index.addPageWords(data) }, "SELECT data FROM activity_text WHERE segment = ?", segment); err != nil {
			return err
		}
		e.writeConn.write("DELETE FROM activity_text WHERE segment = ?", segment)
		for _, p := range index.encodePages() {
			e.writeConn.write("INSERT INTO activity_text (segment, first, data) VALUES (?, ?, ?)", segment, p.first, p.data)
		}
		return nil
	})
	return more, err
}

// addPageWords adds the words of a page, but not its prefix entries.
func (x *segmentWords) addPageWords(data []byte) error {
	damaged := false
	err := eachPageEntry(data, func(word, records []byte, bitmap bool) bool {
		if isPrefixEntry(word) {
			return true
		}
		p, ok := decodePosting(records, bitmap)
		damaged = !ok
		x.words[string(word)] = p
		return ok
	})
	if err == nil && damaged {
		err = fmt.Errorf("a page of the text index: %w", errDamaged)
	}
	return err
}

func decodePosting(records []byte, isBitmap bool) (p postingList, ok bool) {
	if isBitmap {
		b, err := decodeBitmap(records)
		if err != nil || b == nil {
			return nil, false
		}
		return b.toPostingList(), true
	}
	for at := uint64(0); len(records) > 0; {
		d, k := binary.Uvarint(records)
		if at += d; k <= 0 || at >= chunkSize {
			return nil, false
		}
		p = append(p, uint16(at))
		records = records[k:]
	}
	return p, true
}
