package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"mcpproxy/internal/activity"
)

// The text index is made behind the log, chunk by chunk, when there is time, and
// before a search needs it: it costs more than everything else about a record,
// and most records are never searched. What is not in a chunk yet is read.

const (
	// pageSize is how large a page of words gets. A page is read whole.
	pageSize = 2 << 10
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

// page is some words of a segment, in their order.
type page struct {
	first []byte
	data  []byte
}

// pages encodes the words: for each its length, itself, the number of records,
// and the distance of each from the one before.
func (x *segmentIndex) pages() []page {
	var out []page
	for _, w := range slices.Sorted(maps.Keys(x.words)) {
		if n := len(out); n == 0 || len(out[n-1].data) >= pageSize {
			out = append(out, page{first: []byte(w)})
		}
		p := &out[len(out)-1]
		p.data = binary.AppendUvarint(p.data, uint64(len(w)))
		p.data = append(p.data, w...)
		list := x.words[w]
		p.data = binary.AppendUvarint(p.data, uint64(len(list)))
		before := uint16(0)
		for _, at := range list {
			p.data = binary.AppendUvarint(p.data, uint64(at-before))
			before = at
		}
	}
	return out
}

// walk calls fn for each word of a page with its records.
func walk(data []byte, fn func(word, records []byte, n int) error) error {
	for len(data) > 0 {
		size, k := binary.Uvarint(data)
		if k <= 0 || size > uint64(len(data)-k) {
			return fmt.Errorf("a page of the text index: %w", errDamaged)
		}
		word, rest := data[k:k+int(size)], data[k+int(size):]
		n, k := binary.Uvarint(rest)
		if k <= 0 || n > chunkSize {
			return fmt.Errorf("a page of the text index: %w", errDamaged)
		}
		records := rest[k:]
		end := 0
		for range n {
			_, k := binary.Uvarint(records[end:])
			if k <= 0 {
				return fmt.Errorf("a page of the text index: %w", errDamaged)
			}
			end += k
		}
		if err := fn(word, records[:end], int(n)); err != nil {
			return err
		}
		data = records[end:]
	}
	return nil
}

// mark sets the bits of records.
func mark(records []byte, words []uint64) {
	at := uint64(0)
	for len(records) > 0 {
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

// unindexed gives the oldest chunk that is not in the text index, and how many
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

// indexNext indexes one chunk, and says whether there are more.
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
	b := segmentBuilder{e: e, from: max(chunk*chunkSize, e.index.firstKey)}
	b.reset()
	err = e.conn.tx(ctx, func() error { return b.build(ctx, (chunk+1)*chunkSize) })
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].segments = b.done
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

func (b *segmentBuilder) reset() {
	b.index = segmentIndex{words: map[string]posting{}}
}

func (b *segmentBuilder) build(ctx context.Context, past int64) error {
	rows, err := b.e.conn.rows(ctx, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ? ORDER BY key", b.from, past)
	if err != nil {
		return err
	}
	defer rows.Close()
	at := uint16(0)
	s := splitter{emit: func(word []byte, _ bool) { b.index.add(word, at) }}
	var entry, outcome sql.RawBytes
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key, &entry, &outcome); err != nil {
			return err
		}
		if b.index.bytes > segmentBytes {
			if err := b.save(key); err != nil {
				return err
			}
		}
		at = uint16(key % chunkSize)
		if err := s.record(entry, outcome); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return b.save(past)
}

// record splits what a search looks at.
func (s *splitter) record(entry, outcome []byte) error {
	r, err := activity.Decode(entry, outcome)
	if err != nil {
		return err
	}
	s.json(r.Arguments)
	s.json(r.Response)
	s.text([]byte(r.ErrorMessage))
	s.text([]byte(r.Metadata.Detail))
	if r.Metadata.Intent != nil {
		s.text([]byte(r.Metadata.Intent.Reason))
	}
	return nil
}

// save stores the segment that ends before key past.
func (b *segmentBuilder) save(past int64) error {
	c := b.e.conn
	for _, p := range b.index.pages() {
		if err := c.exec("INSERT INTO activity_text (segment, first, data) VALUES (?, ?, ?)", b.from, p.first, p.data); err != nil {
			return err
		}
	}
	if err := c.exec("INSERT INTO activity_segment (segment, past) VALUES (?, ?)", b.from, past); err != nil {
		return err
	}
	b.done = append(b.done, segment{b.from, past})
	b.from = past
	b.reset()
	return nil
}

// filterText clears the records that do not have all the words.
func (q *query) filterText(ctx context.Context) error {
	if len(q.words) == 0 {
		return nil
	}
	t, err := newTextReader(ctx, q.tx)
	if err != nil {
		return err
	}
	defer t.close()
	for i, c := range q.chunks {
		n := q.firstChunk + int64(i)
		words := q.sel.chunk(n)
		if none(words) {
			continue
		}
		if c.segments == nil {
			err = q.scan(ctx, max(n*chunkSize, q.sel.base), (n+1)*chunkSize)
		} else {
			err = t.filter(ctx, c.segments, q.words, words)
		}
		if err != nil {
			return err
		}
	}
	return q.scan(ctx, q.tailFirst, noCursor)
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
	rows, err := q.tx.QueryContext(ctx, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ?", low, to)
	if err != nil {
		return err
	}
	defer rows.Close()
	m := newMatcher(q.words)
	var entry, outcome sql.RawBytes
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key, &entry, &outcome); err != nil {
			return err
		}
		at := key - q.sel.base
		if at >= 64*int64(len(q.sel.words)) || q.sel.words[at/64]&(1<<(at%64)) == 0 {
			continue
		}
		ok, err := m.matches(entry, outcome)
		if err != nil {
			return err
		}
		if !ok {
			q.sel.words[at/64] &^= 1 << (at % 64)
		}
	}
	return rows.Err()
}

// matcher looks for terms in records that are not indexed.
type matcher struct {
	terms []term
	found uint64
	split splitter
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
	return m
}

func (m *matcher) matches(entry, outcome []byte) (bool, error) {
	m.found = 0
	if err := m.split.record(entry, outcome); err != nil {
		return false, err
	}
	return bits.OnesCount64(m.found) == len(m.terms), nil
}

// textReader looks words up in segments.
type textReader struct {
	page *sql.Stmt // the page where a word must be
	next *sql.Stmt // the pages after it
}

func newTextReader(ctx context.Context, tx *sql.Tx) (*textReader, error) {
	page, err := tx.PrepareContext(ctx,
		"SELECT data FROM activity_text WHERE segment = ? AND first <= ? ORDER BY first DESC LIMIT 1")
	if err != nil {
		return nil, err
	}
	next, err := tx.PrepareContext(ctx,
		"SELECT first, data FROM activity_text WHERE segment = ? AND first > ? ORDER BY first")
	if err != nil {
		page.Close()
		return nil, err
	}
	return &textReader{page, next}, nil
}

func (t *textReader) close() {
	t.page.Close()
	t.next.Close()
}

// filter clears the bits of a chunk's records that do not have all the terms.
func (t *textReader) filter(ctx context.Context, segments []segment, terms []term, sel []uint64) error {
	for _, term := range terms {
		var have [chunkWords]uint64
		for _, s := range segments {
			if err := t.lookUp(ctx, s, term, have[:]); err != nil {
				return err
			}
		}
		for i := range sel {
			sel[i] &= have[i]
		}
		if none(sel) {
			return nil
		}
	}
	return nil
}

func (t *textReader) lookUp(ctx context.Context, s segment, want term, have []uint64) error {
	look := func(word, records []byte, _ int) error {
		if want.matches(word) {
			mark(records, have)
		}
		return nil
	}
	var data sql.RawBytes
	rows, err := t.page.QueryContext(ctx, s.first, []byte(want.word))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&data); err != nil {
			return err
		}
		if err := walk(data, look); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil || !want.prefix {
		return err
	}
	return t.lookOn(ctx, s, want, look)
}

// lookOn goes through the pages behind the first that a prefix can be on.
func (t *textReader) lookOn(ctx context.Context, s segment, want term, look func(word, records []byte, n int) error) error {
	rows, err := t.next.QueryContext(ctx, s.first, []byte(want.word))
	if err != nil {
		return err
	}
	defer rows.Close()
	var first, data sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&first, &data); err != nil {
			return err
		}
		if !bytes.HasPrefix(first, []byte(want.word)) && cmp.Compare(string(first), want.word) > 0 {
			break
		}
		if err := walk(data, look); err != nil {
			return err
		}
	}
	return rows.Err()
}
