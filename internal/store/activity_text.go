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

// The text index is made behind the log, chunk by chunk, when there is time, and
// before a search needs it: it costs more than everything else about a record,
// and most records are never searched. What is not in a chunk yet is read.

const (
	// pageSize is how large a page of words gets, about. With the largest word
	// and its records behind it, it still fits into the page of an index of
	// SQLite, and is found with one read.
	pageSize = 768
	// segmentBytes bounds the memory that the words of a segment take.
	segmentBytes = 8 << 20
)

// posting is where a word occurs: records of a segment, by their place in the
// chunk.
type posting []uint16

// segmentIndex collects the words of a segment.
type segmentIndex struct {
	words map[string]posting
	bytes int
}

func (x *segmentIndex) add(word []byte, at uint16) {
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

// page is some words and prefixes of a segment, in their order. All are from first on, and
// those of the page before are not.
type page struct {
	first []byte
	data  []byte
}

// pages encodes the words and prefixes: for each its length, itself, the size of its
// records, and these.
func (x *segmentIndex) pages() []page {
	var words []textEntry
	for _, w := range slices.Sorted(maps.Keys(x.words)) {
		words = append(words, textEntry{w, x.words[w]})
	}
	var out []page
	before := ""
	for _, entry := range withPrefixes(words) {
		w := entry.word
		// A prefix stays with the word that is the same.
		if n := len(out); n == 0 || len(out[n-1].data) >= pageSize && w != before+prefixMark {
			out = append(out, page{first: separator(before, w)})
		}
		p := &out[len(out)-1]
		p.data = binary.AppendUvarint(p.data, uint64(len(w)))
		p.data = append(p.data, w...)
		p.data = entry.records.append(p.data)
		before = w
	}
	return out
}

// bitmapSize is the size of records as one bit for each of the chunk.
const bitmapSize = chunkSize / 8

// append encodes the records: as the distance of each from the one before, or as
// a bitmap (then the size is odd) where that is smaller.
func (p posting) append(dst []byte) []byte {
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

// walk calls fn for each word of a page with its records, until it says stop.
func walk(data []byte, fn func(word, records []byte, bitmap bool) (more bool)) error {
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

// mark sets the bits of records.
func mark(records []byte, bitmap bool, words []uint64) {
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

// indexText brings the text index up to the newest chunk.
func (e *engine) indexText(ctx context.Context) error {
	for {
		if more, err := e.indexNext(ctx); err != nil || !more {
			return err
		}
	}
}

// unindexed returns the oldest chunk that is not in the text index, and how many
// there are.
func (e *engine) unindexed() (chunk int64, n int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := len(e.index.chunks) - 1; i >= 0 && e.index.chunks[i].segments == nil; i-- {
		chunk = e.index.firstChunk + int64(i)
		n++
	}
	return chunk, n
}

// indexNext indexes one chunk, and reports whether there are more.
func (e *engine) indexNext(ctx context.Context) (more bool, err error) {
	if _, n := e.unindexed(); n == 0 {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	chunk, n := e.unindexed() // somebody may have been faster
	if n == 0 {
		return false, nil
	}
	var segments []segment
	err = e.conn.tx(ctx, func() (err error) {
		segments, err = e.indexChunk(ctx, chunk)
		return err
	})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].segments = segments
	e.mu.Unlock()
	return n > 1, nil
}

// segmentBuilder indexes a chunk, in more than one segment when its texts are
// large.
type segmentBuilder struct {
	e     *engine
	from  int64
	index segmentIndex
	done  []segment
}

// indexChunk indexes the records of a chunk, in a transaction.
func (e *engine) indexChunk(ctx context.Context, chunk int64) ([]segment, error) {
	b := segmentBuilder{e: e, from: max(chunk*chunkSize, e.index.firstKey), index: segmentIndex{words: map[string]posting{}}}
	past := (chunk + 1) * chunkSize
	at := uint16(0)
	s := splitter{emit: func(word []byte, _ bool) { b.index.add(word, at) }}
	var key int64
	var entry, outcome sql.RawBytes
	err := each(ctx, e.conn, into{&key, &entry, &outcome}, func() error {
		if b.index.bytes > segmentBytes {
			b.save(key)
		}
		at = uint16(key % chunkSize)
		s.record(entry, outcome)
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ? ORDER BY key", b.from, past)
	if err != nil {
		return nil, err
	}
	b.save(past)
	return b.done, nil
}

// record splits what a search looks at.
func (s *splitter) record(entry, outcome []byte) { activity.EachSearchText(entry, outcome, s.json) }

// save stores the segment that ends before key past.
func (b *segmentBuilder) save(past int64) {
	c := b.e.conn
	for _, p := range b.index.pages() {
		c.do("INSERT INTO activity_text (segment, first, data) VALUES (?, ?, ?)", b.from, p.first, p.data)
	}
	c.do("INSERT INTO activity_segment (segment, past) VALUES (?, ?)", b.from, past)
	b.done = append(b.done, segment{b.from, past})
	b.from, b.index = past, segmentIndex{words: map[string]posting{}}
}

// dropText removes the chunks in [first, past) from the text index.
func (e *engine) dropText(first, past int64) {
	for _, q := range []string{
		"DELETE FROM activity_text WHERE segment >= ? AND segment < ?",
		"DELETE FROM activity_segment WHERE segment >= ? AND segment < ?",
	} {
		e.conn.do(q, first*chunkSize, past*chunkSize)
	}
}

// filterText clears the records that do not have all the words.
func (q *query) filterText(ctx context.Context) error {
	if len(q.words) == 0 {
		return nil
	}
	for _, w := range q.words {
		if err := q.filterWord(ctx, w); err != nil {
			return err
		}
	}
	for i, c := range q.chunks {
		if c.segments != nil {
			continue
		}
		n := (q.firstChunk + int64(i)) * chunkSize
		if err := q.scan(ctx, n, n+chunkSize); err != nil {
			return err
		}
	}
	return q.scan(ctx, q.tailFirst, noCursor)
}

// indexed returns the part of the text index that the query has to look at.
func (q *query) indexed() (first, past int64, ok bool) {
	for i, c := range q.chunks {
		n := q.firstChunk + int64(i)
		if c.segments == nil || none(q.sel.chunk(n)) {
			continue
		}
		if !ok {
			first, ok = n*chunkSize, true
		}
		past = (n + 1) * chunkSize
	}
	return first, past, ok
}

// The page of each segment where a word must be, or the first words with a prefix; and the
// pages of a segment behind it that can have more of these.
const (
	pagesOfWord = `SELECT segment, (SELECT data FROM activity_text t
			WHERE t.segment = s.segment AND first <= ? ORDER BY first DESC LIMIT 1)
		FROM activity_segment s WHERE segment >= ? AND segment < ?`
	pagesOfPrefix = "SELECT data FROM activity_text WHERE segment = ? AND first > ? AND first < ?"
)

// filterWord clears the records of indexed chunks that do not have a word.
func (q *query) filterWord(ctx context.Context, want term) error {
	first, past, ok := q.indexed()
	if !ok {
		return nil
	}
	have := newSelection(first, past)
	clear(have.words)
	if err := q.markWord(ctx, have, want, first, past); err != nil {
		return err
	}
	for i, c := range q.chunks {
		n := q.firstChunk + int64(i)
		if c.segments == nil {
			continue
		}
		words := q.sel.chunk(n)
		for j, w := range have.chunk(n) {
			words[j] &= w
		}
	}
	return nil
}

// markWord marks the records of segments in [first, past) that have a word.
func (q *query) markWord(ctx context.Context, have selection, want term, first, past int64) error {
	var further []int64 // segments with pages behind that can have more
	var segment int64
	var data sql.RawBytes
	err := each(ctx, q.tx, into{&segment, &data}, func() error {
		more, err := want.markPage(data, have.chunk(segment/chunkSize))
		if more {
			further = append(further, segment)
		}
		return err
	}, pagesOfWord, []byte(want.word), first, past)
	if err != nil || len(further) == 0 {
		return err
	}
	stmt, err := q.tx.PrepareContext(ctx, pagesOfPrefix)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, segment := range further {
		if err := q.markFurther(ctx, stmt, have, want, segment); err != nil {
			return err
		}
	}
	return nil
}

// markFurther marks the records that have a prefix by the pages behind its first.
func (q *query) markFurther(ctx context.Context, stmt *sql.Stmt, have selection, want term, segment int64) error {
	rows, err := stmt.QueryContext(ctx, segment, []byte(want.word), want.end())
	if err != nil {
		return err
	}
	defer rows.Close()
	var data sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&data); err != nil {
			return err
		}
		if _, err := want.markPage(data, have.chunk(segment/chunkSize)); err != nil {
			return err
		}
	}
	return rows.Err()
}

// end is behind every word with the prefix.
func (t term) end() []byte { return append([]byte(t.word), 0xff) }

// markPage marks the records of a page that have the term, and reports whether the next page
// can have more.
func (t term) markPage(data []byte, words []uint64) (more bool, err error) {
	more = t.prefix
	err = walk(data, func(word, records []byte, bitmap bool) bool {
		if !t.matches(word) {
			before := string(word) < t.word
			more = more && before
			return before
		}
		mark(records, bitmap, words)
		if isPrefixEntry(word) { // it has the records of all that follow
			more = false
		}
		return more
	})
	return more, err
}

// scan reads the selected records with keys in [from, to).
func (q *query) scan(ctx context.Context, from, to int64) error {
	low := int64(-1)
	q.sel.each(to, func(key int64) bool {
		if key >= from {
			low = key
		}
		return key >= from
	})
	if low < 0 {
		return nil
	}
	m := newMatcher(q.words)
	var key int64
	var entry, outcome sql.RawBytes
	return each(ctx, q.tx, into{&key, &entry, &outcome}, func() error {
		at := key - q.sel.base
		if at < 64*int64(len(q.sel.words)) && q.sel.words[at/64]&(1<<(at%64)) != 0 && !m.matches(entry, outcome) {
			q.sel.words[at/64] &^= 1 << (at % 64)
		}
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ?", low, to)
}

// matcher looks for terms in records that are not indexed.
type matcher struct {
	terms  []term
	probes [][]byte
	found  uint64
	split  splitter
	lower  []byte
}

func newMatcher(terms []term) *matcher {
	m := &matcher{terms: terms}
	m.split.emit = func(word []byte, _ bool) {
		for i, t := range m.terms {
			if m.found&(1<<i) == 0 && t.matches(word) {
				m.found |= 1 << i
			}
		}
	}
	for _, t := range terms {
		if p := t.probe(); p != nil {
			m.probes = append(m.probes, p)
		}
	}
	return m
}

func (m *matcher) matches(entry, outcome []byte) bool {
	if !m.possible(entry, outcome) {
		return false
	}
	m.found = 0
	m.split.record(entry, outcome)
	return bits.OnesCount64(m.found) == len(m.terms)
}

// possible tells in a fraction of the time of taking it apart that a record
// cannot match: it does not even have the bytes.
func (m *matcher) possible(entry, outcome []byte) bool {
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
	// Letters can be written as escapes, and some of other scripts have an ASCII
	// letter for their lower case.
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
