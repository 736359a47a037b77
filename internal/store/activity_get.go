package store

import (
	"context"
	"database/sql"
	"strings"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/problem"
)

// idBounds returns the lowest and the highest id that begin with prefix.
func idBounds(prefix string) (low, high string) {
	const length = 26
	pad := length - len(prefix)
	return prefix + strings.Repeat("0", pad), prefix + strings.Repeat("Z", pad)
}

// Get returns the record whose id begins with prefix.
func (db *DB) Get(ctx context.Context, prefix string) (activity.Record, error) {
	e, err := db.use(ctx)
	if err != nil {
		return activity.Record{}, err
	}
	e.mu.RLock()
	from, to := e.index.firstKey, e.index.nextKey
	e.mu.RUnlock()
	keys, err := e.find(ctx, prefix, from, to)
	if err != nil {
		return activity.Record{}, err
	}
	switch len(keys) {
	case 0:
		return activity.Record{}, problem.Newf(problem.NotFound, "There is no activity %s.", prefix).
			WithHint("See `mcpproxy activity list`; what is past the retention is gone.")
	case 1:
		r, err := readRecord(e.reads.QueryRowContext(ctx, "SELECT entry, outcome FROM activity WHERE key = ?", keys[0]))
		return r, err
	}
	return activity.Record{}, problem.Newf(problem.Ambiguous, "More than one activity begins with %s.", prefix).
		WithHint("Give more of the id.")
}

// find returns the keys of at most two records whose id begins with prefix. Ids
// grow with the keys, so it is a binary search.
func (e *engine) find(ctx context.Context, prefix string, from, to int64) ([]int64, error) {
	low, high := idBounds(prefix)
	var first error
	id := func(key int64) string {
		var got int64
		var id string
		err := e.reads.QueryRowContext(ctx, `SELECT key, CAST(substr(entry, 8, 26) AS TEXT) FROM activity
			WHERE key >= ? AND entry IS NOT NULL ORDER BY key LIMIT 1`, key).Scan(&got, &id)
		if err == sql.ErrNoRows {
			return "~" // after every id
		}
		if err != nil && first == nil {
			first = err
		}
		return id
	}
	for lo, hi := from, to; ; {
		if lo >= hi {
			from = lo
			break
		}
		if mid := lo + (hi-lo)/2; id(mid) < low {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if first != nil {
		return nil, first
	}
	rows, err := e.reads.QueryContext(ctx, `SELECT * FROM (
			SELECT key, CAST(substr(entry, 8, 26) AS TEXT) AS id FROM activity WHERE key >= ? AND entry IS NOT NULL
			ORDER BY key LIMIT 2)
		UNION ALL SELECT key, CAST(substr(outcome, 8, 26) AS TEXT) FROM activity WHERE entry IS NULL`, from)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []int64
	for rows.Next() {
		var key int64
		var id string
		if err := rows.Scan(&key, &id); err != nil {
			return nil, err
		}
		if id >= low && id <= high {
			keys = append(keys, key)
		}
	}
	return keys, rows.Err()
}
