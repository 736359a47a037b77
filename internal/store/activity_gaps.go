package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"time"

	"mcpproxy/internal/store/activity"
)

// chainLink is the sequence number and the hash of an entry of the chain.
type chainLink struct {
	seq  int64
	hash []byte
}

// readChainLinks returns the links of the rows with keys in [from, past) for which want returns true, and the keys of
// these rows.
func readChainLinks(ctx context.Context, t sqlReader, from, past int64, want func(key int64) bool) (out []chainLink, keys []int64, err error) {
	var key int64
	var seq, endSeq sql.NullInt64
	var hash, endHash []byte
	err = t.eachRow(ctx, scanTargets{&key, &seq, &hash, &endSeq, &endHash}, func() error {
		if !want(key) {
			return nil
		}
		keys = append(keys, key)
		if hash != nil {
			out = append(out, chainLink{seq.Int64, hash})
		}
		if endHash != nil {
			out = append(out, chainLink{endSeq.Int64, endHash})
		}
		return nil
	}, "SELECT key, seq, hash, end_seq, end_hash FROM activity WHERE {instance = @instance AND} key >= ? AND key < ?", from, past)
	return out, keys, err
}

// selectCheckpointPosition selects the position before the first entry of all records with a key of at least ?. In
// PostgreSQL, that entry belongs to one of the next activity.MaxBatch records. SQLite has an index of the records
// without a beginning.
var selectCheckpointPosition = "SELECT coalesce(min(first) - 1, (SELECT seq FROM " + ownPosition + `)) FROM (
	{SELECT CASE WHEN entry IS NULL THEN end_seq ELSE seq END AS first FROM activity WHERE instance = @instance AND key >= ? ORDER BY key LIMIT ` + strconv.Itoa(activity.MaxBatch) + `
	|SELECT * FROM (SELECT seq AS first FROM activity WHERE key >= ?1 AND entry IS NOT NULL ORDER BY key LIMIT 1)
	UNION ALL SELECT * FROM (SELECT end_seq FROM activity WHERE key >= ?1 AND entry IS NULL ORDER BY key LIMIT 1)}) AS next`

// writePruneCheckpoint writes a signed checkpoint for the records that are about to be deleted. The checkpoint is at
// the last entry before the first remaining entry. For deleted entries after the checkpoint, which are the ends of long
// calls, the hash is stored in activity_gap.
//
// Records with a beginning are in the order of their beginnings. Ends whose beginnings were pruned are in the order of
// these ends. However, such an end is stored after records that began later in the same transaction. So the first
// remaining entry belongs either to the first record with a beginning or to the first one without.
func writePruneCheckpoint(ctx context.Context, t sqlTx, from, to int64, now time.Time, signer activity.CheckpointSigner) error {
	cut := chainLink{}
	if _, err := t.firstRow(ctx, scanTargets{&cut.seq}, selectCheckpointPosition, to); err != nil {
		return err
	}
	gone, _, err := readChainLinks(ctx, t, from, to, func(int64) bool { return true })
	if err != nil {
		return err
	}
	if err := saveGapHashes(ctx, t, gone); err != nil {
		return err
	}
	found, err := t.firstRow(ctx, scanTargets{&cut.hash}, "SELECT hash FROM activity_gap WHERE {instance = @instance AND} seq = ?", cut.seq)
	if err != nil || !found {
		return err // the last checkpoint is at this position, or the chain was already broken here
	}
	t.write("DELETE FROM activity_gap WHERE {instance = @instance AND} seq <= ?", cut.seq)
	var before int64
	at := activity.SignedCheckpoint{Seq: cut.seq, Time: now, Pruned: true}
	copy(at.Hash[:], cut.hash)
	if _, err := t.firstRow(ctx, scanTargets{&at.Chain, &before},
		"SELECT chain, (SELECT coalesce(sum(records), 0){::bigint} FROM activity_checkpoint{ WHERE instance = @instance}) FROM "+ownPosition); err != nil {
		return err
	}
	if signer != nil {
		at = signer.SignCheckpoint(at)
	}
	t.write("DELETE FROM activity_signed WHERE {instance = @instance AND} (chain <> ? OR seq <= ?)", at.Chain, cut.seq)
	t.write("DELETE FROM activity_checkpoint{ WHERE instance = @instance}")
	t.write("INSERT INTO activity_checkpoint ({instance, }seq, hash, time, records, chain, key, signature) VALUES ({@instance, }?, ?, ?, ?, ?, ?, ?)",
		cut.seq, cut.hash, at.Time.UnixMicro(), before+to-from, at.Chain, at.Key, at.Signature)
	return nil
}

// saveGapHashes stores the hashes of entries that are about to be deleted. For a run of consecutive entries it stores
// only the last hash.
func saveGapHashes(ctx context.Context, t sqlTx, gone []chainLink) error {
	slices.SortFunc(gone, func(a, b chainLink) int { return cmp.Compare(a.seq, b.seq) })
	for i := 0; i < len(gone); {
		from := gone[i].seq
		for i++; i < len(gone) && gone[i].seq-gone[i-1].seq <= 1; i++ {
		}
		if err := saveGapAndMergeNeighbors(ctx, t, from, gone[i-1]); err != nil {
			return err
		}
	}
	return nil
}

// saveGapAndMergeNeighbors stores the hash of the last entry of a run of deleted entries, and merges the run with
// adjacent runs.
func saveGapAndMergeNeighbors(ctx context.Context, t sqlTx, from int64, last chainLink) error {
	var before, after int64
	found, err := t.firstRow(ctx, scanTargets{&before}, "DELETE FROM activity_gap WHERE {instance = @instance AND} seq = ? RETURNING first", from-1)
	if err != nil {
		return err
	}
	if found {
		from = before
	}
	found, err = t.firstRow(ctx, scanTargets{&after}, "UPDATE activity_gap SET first = ? WHERE {instance = @instance AND} first = ? RETURNING seq", from, last.seq+1)
	if err == nil && !found {
		t.write(`INSERT INTO activity_gap ({instance, }seq, hash, first) VALUES ({@instance, }?, ?, ?)
			ON CONFLICT ({instance, }seq) DO UPDATE SET hash = excluded.hash, first = excluded.first`, last.seq, last.hash, from)
	}
	return err
}
