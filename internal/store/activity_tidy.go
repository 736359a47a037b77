package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"mcpproxy/internal/store/activity"
)

const (
	// maxUnindexed limits the number of chunks without a text index if the log is never idle, because a search must
	// index all of them first.
	maxUnindexed = 256
)

// Tidy does one short step of deferred maintenance.
func (db *SQLite) Tidy(ctx context.Context, now time.Time, keep activity.Retention, idle bool) (more bool, err error) {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return false, err
	}
	if more, err = e.tidyStep(ctx, now, keep, idle); err == nil && !more {
		err = e.expireResults(ctx, now.Add(-db.clock.wallClockShift()))
	}
	return more, db.blockWritesOnDamage(e, err)
}

func (e *sqliteEngine) tidyStep(ctx context.Context, now time.Time, keep activity.Retention, idle bool) (more bool, err error) {
	e.tidying.Lock()
	defer e.tidying.Unlock()
	e.mu.RLock()
	there := e.index.countStoredRecords()
	e.mu.RUnlock()
	if n := there.refusalsOverQuota(keep); n > 0 {
		return true, e.pruneRefusals(ctx, there.firstRefused, n)
	}
	var old int64
	if keep.Days > 0 && there.first < there.next {
		if old, err = e.firstKeySince(ctx, now.AddDate(0, 0, -keep.Days).UnixMicro()); err != nil {
			return false, err
		}
	}
	to, err := there.nextPruneKey(keep, old, &e.agePruning, func(limit int64) (bool, error) { return recordsExceedSizeLimit(ctx, e.reads, limit) })
	if err != nil {
		return false, err
	}
	if to > 0 {
		return true, e.pruneRecords(ctx, to, now, keep.Signer)
	}
	if _, n := e.oldestUnindexedChunk(); n > 0 && (idle || n > maxUnindexed) {
		return e.indexTextOfNextChunk(ctx)
	}
	return false, nil
}

// expireResults deletes expired results.
func (e *sqliteEngine) expireResults(ctx context.Context, now time.Time) error {
	var n int
	err := e.reads.QueryRowContext(ctx, "SELECT count(*) FROM result WHERE expires <= ?", now.UnixMicro()).Scan(&n)
	if err != nil || n == 0 {
		return err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.writeConn.runTx(ctx, func() error {
		e.writeConn.write(deleteExpiredResults, now.UnixMicro())
		return nil
	})
}

// nextPruneKey returns the key up to which the next step must prune, or 0 if there is nothing to prune. old is the key
// of the first record within the age limit. The limits of number and size do not count refusals.
func (k *storedRecordCounts) nextPruneKey(keep activity.Retention, old int64, byAge *agePruneLimiter, larger func(limit int64) (bool, error)) (int64, error) {
	if k.first == k.next {
		return 0, nil
	}
	to := k.firstAlive
	if keep.MaxRecords > 0 {
		to = max(to, k.first+k.others-k.shareOfLimit(keep.MaxRecords))
	}
	if keep.Days > 0 {
		to = max(to, byAge.limit(min(old, k.next), k.first, k.next))
	}
	if keep.MaxBytes > 0 && to <= k.first {
		large, err := larger(k.shareOfLimit(keep.MaxBytes) + refusalSizeFactor*k.refusedBytes)
		if err != nil {
			return 0, err
		}
		if large {
			to = k.first + pruneStep
		}
	}
	if to <= k.first {
		return 0, nil
	}
	return min(to, k.first+pruneStep, k.next), nil
}

// firstKeySince returns the key of the first record that is not older than limit, but examines only as many records as
// one step can prune.
func (e *sqliteEngine) firstKeySince(ctx context.Context, limit int64) (int64, error) {
	e.mu.RLock()
	x := &e.index
	first, next := x.firstKey, x.nextKey
	chunk := first / chunkSize
	var times []int64
	sealed := first < x.tail.first
	if sealed {
		if i := chunk - x.firstChunk; x.chunks[i].minTime >= limit {
			e.mu.RUnlock()
			return first, nil
		}
	} else {
		times = x.tail.times[first-x.tail.first:]
	}
	e.mu.RUnlock()
	if sealed {
		raw, err := readColumn(ctx, e.reads, columnRowID(fieldTime, chunk))
		if err != nil {
			return 0, err
		}
		for _, v := range raw[first-chunk*chunkSize:] {
			times = append(times, int64(v))
		}
	}
	for i, t := range times {
		if t >= limit {
			return first + int64(i), nil
		}
	}
	return min(first+int64(len(times)), next), nil
}

// usedBytesExpr is an SQL expression for the number of used bytes in the file.
const usedBytesExpr = "(page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"

// recordBytesQuery selects the number of bytes in the file that the records use. It subtracts the tables that must not
// cause pruning: results expire, hourly counts are deleted by the hour, and tools belong to the servers. SQLite reads
// only these tables, not the whole file. The size of large results is estimated, because all their pages except for the
// last one are full.
const recordBytesQuery = `SELECT
	- (SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND name = 'activity_hour')
	- (SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND name = 'activity_took')
	- (SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND name = 'tool')
	- (SELECT coalesce(sum(length(body) + 4096), 0) FROM result)
	+ ` + usedBytesExpr

// recordsExceedSizeLimit reports whether the records use more than limit bytes. It computes the exact size only if the
// whole file is larger than limit.
func recordsExceedSizeLimit(ctx context.Context, db *sql.DB, limit int64) (bool, error) {
	var size int64
	err := db.QueryRowContext(ctx, "SELECT "+usedBytesExpr).Scan(&size)
	if err == nil && size > limit {
		err = db.QueryRowContext(ctx, recordBytesQuery).Scan(&size)
	}
	return size > limit, err
}

// pruneRecords deletes the records with keys below to. It keeps the data that is needed to verify the rest of the
// chain.
func (e *sqliteEngine) pruneRecords(ctx context.Context, to int64, now time.Time, signer activity.CheckpointSigner) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	from := e.index.firstKey
	firstChunk := min(to/chunkSize, e.index.firstChunk+int64(len(e.index.chunks)))
	err := e.writeConn.runTx(ctx, func() error {
		if err := writePruneCheckpoint(ctx, e.writeConn, from, to, now, signer); err != nil {
			return err
		}
		e.writeConn.write("DELETE FROM activity WHERE key < ?", to)
		e.deleteChunksBefore(firstChunk)
		oldest, newest := e.index.hourRange(to, firstChunk)
		e.writeConn.write("DELETE FROM activity_hour WHERE hour < ? OR hour > ?", oldest, newest)
		e.writeConn.write("DELETE FROM activity_took WHERE hour < ? OR hour > ?", oldest, newest)
		e.writeConn.write("UPDATE activity_position SET first_key = ?", to)
		return nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.toolUse = nil
	x := &e.index
	x.firstKey = to
	x.chunks = append([]chunkInfo(nil), x.chunks[firstChunk-x.firstChunk:]...)
	x.firstChunk = firstChunk
	return nil
}

// hourRange returns the first and the last hour of the records from key on. firstChunk is the first chunk of these
// records. If there are no records, the range is empty.
func (x *activityIndex) hourRange(key, firstChunk int64) (oldest, newest int64) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, c := range x.chunks[firstChunk-x.firstChunk:] {
		first, last = min(first, c.minTime), max(last, c.maxTime)
	}
	for _, t := range x.tail.times[min(max(0, key-x.tail.first), int64(len(x.tail.times))):] {
		first, last = min(first, t), max(last, t)
	}
	return hourOfMicros(first), hourOfMicros(last)
}

// deleteChunksBefore deletes the columns and the text index of the chunks before first.
func (e *sqliteEngine) deleteChunksBefore(first int64) {
	for n := e.index.firstChunk; n < first; n++ {
		for f := columnField(0); f <= fieldTime; f++ {
			e.writeConn.write("DELETE FROM activity_column WHERE id = ?", columnRowID(f, n))
		}
	}
	deleteTextIndexOfChunks(e.writeConn, 0, first)
	e.writeConn.write("DELETE FROM activity_chunk WHERE chunk < ?", first)
}
