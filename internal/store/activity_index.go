package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"mcpproxy/internal/activity"
)

// engine is an open database.
type engine struct {
	path   string
	now    func() time.Time
	writes *sql.DB
	reads  *sql.DB

	writing sync.Mutex // one transaction at a time; guards what follows
	conn    *rawConn
	hashes  map[string]uint64 // what hashValue gave, for values that come again
	stale   bool              // index may not be what is in the file

	mu    sync.RWMutex // guards what follows; changed only with writing held
	index index
	// In the hour from paceBegan on, records may go by age up to key paceEnd.
	paceBegan time.Time
	paceEnd   int64
}

// index is what is kept in memory of the activity: where its records are, and
// the columns of the newest, which are not in a chunk yet.
type index struct {
	firstKey int64 // older records are pruned
	nextKey  int64
	// chunks are those in the database, without a gap; the first is number
	// firstChunk.
	firstChunk int64
	chunks     []chunkInfo
	tail       tail
}

type chunkInfo struct {
	minTime, maxTime int64
	segments         []segment // of the text index, when it is made
}

// segment is a stretch of keys in the text index.
type segment struct{ first, past int64 }

// tail holds the columns of the records from key first on, which is a multiple
// of chunkSize.
type tail struct {
	first   int64
	columns [fields][]uint64
	times   []int64
}

func (t *tail) add(values *[fields]uint64, time int64) {
	for f := range t.columns {
		t.columns[f] = append(t.columns[f], values[f])
	}
	t.times = append(t.times, time)
}

// drop forgets the oldest chunk.
func (t *tail) drop() {
	t.first += chunkSize
	for f := range t.columns {
		t.columns[f] = append([]uint64(nil), t.columns[f][chunkSize:]...)
	}
	t.times = append([]int64(nil), t.times[chunkSize:]...)
}

// pastChunks is the key after the last chunk.
func (x *index) pastChunks() int64 { return (x.firstChunk + int64(len(x.chunks))) * chunkSize }

// hash is hashValue with a memory. writing is held.
func (e *engine) hash(f field, s string) uint64 {
	if s == "" || f == fieldRequest { // requests never come again
		return hashValue(s)
	}
	h, ok := e.hashes[s]
	if !ok {
		const enough = 4096
		if len(e.hashes) >= enough {
			clear(e.hashes)
		}
		h = hashValue(s)
		e.hashes[s] = h
	}
	return h
}

func (e *engine) hashAll(f *activity.Facts) *[fields]uint64 {
	var out [fields]uint64
	for i, v := range valuesOf(f) {
		out[i] = e.hash(field(i), v)
	}
	return &out
}

// load reads the index from the database.
func (e *engine) load(ctx context.Context) error {
	x := index{}
	err := e.reads.QueryRowContext(ctx, "SELECT first_key, next_key FROM activity_position").Scan(&x.firstKey, &x.nextKey)
	if err != nil {
		return err
	}
	if err := e.loadChunks(ctx, &x); err != nil {
		return err
	}
	if err := e.loadSegments(ctx, &x); err != nil {
		return err
	}
	if err := e.loadTail(ctx, &x); err != nil {
		return err
	}
	e.mu.Lock()
	e.index = x
	e.mu.Unlock()
	return nil
}

// reload reads the index again when it may be wrong.
func (e *engine) reload(ctx context.Context) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if !e.stale {
		return nil
	}
	err := e.load(ctx)
	e.stale = err != nil
	return err
}

func (e *engine) loadChunks(ctx context.Context, x *index) error {
	x.firstChunk = x.firstKey / chunkSize
	rows, err := e.reads.QueryContext(ctx, "SELECT chunk, min_time, max_time FROM activity_chunk ORDER BY chunk")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var c chunkInfo
		if err := rows.Scan(&n, &c.minTime, &c.maxTime); err != nil {
			return err
		}
		if len(x.chunks) == 0 {
			x.firstChunk = n
		}
		if n != x.firstChunk+int64(len(x.chunks)) {
			return fmt.Errorf("chunk %d is not in its place: %w", n, errDamaged)
		}
		x.chunks = append(x.chunks, c)
	}
	return rows.Err()
}

func (e *engine) loadSegments(ctx context.Context, x *index) error {
	rows, err := e.reads.QueryContext(ctx, "SELECT segment, past FROM activity_segment ORDER BY segment")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s segment
		if err := rows.Scan(&s.first, &s.past); err != nil {
			return err
		}
		i := s.first/chunkSize - x.firstChunk
		if i < 0 || i >= int64(len(x.chunks)) {
			return fmt.Errorf("segment %d has no chunk: %w", s.first, errDamaged)
		}
		x.chunks[i].segments = append(x.chunks[i].segments, s)
	}
	return rows.Err()
}

// loadTail reads the records that are in no chunk.
func (e *engine) loadTail(ctx context.Context, x *index) error {
	x.tail.first = x.pastChunks()
	rows, err := e.reads.QueryContext(ctx,
		"SELECT key, entry, outcome FROM activity WHERE key >= ? ORDER BY key", x.tail.first)
	if err != nil {
		return err
	}
	defer rows.Close()
	next := x.tail.first
	for rows.Next() {
		var key int64
		var entry, outcome []byte
		if err := rows.Scan(&key, &entry, &outcome); err != nil {
			return err
		}
		for ; next < key && next < x.firstKey; next++ { // pruned
			x.tail.add(&[fields]uint64{}, 0)
		}
		if key != next {
			return fmt.Errorf("record %d is missing: %w", next, errDamaged)
		}
		facts := factsOfRow(entry, outcome)
		x.tail.add(e.hashAll(&facts), facts.Time)
		next++
	}
	for ; next < x.nextKey && next < x.firstKey; next++ { // all pruned
		x.tail.add(&[fields]uint64{}, 0)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if next != x.nextKey {
		return fmt.Errorf("record %d is missing: %w", next, errDamaged)
	}
	return nil
}

// factsOfRow reads what a record is found by from what is stored of it.
func factsOfRow(entry, outcome []byte) activity.Facts {
	return activity.FactsOf(activity.DecodeAny(entry, outcome))
}
