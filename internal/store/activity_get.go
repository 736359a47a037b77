package store

import (
	"context"
	"database/sql"
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
func (db *SQLite) Get(ctx context.Context, prefix string) (activity.Record, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return activity.Record{}, err
	}
	e.mu.RLock()
	from, to := e.index.firstKey, e.index.nextKey
	e.mu.RUnlock()
	low, high := idBoundsOfPrefix(prefix)
	keys, err := findKeysInIDRange(ctx, e.reads, low, high, from, to)
	if err != nil {
		return activity.Record{}, err
	}
	if err := checkOneFound(len(keys), prefix); err != nil {
		return activity.Record{}, err
	}
	s, err := scanStoredRecord(e.reads.QueryRowContext(ctx, selectStored, keys[0]))
	if err != nil {
		return activity.Record{}, err
	}
	return recordWithChain(&s, func() ([]byte, error) { return previousEntryHash(ctx, e.reads, keys[0], s.Seq) })
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

// recordWithChain returns a record with its position in the chain. The function previous must return the hash of the
// entry before the beginning of the record.
func recordWithChain(s *activity.StoredRecord, previous func() ([]byte, error)) (activity.Record, error) {
	r := activity.DecodeForDisplay(s.Entry, s.Outcome)
	r.Chain = &activity.Chain{Seq: s.Seq, Hash: hex.EncodeToString(s.Hash)}
	if s.EndHash != nil {
		r.Chain.EndSeq, r.Chain.EndHash = s.EndSeq, hex.EncodeToString(s.EndHash)
	}
	if s.Entry == nil {
		return r, nil
	}
	before, err := previous()
	if err == nil && string(activity.HashPayloadAfter(before, s.Entry)) == string(s.Hash) {
		r.Chain.Previous = hex.EncodeToString(before)
	}
	return r, err
}

// selectStored selects the columns that scanStoredRecord scans.
const selectStored = "SELECT seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE key = ?"

func scanStoredRecord(row *sql.Row) (s activity.StoredRecord, err error) {
	var endSeq sql.NullInt64
	err = row.Scan(&s.Seq, &s.Hash, &endSeq, &s.EndHash, &s.Entry, &s.Outcome)
	s.EndSeq = endSeq.Int64
	return s, err
}

// previousEntryHash returns the hash of the entry before the beginning of a record, or nil if it no longer exists. The
// hash may be stored in a checkpoint, in a gap, or in an earlier record, either for its beginning or for its end if the
// calls overlapped.
func previousEntryHash(ctx context.Context, db querier, key, seq int64) (hash []byte, err error) {
	if seq == 1 {
		return make([]byte, len(activity.Hash{})), nil
	}
	for _, query := range []string{
		"SELECT hash FROM activity_checkpoint WHERE seq = ?1",
		"SELECT hash FROM activity_gap WHERE seq = ?1",
		`SELECT CASE seq WHEN ?1 THEN hash ELSE end_hash END FROM activity
			WHERE key < ?2 AND (seq = ?1 AND hash IS NOT NULL OR end_seq = ?1) ORDER BY key DESC LIMIT 1`,
	} {
		args := []any{seq - 1, key}[:1+strings.Count(query, "?2")]
		if found, err := firstRow(ctx, db, scanTargets{&hash}, query, args...); found || err != nil {
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
