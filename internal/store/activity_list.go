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

// A query makes a selection: one bit for every record. Each filter clears the bits of the records
// that do not match, and reads one small row for each chunk of 1,024 records. The remaining bits
// are counted, and the records of the page are read by their keys. So every combination of filters
// costs about the same, and the total is exact.

// fieldCondition lists the values of one field that a filter allows.
type fieldCondition struct {
	field  columnField
	hashes []uint64
}

func fieldConditions(f *activity.Filter) []fieldCondition {
	out := appendFieldCondition(nil, fieldSession, f.SessionID)
	out = appendFieldCondition(out, fieldRequest, f.RequestID)
	out = appendFieldCondition(out, fieldTool, f.Tools...)
	out = appendFieldCondition(out, fieldServer, f.Servers...)
	out = appendFieldCondition(out, fieldType, f.Types...)
	out = appendFieldCondition(out, fieldStatus, f.Statuses...)
	out = appendFieldCondition(out, fieldIntent, f.IntentTypes...)
	out = appendFieldCondition(out, fieldSensitivity, f.Sensitivities...)
	out = appendFieldCondition(out, fieldActor, f.Actors...)
	return appendFieldCondition(out, fieldClient, f.Clients...)
}

// appendFieldCondition adds the condition that a column has one of the values. Empty values do not count.
func appendFieldCondition[T ~string](out []fieldCondition, fd columnField, values ...T) []fieldCondition {
	w := fieldCondition{field: fd}
	for _, v := range values {
		if v != "" {
			w.hashes = append(w.hashes, hashText(string(v)))
		}
	}
	if len(w.hashes) == 0 {
		return out
	}
	return append(out, w)
}

// List returns a page of the records that f selects.
func (db *SQLite) List(ctx context.Context, f activity.Filter) (activity.RecordPage, error) {
	before, err := decodeCursor(f.Cursor)
	if err != nil {
		return activity.RecordPage{}, err
	}
	q, err := db.newQuery(ctx, &f)
	if err != nil {
		return activity.RecordPage{}, err
	}
	page := activity.RecordPage{Incomplete: q.incomplete}
	err = q.runInSnapshot(ctx, func(ctx context.Context) (err error) {
		page.Total = q.sel.count()
		keys, more := q.pageKeys(&f, before)
		page.Records = make([]activity.Record, 0, len(keys))
		if more {
			page.NextCursor = encodeCursor(keys[len(keys)-1])
		}
		return q.eachRecordAt(ctx, keys, func(_ int64, r *activity.Record) { page.Records = append(page.Records, *r) })
	})
	return page, err
}

// query is a transactor's.
func (db *SQLite) query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, q recordQuery) error) (incomplete bool, err error) {
	q, err := db.newQuery(ctx, f, columns...)
	if err != nil {
		return false, err
	}
	return q.incomplete, q.runInSnapshot(ctx, func(ctx context.Context) error { return fn(ctx, q) })
}

// newQuery prepares a query. eachSelectedChunk of the query reads the given columns.
func (db *SQLite) newQuery(ctx context.Context, f *activity.Filter, columns ...columnField) (*activityQuery, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return nil, err
	}
	q := &activityQuery{e: e, conditions: fieldConditions(f), terms: parseSearchTerms(f.Search), columns: columns}
	later := slices.DeleteFunc(slices.Clone(columns), func(f columnField) bool { return f < firstBackfilledField })
	if len(f.Clients) > 0 {
		later = append(later, fieldClient)
	}
	for _, prepare := range []struct {
		needed bool
		do     func(context.Context) error
	}{{len(q.terms) > 0, e.indexTextOfAllChunks}, {len(later) > 0, func(ctx context.Context) error { return e.backfillColumns(ctx, later...) }}} {
		if !prepare.needed {
			continue
		}
		if err := prepare.do(ctx); err != nil && !isDiskError(err) {
			return nil, err
		} else if err != nil { // the query still finds what was prepared before
			q.incomplete = true
		}
	}
	if len(q.terms) == 0 && strings.TrimSpace(f.Search) != "" {
		q.conditions = append(q.conditions, fieldCondition{}) // a search without a word finds nothing
	}
	q.since, q.until = timeBounds(f.Since, f.Until)
	return q, nil
}

// timeBounds returns [since, until) in microseconds.
func timeBounds(since, until time.Time) (int64, int64) {
	from, to := int64(-1<<62), int64(1<<62)
	if !since.IsZero() {
		from = ceilMicroseconds(since)
	}
	if !until.IsZero() {
		to = ceilMicroseconds(until)
	}
	return from, to
}

// ceilMicroseconds rounds up: a record of microsecond n is before n and a half.
func ceilMicroseconds(t time.Time) int64 {
	n := t.UnixMicro()
	if time.UnixMicro(n).Before(t) {
		n++
	}
	return n
}

// activityQuery is the state of one query.
type activityQuery struct {
	e            *sqliteEngine
	conditions   []fieldCondition
	terms        []searchTerm
	since, until int64
	incomplete   bool          // the disk did not accept an index that the query needs
	columns      []columnField // columns that eachSelectedChunk reads, in addition to the time

	tx  *sql.Tx
	sel recordSelection
	// The index when the query began. A chunk in it is in the database and does not change until it
	// is pruned.
	chunks     []chunkInfo
	firstChunk int64
	tailFirst  int64
	tail       [fieldCount + 1][]uint64 // the requested columns of the newest records
}

// runInSnapshot filters the records and calls fn inside the same read transaction.
func (q *activityQuery) runInSnapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	q.snapshotIndex()
	tx, err := q.e.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // read only
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

// snapshotIndex copies the index and filters the tail, which is in memory.
func (q *activityQuery) snapshotIndex() {
	q.e.mu.RLock()
	defer q.e.mu.RUnlock()
	x := &q.e.index
	q.sel = newFullSelection(x.firstKey, x.nextKey)
	q.chunks, q.firstChunk, q.tailFirst = slices.Clone(x.chunks), x.firstChunk, x.tail.first
	for i, c := range q.chunks {
		if c.deleted != nil {
			words := q.sel.chunkBits(q.firstChunk + int64(i))
			for j := range words {
				words[j] &^= c.deleted[j]
			}
		}
	}
	t := &x.tail
	start := int(max(0, x.firstKey-t.first))
	for i := start; i < len(t.times); i++ {
		if !q.tailRecordMatches(t, i) {
			at := t.first + int64(i) - q.sel.base
			q.sel.words[at/64] &^= 1 << (at % 64)
		}
	}
	q.copyTailColumns(t)
}

func (q *activityQuery) isInTimeRange(t int64) bool { return q.since <= t && t < q.until }

func (q *activityQuery) tailRecordMatches(t *tailColumns, i int) bool {
	if !q.isInTimeRange(t.times[i]) {
		return false
	}
	for _, w := range q.conditions {
		if !slices.Contains(w.hashes, t.columns[w.field][i]) {
			return false
		}
	}
	return true
}

// filterChunks filters the records that are in chunks.
func (q *activityQuery) filterChunks(ctx context.Context) error {
	var partly []int64 // chunks that are only partly inside the time range
	for i, c := range q.chunks {
		n := q.firstChunk + int64(i)
		switch {
		case c.maxTime < q.since || c.minTime >= q.until:
			clear(q.sel.chunkBits(n))
		case c.minTime < q.since || c.maxTime >= q.until:
			partly = append(partly, n)
		}
	}
	for _, w := range q.conditions {
		if err := q.filterField(ctx, w); err != nil {
			return err
		}
	}
	for _, n := range partly {
		if err := q.filterChunkTime(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (q *activityQuery) filterField(ctx context.Context, w fieldCondition) error {
	if len(q.chunks) == 0 {
		return nil
	}
	next, past := q.firstChunk, q.firstChunk+int64(len(q.chunks))
	err := eachColumn(ctx, q.tx, w.field, next, past, func(n int64, data []byte) error {
		for ; next < n; next++ { // pruned meanwhile
			clear(q.sel.chunkBits(next))
		}
		next++
		words := q.sel.chunkBits(n)
		if allZero(words) {
			return nil
		}
		c, err := parseColumn(data)
		if err == nil {
			c.deselectUnwantedRecords(w.hashes, words)
		}
		return err
	})
	for ; next < past; next++ {
		clear(q.sel.chunkBits(next))
	}
	return err
}

func (q *activityQuery) filterChunkTime(ctx context.Context, chunk int64) error {
	words := q.sel.chunkBits(chunk)
	if allZero(words) {
		return nil
	}
	times, err := readColumn(ctx, q.tx, columnRowID(fieldTime, chunk))
	if err == sql.ErrNoRows { // pruned meanwhile
		clear(words)
		return nil
	}
	if err != nil {
		return err
	}
	retainBits(words, func(i int) bool { return q.isInTimeRange(int64(times[i])) })
	return nil
}

// pageKeys returns the keys of the page, and whether more records follow.
func (q *activityQuery) pageKeys(f *activity.Filter, before int64) (keys []int64, more bool) {
	limit, skip := f.BoundedLimit(), max(0, f.Offset)
	if f.Cursor != "" {
		skip = 0
	}
	q.sel.eachNewestFirst(before, func(key int64) bool {
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

func (q *activityQuery) eachRecordAt(ctx context.Context, keys []int64, fn func(at int64, r *activity.Record)) error {
	if len(keys) == 0 {
		return nil
	}
	stmt, err := q.tx.PrepareContext(ctx, "SELECT entry, outcome FROM activity WHERE key = ?")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for i, key := range keys {
		var entry, outcome []byte
		err := stmt.QueryRowContext(ctx, key).Scan(&entry, &outcome)
		if err == sql.ErrNoRows { // pruned meanwhile
			continue
		}
		if err != nil {
			return err
		}
		r := activity.DecodeForDisplay(entry, outcome)
		fn(int64(i), &r)
	}
	return nil
}

func (q *activityQuery) repeatsByPosition(ctx context.Context, byID map[string]int64) (map[int64]int64, error) {
	times := map[int64]int64{}
	for id, n := range byID {
		keys, err := findKeysInIDRange(ctx, q.tx, id, id, q.sel.base, q.sel.base+64*int64(len(q.sel.words)))
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			times[key] = n
		}
	}
	return times, nil
}

const maxKey = int64(1) << 62

// encodeCursor encodes the key of the last record of a page.
func encodeCursor(key int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{'a'}, uint64(key)))
}

func decodeCursor(s string) (before int64, err error) {
	if s == "" {
		return maxKey, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(data) > 1 && data[0] == 'a' {
		if key, n := binary.Uvarint(data[1:]); n == len(data)-1 && key < uint64(maxKey) {
			return int64(key), nil
		}
	}
	return 0, cursorError(s)
}

func cursorError(s string) error {
	return problem.Newf(problem.InvalidParameter, "Invalid cursor '%s'.", s).
		WithHint("Use next_cursor of the answer before, or leave the cursor out to begin with the newest.").
		With("parameter", "cursor").With("value", s).With("allowed", "next_cursor of an earlier answer")
}
