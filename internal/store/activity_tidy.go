package store

import (
	"context"
	"database/sql"
	"math"
	"time"

	"mcpproxy/internal/store/activity"
)

const (
	// maxUnindexed is how many chunks may wait for the text index even when there
	// is never time: a search would have to make up for all of them.
	maxUnindexed = 256
)

// Tidy does one short piece of work that can wait.
func (db *DB) Tidy(ctx context.Context, now time.Time, keep activity.Retention, idle bool) (more bool, err error) {
	e, err := db.writer(ctx)
	if err != nil {
		return false, err
	}
	if more, err = e.tidy(ctx, now, keep, idle); err == nil && !more {
		err = e.expire(ctx, now.Add(-db.clock.jumped()))
	}
	return more, db.failed(e, err)
}

func (e *engine) tidy(ctx context.Context, now time.Time, keep activity.Retention, idle bool) (more bool, err error) {
	e.tidying.Lock()
	defer e.tidying.Unlock()
	e.mu.RLock()
	there := e.index.kept()
	e.mu.RUnlock()
	if n := there.excess(keep); n > 0 {
		return true, e.pruneRefused(ctx, there.firstRefused, n)
	}
	to, err := e.pruneTo(ctx, now, keep, there)
	if err != nil {
		return false, err
	}
	if to > 0 {
		return true, e.prune(ctx, to, now, keep.Signer)
	}
	if _, n := e.unindexed(); n > 0 && (idle || n > maxUnindexed) {
		return e.indexNext(ctx)
	}
	if idle {
		return e.upgradeText(ctx)
	}
	return false, nil
}

// expire removes results that are past their time, when there are any.
func (e *engine) expire(ctx context.Context, now time.Time) error {
	var n int
	err := e.reads.QueryRowContext(ctx, "SELECT count(*) FROM result WHERE expires <= ?", now.UnixMicro()).Scan(&n)
	if err != nil || n == 0 {
		return err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.conn.tx(ctx, func() error {
		dropExpired(e.conn, now)
		return nil
	})
}

// pruneTo returns the key up to which the next step has to prune; 0 for nothing.
// Number and size are those of what is no refusal.
func (e *engine) pruneTo(ctx context.Context, now time.Time, keep activity.Retention, there kept) (int64, error) {
	e.mu.RLock()
	first, next := e.index.firstKey, e.index.nextKey
	e.mu.RUnlock()
	if first == next {
		return 0, nil
	}
	to := there.firstAlive
	if keep.MaxRecords > 0 {
		to = max(to, first+there.others-keep.MaxRecords)
	}
	if keep.Days > 0 {
		old, err := e.olderThan(ctx, now.AddDate(0, 0, -keep.Days).UnixMicro())
		if err != nil {
			return 0, err
		}
		to = max(to, e.pace.paced(old, first, next))
	}
	if keep.MaxBytes > 0 && to <= first {
		large, err := tooLarge(ctx, e.reads, keep.MaxBytes+refusedCost*there.refusedBytes)
		if err != nil {
			return 0, err
		}
		if large {
			to = first + pruneStep
		}
	}
	if to <= first {
		return 0, nil
	}
	return min(to, first+pruneStep, next), nil
}

// olderThan returns the key of the first record that is not older than the time,
// as far as one step needs it.
func (e *engine) olderThan(ctx context.Context, limit int64) (int64, error) {
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
		raw, err := readColumn(ctx, e.reads, columnID(fieldTime, chunk))
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

// used is how much of the file is in use.
const used = "(page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"

// sizeOfRecords selects how much of the file the records take. The rest goes by
// itself or stays, and no record has to go for it: results expire, the roll-up
// goes with its hours, and the tools are those of the servers. SQLite reads the
// named tables only, and not the file. The pages of large results are not counted
// one by one; all but the last of each are full.
const sizeOfRecords = `SELECT
	- (SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND name = 'activity_hour')
	- (SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND name = 'activity_took')
	- (SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND name = 'tool')
	- (SELECT coalesce(sum(length(body) + 4096), 0) FROM result)
	+ ` + used

// tooLarge reports whether the records take more than limit. That is only looked
// at closely when everything together does.
func tooLarge(ctx context.Context, db *sql.DB, limit int64) (bool, error) {
	var size int64
	err := db.QueryRowContext(ctx, "SELECT "+used).Scan(&size)
	if err == nil && size > limit {
		err = db.QueryRowContext(ctx, sizeOfRecords).Scan(&size)
	}
	return size > limit, err
}

// prune removes the records below key to, and leaves what is needed to verify
// the rest of the chain.
func (e *engine) prune(ctx context.Context, to int64, now time.Time, signer activity.CheckpointSigner) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	from := e.index.firstKey
	firstChunk := min(to/chunkSize, e.index.firstChunk+int64(len(e.index.chunks)))
	err := e.conn.tx(ctx, func() error {
		if err := cutChain(ctx, e.conn, from, to, now, signer); err != nil {
			return err
		}
		e.conn.do("DELETE FROM activity WHERE key < ?", to)
		e.dropChunks(firstChunk)
		oldest, newest := e.index.span(to, firstChunk)
		e.conn.do("DELETE FROM activity_hour WHERE hour < ? OR hour > ?", oldest, newest)
		e.conn.do("DELETE FROM activity_took WHERE hour < ? OR hour > ?", oldest, newest)
		e.conn.do("UPDATE activity_position SET first_key = ?", to)
		return nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used = nil
	x := &e.index
	x.firstKey = to
	x.chunks = append([]chunkInfo(nil), x.chunks[firstChunk-x.firstChunk:]...)
	x.firstChunk = firstChunk
	return nil
}

// span returns the first and the last hour of the records from key on, whose
// chunks begin with firstChunk; none, when there are no records.
func (x *index) span(key, firstChunk int64) (oldest, newest int64) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, c := range x.chunks[firstChunk-x.firstChunk:] {
		first, last = min(first, c.minTime), max(last, c.maxTime)
	}
	for _, t := range x.tail.times[min(max(0, key-x.tail.first), int64(len(x.tail.times))):] {
		first, last = min(first, t), max(last, t)
	}
	return hourOf(first), hourOf(last)
}

// dropChunks removes the chunks before first.
func (e *engine) dropChunks(first int64) {
	for n := e.index.firstChunk; n < first; n++ {
		for f := field(0); f <= fieldTime; f++ {
			e.conn.do("DELETE FROM activity_column WHERE id = ?", columnID(f, n))
		}
	}
	e.dropText(0, first)
	e.conn.do("DELETE FROM activity_chunk WHERE chunk < ?", first)
}
