package store

import (
	"context"
	"database/sql"
	"errors"
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

// find returns the keys of at most two records whose id begins with prefix.
func (e *engine) find(ctx context.Context, prefix string, from, to int64) (keys []int64, err error) {
	low, high := idBounds(prefix)
	from, err = firstOf(low, from, to, func(key int64) (int64, string, error) {
		return idFrom(e.reads.QueryRowContext(ctx, selectID, key))
	})
	if err != nil {
		return nil, err
	}
	var key int64
	var id string
	err = each(ctx, e.reads, into{&key, &id}, func() error {
		if id >= low && id <= high {
			keys = append(keys, key)
		}
		return nil
	}, `SELECT * FROM (
			SELECT key, CAST(substr(entry, 8, 26) AS TEXT) AS id FROM activity WHERE key >= ? AND entry IS NOT NULL
			ORDER BY key LIMIT 2)
		UNION ALL SELECT key, CAST(substr(outcome, 8, 26) AS TEXT) FROM activity WHERE entry IS NULL`, from)
	return keys, err
}

// selectID finds the first record from a key on that has an id, which is most of
// them.
const selectID = `SELECT key, CAST(substr(entry, 8, 26) AS TEXT) FROM activity
	WHERE key >= ? AND entry IS NOT NULL ORDER BY key LIMIT 1`

// idFrom returns the record that selectID has found; key -1 and an id after every
// other one when there is none.
func idFrom(row *sql.Row) (key int64, id string, err error) {
	err = row.Scan(&key, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return -1, "~", nil
	}
	return key, id, err
}

// firstOf returns the first key in [from, to) at which look finds an id that is
// not below id. Ids grow with the keys, so it is a binary search.
func firstOf(id string, from, to int64, look func(key int64) (int64, string, error)) (int64, error) {
	for from < to {
		mid := from + (to-from)/2
		_, found, err := look(mid)
		if err != nil {
			return 0, err
		}
		if found < id {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from, nil
}
