package store

import (
	"context"
	"encoding/hex"
	"strings"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// idBoundsOfPrefix returns the lowest and the highest possible ID with a prefix.
func idBoundsOfPrefix(prefix string) (low, high string) {
	const length = 26
	pad := length - len(prefix)
	return prefix + strings.Repeat("0", pad), prefix + strings.Repeat("Z", pad)
}

// Get returns the record whose ID begins with prefix.
func (s *commonStore) Get(ctx context.Context, prefix string) (r activity.Record, err error) {
	low, high := idBoundsOfPrefix(prefix)
	err = s.db.snapshot(ctx, func(ctx context.Context, db sqlReader) error {
		keys, err := db.keysInIDRange(ctx, low, high)
		if err == nil {
			err = checkOneFound(len(keys), prefix)
		}
		if err != nil {
			return err
		}
		s, err := readStoredRecord(ctx, db, keys[0])
		if err == nil {
			r, err = recordWithChain(ctx, db.ofInstance(keys[0].instance), keys[0].key, &s)
		}
		return err
	})
	return r, err
}

// GetStoredRecord returns the record with an ID in its stored form.
func (s *commonStore) GetStoredRecord(ctx context.Context, id string) (r activity.StoredRecord, err error) {
	err = s.db.snapshot(ctx, func(ctx context.Context, db sqlReader) error {
		_, r, err = findStoredRecord(ctx, db, id)
		return err
	})
	return r, err
}

func findStoredRecord(ctx context.Context, db sqlReader, id string) (k recordKey, r activity.StoredRecord, err error) {
	keys, err := db.keysInIDRange(ctx, id, id)
	if err == nil && len(keys) == 0 {
		err = noActivityError(id)
	}
	if err != nil {
		return k, r, err
	}
	r, err = readStoredRecord(ctx, db, keys[0])
	return keys[0], r, err
}

func readStoredRecord(ctx context.Context, db sqlReader, k recordKey) (r activity.StoredRecord, err error) {
	err = db.eachStoredRecord(ctx, []recordKey{k}, func(_ int64, s *activity.StoredRecord) error { r = *s; return nil })
	return r, err
}

// checkOneFound returns a problem unless exactly one record was found.
func checkOneFound(n int, prefix string) error {
	switch n {
	case 0:
		return noActivityError(prefix)
	case 1:
		return nil
	}
	return problem.Newf(problem.Ambiguous, "More than one activity id begins with %s.", prefix).WithHint("Enter more of the id.")
}

func noActivityError(prefix string) error {
	return problem.Newf(problem.NotFound, "No activity record has the id %s.", prefix).
		WithHint("See `mcpproxy activity list`. Records older than the retention were deleted.")
}

// recordWithChain returns a record with its position in the chain.
func recordWithChain(ctx context.Context, db sqlReader, key int64, s *activity.StoredRecord) (activity.Record, error) {
	r := activity.DecodeForDisplay(s.Entry, s.Outcome)
	r.Chain = &activity.Chain{Seq: s.Seq, Hash: hex.EncodeToString(s.Hash)}
	if s.EndHash != nil {
		r.Chain.EndSeq, r.Chain.EndHash = s.EndSeq, hex.EncodeToString(s.EndHash)
	}
	if s.Entry == nil {
		return r, nil
	}
	before, err := previousEntryHash(ctx, db, key, s.Seq)
	if err == nil && string(activity.HashPayloadAfter(before, s.Entry)) == string(s.Hash) {
		r.Chain.Previous = hex.EncodeToString(before)
	}
	return r, err
}

// selectHashBefore selects the hash of an entry, searching the records before a key. The lowest key to search and
// newestFirst follow.
const (
	selectHashBefore = `SELECT CASE seq WHEN ? THEN hash ELSE end_hash END FROM activity
		WHERE {instance = @instance AND} (seq = ? AND hash IS NOT NULL OR end_seq = ?) AND key < ? AND key >= `
	newestFirst = " ORDER BY key DESC LIMIT 1"
)

// previousEntryHash returns the hash of the entry before the beginning of a record, or nil if it no longer exists. The
// hash may be stored in a checkpoint, in a gap, or in an earlier record, either for its beginning or for its end if the
// calls overlapped.
func previousEntryHash(ctx context.Context, db sqlReader, key, seq int64) (hash []byte, err error) {
	before := seq - 1
	if before == 0 {
		return make([]byte, len(activity.Hash{})), nil
	}
	for _, look := range []struct {
		query  string
		values []any
	}{
		// The entry is usually in one of the nearest records. For so few records, the query is fast with any query plan.
		{selectHashBefore + "?" + newestFirst, []any{before, before, before, key, key - 64}},
		{"SELECT hash FROM activity_checkpoint WHERE {instance = @instance AND} seq = ?", []any{before}},
		{"SELECT hash FROM activity_gap WHERE {instance = @instance AND} seq = ?", []any{before}},
		// PostgreSQL searches only 100,000 records.
		{selectHashBefore + "{?::bigint - 100000|0 * ?}" + newestFirst, []any{before, before, before, key, key}},
	} {
		if found, err := db.firstRow(ctx, scanTargets{&hash}, look.query, look.values...); found || err != nil {
			return hash, err
		}
	}
	return nil, nil
}

// findKeysInIDRange returns the keys of at most two records with IDs in [low, high] and keys in [first, past). IDs
// increase with the keys, so it uses a binary search.
func findKeysInIDRange(ctx context.Context, db querier, low, high string, first, past int64) (keys []int64, err error) {
	for first < past {
		mid := first + (past-first)/2
		_, found, err := firstRecordWithIDFrom(ctx, db, mid)
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
	err = eachRow(ctx, db, scanTargets{&key, &id}, func() error {
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

// firstRecordWithIDFrom returns the key and the ID of the first record that has an ID, starting at the key from. Most
// records have an ID. If there is none, it returns the key -1 and an ID that sorts after all others.
func firstRecordWithIDFrom(ctx context.Context, db querier, from int64) (key int64, id string, err error) {
	found, err := firstRow(ctx, db, scanTargets{&key, &id}, `SELECT key, CAST(substr(entry, 8, 26) AS TEXT) FROM activity
		WHERE key >= ? AND entry IS NOT NULL ORDER BY key LIMIT 1`, from)
	if err == nil && !found {
		return -1, "~", nil
	}
	return key, id, err
}
