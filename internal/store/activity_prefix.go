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

// The text index has entries for words and for prefixes. An entry for a prefix is the prefix, a
// mark, and the records of all words with this prefix. A search for a prefix that thousands of
// words share then reads one entry instead of all words. A prefix gets an entry if words branch
// there and their entries are large enough. The empty prefix always has one, at the start of the
// first page: it shows that a segment has such entries. Segments of older versions have none until
// addPrefixesToNextSegment writes them; until then searches read their words.

const (
	// prefixMark ends a prefix. No word contains it.
	prefixMark = "\x00"
	// prefixBytes is the size of the entries of words from which their prefix gets an entry of its
	// own. Smaller groups are on one or two pages.
	prefixBytes = pageSize / 2
)

func isPrefixEntry(word []byte) bool { return len(word) > 0 && word[len(word)-1] == prefixMark[0] }

// textIndexEntry is a word or a prefix with its records.
type textIndexEntry struct {
	word    string
	records postingList
}

// pendingPrefix is a prefix of the last words, whose entry is not complete yet.
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

// toPostingList returns the records as a list.
func (b *bitmap) toPostingList() (p postingList) {
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			p = append(p, uint16(64*i+bits.TrailingZeros64(word)))
		}
	}
	return p
}

// addPrefixEntries returns the entries of sorted words together with the entries of their prefixes,
// sorted.
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
		const overhead = 2 // the two sizes
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

// pageSeparator returns the shortest prefix of word that sorts after before. As the first key of a
// page it leads every search for a prefix that begins there to this page.
func pageSeparator(before, word string) []byte {
	return []byte(word[:min(commonPrefixLen(before, word)+1, len(word))])
}

// nextSegmentWithoutPrefixes selects the next segment that an older version has written.
const nextSegmentWithoutPrefixes = `SELECT segment FROM activity_segment s
	WHERE segment > ? AND NOT EXISTS (SELECT 1 FROM activity_text t WHERE t.segment = s.segment AND t.first = x'00') ORDER BY segment LIMIT 1`

// addPrefixesToNextSegment rewrites one segment of an older version with its prefixes, from its
// pages alone, and reports whether there may be more. The caller holds tidying.
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
		e.prefixedUpTo = segment // a segment that cannot be read stays as it is
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

// addPageWords adds the words of a page, without its prefixes.
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
