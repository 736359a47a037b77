package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// A query makes a selection: one bit for every record. Each filter clears the
// bits of the records that do not have it, from one small row of each chunk of
// 1,024 records. What remains is counted, and the page is read by its keys. So
// every combination of filters costs about the same, and the total is exact.

// want is the values of one field that a filter allows.
type want struct {
	field  field
	hashes []uint64
}

func wants(f *activity.Filter) []want {
	out := wanted(nil, fieldSession, f.SessionID)
	out = wanted(out, fieldRequest, f.RequestID)
	out = wanted(out, fieldTool, f.Tools...)
	out = wanted(out, fieldServer, f.Servers...)
	out = wanted(out, fieldType, f.Types...)
	out = wanted(out, fieldStatus, f.Statuses...)
	out = wanted(out, fieldIntent, f.IntentTypes...)
	out = wanted(out, fieldSensitivity, f.Sensitivities...)
	out = wanted(out, fieldActor, f.Actors...)
	return wanted(out, fieldClient, f.Clients...)
}

func wanted[T ~string](out []want, fd field, values ...T) []want {
	w := want{field: fd}
	for _, v := range values {
		if v != "" {
			w.hashes = append(w.hashes, hashValue(string(v)))
		}
	}
	if len(w.hashes) == 0 {
		return out
	}
	return append(out, w)
}

// List returns the records that f selects.
func (db *DB) List(ctx context.Context, f activity.Filter) (activity.RecordPage, error) {
	before, err := decodeCursor(f.Cursor)
	if err != nil {
		return activity.RecordPage{}, err
	}
	q, err := db.query(ctx, &f)
	if err != nil {
		return activity.RecordPage{}, err
	}
	page := activity.RecordPage{Incomplete: q.incomplete}
	err = q.within(ctx, func(ctx context.Context) (err error) {
		page.Total = q.sel.count()
		keys, more := q.keys(&f, before)
		if page.Records, err = q.records(ctx, keys); err == nil && more {
			page.NextCursor = encodeCursor(keys[len(keys)-1])
		}
		return err
	})
	return page, err
}

// query prepares a query that reads columns beside those of the filter.
func (db *DB) query(ctx context.Context, f *activity.Filter, columns ...field) (*query, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	q := &query{e: e, wants: wants(f), words: parseSearch(f.Search), columns: columns}
	later := slices.DeleteFunc(slices.Clone(columns), func(f field) bool { return f < firstLater })
	if len(f.Clients) > 0 {
		later = append(later, fieldClient)
	}
	for _, prepare := range []struct {
		needed bool
		do     func(context.Context) error
	}{{len(q.words) > 0, e.indexText}, {len(later) > 0, func(ctx context.Context) error { return e.addColumns(ctx, later...) }}} {
		if !prepare.needed {
			continue
		}
		if err := prepare.do(ctx); err != nil && !isOfDisk(err) {
			return nil, err
		} else if err != nil { // what was prepared before can still be found
			q.incomplete = true
		}
	}
	if len(q.words) == 0 && strings.TrimSpace(f.Search) != "" {
		q.wants = append(q.wants, want{}) // there is no word in it: nothing has it
	}
	q.since, q.until = bounds(f.Since, f.Until)
	return q, nil
}

// bounds returns [since, until) in microseconds.
func bounds(since, until time.Time) (int64, int64) {
	from, to := int64(-1<<62), int64(1<<62)
	if !since.IsZero() {
		from = ceilMicro(since)
	}
	if !until.IsZero() {
		to = ceilMicro(until)
	}
	return from, to
}

// ceilMicro rounds up: a record of microsecond n is before n and a half.
func ceilMicro(t time.Time) int64 {
	n := t.UnixMicro()
	if time.UnixMicro(n).Before(t) {
		n++
	}
	return n
}

// query is one query under way.
type query struct {
	e            *engine
	wants        []want
	words        []term
	since, until int64
	incomplete   bool    // the disk did not take what it needs
	columns      []field // that eachBlock gives, beside the time

	tx  *sql.Tx
	sel selection
	// What the index was when the query began. What is in a chunk then is in the
	// database, and stays as it is until it is pruned.
	chunks     []chunkInfo
	firstChunk int64
	tailFirst  int64
	tail       [fields + 1][]uint64 // the columns asked for
}

// within selects, and calls fn while nothing that was selected changes.
func (q *query) within(ctx context.Context, fn func(ctx context.Context) error) error {
	q.begin()
	tx, err := q.e.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	q.tx = tx
	// The driver starts a goroutine for every statement whose context can end.
	done, ctx := ctx, context.WithoutCancel(ctx)
	if err := q.filterChunks(ctx); err != nil {
		return err
	}
	if err := q.filterText(ctx); err != nil {
		return err
	}
	if err := done.Err(); err != nil {
		return err
	}
	return fn(ctx)
}

// begin takes the index as it is and filters the tail, which is in memory.
func (q *query) begin() {
	q.e.mu.RLock()
	defer q.e.mu.RUnlock()
	x := &q.e.index
	q.sel = newSelection(x.firstKey, x.nextKey)
	q.chunks, q.firstChunk, q.tailFirst = slices.Clone(x.chunks), x.firstChunk, x.tail.first
	for i, c := range q.chunks {
		if c.gone != nil {
			words := q.sel.chunk(q.firstChunk + int64(i))
			for j := range words {
				words[j] &^= c.gone[j]
			}
		}
	}
	t := &x.tail
	start := int(max(0, x.firstKey-t.first))
	for i := start; i < len(t.times); i++ {
		if !q.allows(t, i) {
			at := t.first + int64(i) - q.sel.base
			q.sel.words[at/64] &^= 1 << (at % 64)
		}
	}
	q.keepTail(t)
}

func (q *query) inTime(t int64) bool { return q.since <= t && t < q.until }

func (q *query) allows(t *tail, i int) bool {
	if !q.inTime(t.times[i]) {
		return false
	}
	for _, w := range q.wants {
		if !slices.Contains(w.hashes, t.columns[w.field][i]) {
			return false
		}
	}
	return true
}

// filterChunks filters the records that are in chunks.
func (q *query) filterChunks(ctx context.Context) error {
	var partly []int64 // chunks of which only some records are in the time
	for i, c := range q.chunks {
		n := q.firstChunk + int64(i)
		switch {
		case c.maxTime < q.since || c.minTime >= q.until:
			clear(q.sel.chunk(n))
		case c.minTime < q.since || c.maxTime >= q.until:
			partly = append(partly, n)
		}
	}
	for _, w := range q.wants {
		if err := q.filterField(ctx, w); err != nil {
			return err
		}
	}
	for _, n := range partly {
		if err := q.filterTime(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (q *query) filterField(ctx context.Context, w want) error {
	if len(q.chunks) == 0 {
		return nil
	}
	next, past := q.firstChunk, q.firstChunk+int64(len(q.chunks))
	err := eachColumn(ctx, q.tx, w.field, next, past, func(n int64, data []byte) error {
		for ; next < n; next++ { // pruned meanwhile
			clear(q.sel.chunk(next))
		}
		next++
		words := q.sel.chunk(n)
		if none(words) {
			return nil
		}
		c, err := parseColumn(data)
		if err == nil {
			c.filter(w.hashes, words)
		}
		return err
	})
	for ; next < past; next++ {
		clear(q.sel.chunk(next))
	}
	return err
}

func (q *query) filterTime(ctx context.Context, chunk int64) error {
	words := q.sel.chunk(chunk)
	if none(words) {
		return nil
	}
	times, err := readColumn(ctx, q.tx, columnID(fieldTime, chunk))
	if err == sql.ErrNoRows { // pruned meanwhile
		clear(words)
		return nil
	}
	if err != nil {
		return err
	}
	keep(words, func(i int) bool { return q.inTime(int64(times[i])) })
	return nil
}

// keys returns the keys of the page, and whether there are more behind it.
func (q *query) keys(f *activity.Filter, before int64) (keys []int64, more bool) {
	limit, skip := f.BoundedLimit(), max(0, f.Offset)
	if f.Cursor != "" {
		skip = 0
	}
	q.sel.each(before, func(key int64) bool {
		if skip > 0 {
			skip--
			return true
		}
		if len(keys) == limit {
			more = true
			return false
		}
		keys = append(keys, key)
		return true
	})
	return keys, more
}

func (q *query) records(ctx context.Context, keys []int64) ([]activity.Record, error) {
	records := make([]activity.Record, 0, len(keys))
	if len(keys) == 0 {
		return records, nil
	}
	stmt, err := q.tx.PrepareContext(ctx, selectRecord)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	for _, key := range keys {
		r, err := readRecord(stmt.QueryRowContext(ctx, key))
		if err == sql.ErrNoRows { // pruned meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// selectRecord selects what readRecord reads.
const selectRecord = "SELECT entry, outcome FROM activity WHERE key = ?"

func readRecord(row *sql.Row) (activity.Record, error) {
	var entry, outcome []byte
	if err := row.Scan(&entry, &outcome); err != nil {
		return activity.Record{}, err
	}
	return activity.DecodeForDisplay(entry, outcome), nil
}

const noCursor = int64(1) << 62

// A cursor is the key of the last record of a page.
func encodeCursor(key int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{'a'}, uint64(key)))
}

func decodeCursor(s string) (before int64, err error) {
	if s == "" {
		return noCursor, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(data) > 1 && data[0] == 'a' {
		if key, n := binary.Uvarint(data[1:]); n == len(data)-1 && key < uint64(noCursor) {
			return int64(key), nil
		}
	}
	return 0, badCursor(s)
}

func badCursor(s string) error {
	return problem.Newf(problem.InvalidParameter, "Invalid cursor '%s'.", s).
		WithHint("Use next_cursor of the answer before, or leave the cursor out to begin with the newest.").
		With("parameter", "cursor").With("value", s).With("allowed", "next_cursor of an earlier answer")
}
