package store

import (
	"context"
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
	low, high := idBounds(prefix)
	keys, err := find(ctx, e.reads, low, high, from, to)
	if err != nil {
		return activity.Record{}, err
	}
	switch len(keys) {
	case 0:
		return activity.Record{}, problem.Newf(problem.NotFound, "There is no activity %s.", prefix).
			WithHint("See `mcpproxy activity list`; what is past the retention is gone.")
	case 1:
		return readRecord(e.reads.QueryRowContext(ctx, selectRecord, keys[0]))
	}
	return activity.Record{}, problem.Newf(problem.Ambiguous, "More than one activity begins with %s.", prefix).
		WithHint("Give more of the id.")
}

// find returns the keys of at most two records whose ids are from low to high.
// Ids grow with the keys from first to before past, so it is a binary search.
func find(ctx context.Context, db querier, low, high string, first, past int64) (keys []int64, err error) {
	for first < past {
		mid := first + (past-first)/2
		_, found, err := idFrom(ctx, db, mid)
		if err != nil {
			return nil, err
		}
		if found < low {
			first = mid + 1
		} else {
			past = mid
		}
	}
	var key int64
	var id string
	err = each(ctx, db, into{&key, &id}, func() error {
		if id >= low && id <= high {
			keys = append(keys, key)
		}
		return nil
	}, `SELECT * FROM (
			SELECT key, CAST(substr(entry, 8, 26) AS TEXT) AS id FROM activity WHERE key >= ? AND entry IS NOT NULL
			ORDER BY key LIMIT 2)
		UNION ALL SELECT key, CAST(substr(outcome, 8, 26) AS TEXT) FROM activity WHERE entry IS NULL`, first)
	return keys, err
}

// idFrom returns the first record from a key on that has an id, which is most of
// them; key -1 and an id after every other one when there is none.
func idFrom(ctx context.Context, db querier, from int64) (key int64, id string, err error) {
	found, err := first(ctx, db, into{&key, &id}, `SELECT key, CAST(substr(entry, 8, 26) AS TEXT) FROM activity
		WHERE key >= ? AND entry IS NOT NULL ORDER BY key LIMIT 1`, from)
	if err == nil && !found {
		return -1, "~", nil
	}
	return key, id, err
}
