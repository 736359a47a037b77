package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"unicode/utf8"

	"mcpproxy/internal/store/activity"
)

// The text index is built chunk by chunk, when the log is idle or when a search needs it. Building it takes longer than
// all other work for a record, and most records are never searched. A search reads records directly if they are not in
// a chunk yet.

const (
	// pageSize is the approximate size of a page of words. Even with the largest possible word and its records, a page
	// fits into an index page of SQLite, so one read finds it.
	pageSize = 768
	// segmentBytes limits the memory for the words of a segment.
	segmentBytes = 8 << 20
)

// postingList contains the records with a word, as indexes in the chunk.
type postingList []uint16

// segmentWords collects the words of a segment and their records.
type segmentWords struct {
	words map[string]postingList
	bytes int
}

func (x *segmentWords) addPosting(word []byte, at uint16) {
	p, ok := x.words[string(word)]
	if ok && p[len(p)-1] == at {
		return
	}
	if !ok {
		const overhead = 64
		x.bytes += len(word) + overhead
	}
	x.bytes += 2
	x.words[string(word)] = append(p, at)
}

// textIndexPage contains consecutive words and prefixes of a segment. All of them sort at or after first. The words of
// the previous page sort before it.
type textIndexPage struct {
	first []byte
	data  []byte
}

// encodePages encodes the words and prefixes. For each of them, a page contains its length, its bytes, the size of its
// posting list, and the posting list.
func (x *segmentWords) encodePages() []textIndexPage {
	var words []textIndexEntry
	for _, w := range slices.Sorted(maps.Keys(x.words)) {
		words = append(words, textIndexEntry{w, x.words[w]})
	}
	var out []textIndexPage
	before := ""
	for _, entry := range addPrefixEntries(words) {
		w := entry.word
		// A prefix entry stays on the page of the word that is equal to the prefix.
		if n := len(out); n == 0 || len(out[n-1].data) >= pageSize && w != before+prefixMark {
			out = append(out, textIndexPage{first: pageSeparator(before, w)})
		}
		p := &out[len(out)-1]
		p.data = binary.AppendUvarint(p.data, uint64(len(w)))
		p.data = append(p.data, w...)
		p.data = entry.records.appendTo(p.data)
		before = w
	}
	return out
}

// bitmapSize is the size of a posting list that is encoded as a bitmap of the chunk.
const bitmapSize = chunkSize / 8

// appendTo appends the encoded posting list: the distances between consecutive records, or a bitmap if that is smaller.
// An odd size marks a bitmap.
func (p postingList) appendTo(dst []byte) []byte {
	var list []byte
	before := uint16(0)
	for _, at := range p {
		list = binary.AppendUvarint(list, uint64(at-before))
		before = at
	}
	if len(list) < bitmapSize {
		dst = binary.AppendUvarint(dst, uint64(len(list))<<1)
		return append(dst, list...)
	}
	var b bitmap
	for _, at := range p {
		b[at/64] |= 1 << (at % 64)
	}
	return append(binary.AppendUvarint(dst, bitmapSize<<1|1), b.encode()...)
}

// eachPageEntry calls fn for each word of a page, with its posting list, until fn returns false.
func eachPageEntry(data []byte, fn func(word, records []byte, bitmap bool) (more bool)) error {
	for len(data) > 0 {
		n, k := binary.Uvarint(data)
		if k <= 0 || n > uint64(len(data)-k) {
			return fmt.Errorf("a page of the text index: %w", errDamaged)
		}
		word, rest := data[k:k+int(n)], data[k+int(n):]
		size, k := binary.Uvarint(rest)
		n = size >> 1
		bitmap := size&1 == 1
		if k <= 0 || n > uint64(len(rest)-k) || bitmap && n != bitmapSize {
			return fmt.Errorf("a page of the text index: %w", errDamaged)
		}
		data = rest[k+int(n):]
		if !fn(word, rest[k:k+int(n)], bitmap) {
			return nil
		}
	}
	return nil
}

// setRecordBits sets the bits of the records in an encoded posting list.
func setRecordBits(records []byte, bitmap bool, words []uint64) {
	if bitmap {
		for i := range words {
			words[i] |= binary.LittleEndian.Uint64(records[8*i:])
		}
		return
	}
	for at := uint64(0); len(records) > 0; {
		d, k := binary.Uvarint(records)
		if at += d; k <= 0 || at >= chunkSize {
			return
		}
		words[at/64] |= 1 << (at % 64)
		records = records[k:]
	}
}

// repeatWhileMore calls a step until it reports that there is nothing more to do.
func repeatWhileMore(ctx context.Context, step func(ctx context.Context) (more bool, err error)) error {
	for {
		if more, err := step(ctx); err != nil || !more {
			return err
		}
	}
}

// oldestUnindexedChunk returns the oldest chunk without a text index, and the number of such chunks.
func (e *sqliteEngine) oldestUnindexedChunk() (chunk int64, n int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := len(e.index.chunks) - 1; i >= 0 && !e.index.chunks[i].indexed; i-- {
		chunk = e.index.firstChunk + int64(i)
		n++
	}
	return chunk, n
}

// indexTextOfNextChunk indexes the next chunk, and reports whether there are more.
func (e *sqliteEngine) indexTextOfNextChunk(ctx context.Context) (more bool, err error) {
	if _, n := e.oldestUnindexedChunk(); n == 0 {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	chunk, n := e.oldestUnindexedChunk() // another goroutine may have indexed the chunk
	if n == 0 {
		return false, nil
	}
	if err := e.writeConn.runTx(ctx, func() error { return e.indexChunkText(ctx, chunk) }); err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].indexed = true
	e.mu.Unlock()
	return n > 1, nil
}

// indexChunkText indexes the records of a chunk. It must run in a transaction.
func (e *sqliteEngine) indexChunkText(ctx context.Context, chunk int64) error {
	c := e.writeConn
	return eachTextSegment(ctx, c, max(chunk*chunkSize, e.index.firstKey), (chunk+1)*chunkSize, func(first, past int64, pages []textIndexPage) {
		for _, p := range pages {
			c.write("INSERT INTO activity_text (segment, first, data) VALUES (?, ?, ?)", first, p.first, p.data)
		}
		c.write("INSERT INTO activity_segment (segment, past) VALUES (?, ?)", first, past)
	})
}

// eachTextSegment splits the texts of the records in [first, past) into words. It calls save with the pages of each
// segment. Large texts need several segments.
func eachTextSegment(ctx context.Context, r sqlReader, first, past int64, save func(first, past int64, pages []textIndexPage)) error {
	index, at := segmentWords{words: map[string]postingList{}}, uint16(0)
	s := wordSplitter{emit: func(word []byte, _ bool) { index.addPosting(word, at) }}
	segment := first
	var key int64
	var entry, outcome sql.RawBytes
	err := r.eachRow(ctx, scanTargets{&key, &entry, &outcome}, func() error {
		if index.bytes > segmentBytes {
			save(segment, key, index.encodePages())
			segment, index = key, segmentWords{words: map[string]postingList{}}
		}
		at = uint16(key % chunkSize)
		s.splitRecord(entry, outcome)
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE {instance = @instance AND} key >= ? AND key < ? ORDER BY key", first, past)
	if err == nil {
		save(segment, past, index.encodePages())
	}
	return err
}

// splitRecord splits those texts of a record that a search covers.
func (s *wordSplitter) splitRecord(entry, outcome []byte) {
	activity.EachSearchableText(entry, outcome, s.splitJSON)
}

// deleteTextIndexOfChunks deletes the text index of the chunks in [first, past).
func deleteTextIndexOfChunks(t sqlTx, first, past int64) {
	t.write("DELETE FROM activity_text WHERE {instance = @instance AND} segment >= ? AND segment < ?", first*chunkSize, past*chunkSize)
	t.write("DELETE FROM activity_segment WHERE {instance = @instance AND} segment >= ? AND segment < ?", first*chunkSize, past*chunkSize)
}

// prefixEnd returns a key that sorts after every word with the prefix.
func (t searchTerm) prefixEnd() []byte { return append([]byte(t.word), 0xff) }

// markRecordsOfPage marks the records of a page that contain the term. It reports whether the next page can contain
// more of them.
func (t searchTerm) markRecordsOfPage(data []byte, words []uint64) (more bool, err error) {
	more = t.prefix
	err = eachPageEntry(data, func(word, records []byte, bitmap bool) bool {
		if !t.matches(word) {
			before := string(word) < t.word
			more = more && before
			return before
		}
		setRecordBits(records, bitmap, words)
		if isPrefixEntry(word) { // a prefix entry contains the records of all following words
			more = false
		}
		return more
	})
	return more, err
}

// recordMatcher searches for terms in records that are not indexed.
type recordMatcher struct {
	terms  []searchTerm
	probes [][]byte
	found  uint64
	split  wordSplitter
	lower  []byte
}

func newRecordMatcher(terms []searchTerm) *recordMatcher {
	m := &recordMatcher{terms: terms}
	m.split.emit = func(word []byte, _ bool) {
		for i, t := range m.terms {
			if m.found&(1<<i) == 0 && t.matches(word) {
				m.found |= 1 << i
			}
		}
	}
	for _, t := range terms {
		if p := t.requiredBytes(); p != nil {
			m.probes = append(m.probes, p)
		}
	}
	return m
}

func (m *recordMatcher) matches(entry, outcome []byte) bool {
	if !m.mayMatch(entry, outcome) {
		return false
	}
	m.found = 0
	m.split.splitRecord(entry, outcome)
	return bits.OnesCount64(m.found) == len(m.terms)
}

// mayMatch is a quick test. It returns false only if the record lacks bytes that every match contains.
func (m *recordMatcher) mayMatch(entry, outcome []byte) bool {
	m.lower = m.lower[:0]
	high := byte(0)
	for _, data := range [][]byte{entry, outcome} {
		for _, c := range data {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			high |= c
			m.lower = append(m.lower, c)
		}
	}
	// Letters can be escaped, and the lower case of some letters in other scripts is an ASCII letter.
	if high >= utf8.RuneSelf || bytes.Contains(m.lower, []byte(`\u`)) {
		return true
	}
	for _, p := range m.probes {
		if !bytes.Contains(m.lower, p) {
			return false
		}
	}
	return true
}
