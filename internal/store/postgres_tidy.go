package store

import (
	"context"
	"time"

	"mcpproxy/internal/store/activity"
)

// pgStoredRecordCounts counts the stored records of an instance, and its share of all instances.
type pgStoredRecordCounts struct {
	first, next, sealed        int64
	refused, others            int64
	refusedBytes, bytes        int64
	firstRefused, refusedThere int64 // the oldest chunk with refusals (-1: none), and how many it has
	firstAlive                 int64
	share                      float64 // share of the records of all instances
}

// Tidy does one short step of maintenance that can wait. Each instance prunes its own records; its
// part of the limits is its share of all records. The records of an instance that no longer exists
// are deleted together when they are too old.
func (db *Postgres) Tidy(ctx context.Context, now time.Time, keep activity.Retention, idle bool) (more bool, err error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return false, err
	}
	var k pgStoredRecordCounts
	var unindexed int64
	var old int64
	err = db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) (err error) {
		if k, err = pgCountStoredRecords(ctx, c, e.instance); err != nil {
			return err
		}
		if _, err = c.firstRow(ctx, scanTargets{&unindexed}, "SELECT count(*) FROM activity_chunk WHERE NOT indexed"); err != nil {
			return err
		}
		if keep.Days > 0 {
			old, err = pgFirstKeySince(ctx, c, e.instance, k.first, now.AddDate(0, 0, -keep.Days).UnixMicro())
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if n := k.refusalsOverQuota(keep); n > 0 {
		return true, e.pruneRefusals(n, &k)
	}
	if to := e.nextPruneKey(old, keep, &k); to > 0 {
		return true, e.pruneRecords(to, now, keep.Signer)
	}
	if unindexed > 0 && (idle || unindexed > maxUnindexed) {
		return db.indexTextOfNextChunk(ctx)
	}
	if idle && !e.allPrefixed.Load() {
		return db.addPrefixesToNextSegment(ctx)
	}
	return false, e.deleteOldResultsAndInstances(now.Add(-db.clock.wallClockShift()), keep)
}

// pgCountStoredRecords counts the stored records of an instance.
func pgCountStoredRecords(ctx context.Context, c *pgConn, instance int64) (k pgStoredRecordCounts, err error) {
	if _, err := c.firstRow(ctx, scanTargets{&k.first, &k.next, &k.sealed}, "SELECT first_key, next_key, sealed FROM instance WHERE id = $1", instance); err != nil {
		return k, err
	}
	k.firstRefused, k.firstAlive = -1, -1
	all := k.next - k.first
	var chunk, size, refused, refusedBytes int64
	var data []byte
	if err := c.eachRow(ctx, scanTargets{&chunk, &size, &refused, &refusedBytes, &data}, func() error {
		gone, err := decodeBitmap(data)
		if err != nil {
			return err
		}
		from := max(0, k.first-chunk*chunkSize)
		all -= gone.countFrom(from)
		if k.bytes += size * (chunkSize - min(from, chunkSize)) / chunkSize; refused > 0 {
			k.refused, k.refusedBytes = k.refused+refused, k.refusedBytes+refusedBytes
			if k.firstRefused < 0 {
				k.firstRefused, k.refusedThere = chunk, refused
			}
		}
		for at := from; k.firstAlive < 0 && at < chunkSize; at++ {
			if !gone.has(int(at)) {
				k.firstAlive = chunk*chunkSize + at
			}
		}
		return nil
	}, "SELECT chunk, bytes, refused, refused_bytes, gone FROM activity_chunk WHERE instance = $1 ORDER BY chunk", instance); err != nil {
		return k, err
	}
	if k.firstAlive < 0 {
		k.firstAlive = k.first
	}
	var tailBytes, tailRefused, tailRefusedBytes, total int64
	if _, err := c.firstRow(ctx, scanTargets{&tailBytes, &tailRefused, &tailRefusedBytes}, `SELECT coalesce(sum(n), 0)::bigint, count(*) FILTER (WHERE refused), coalesce(sum(n) FILTER (WHERE refused), 0)::bigint
		FROM (SELECT coalesce(octet_length(entry), 0) + coalesce(octet_length(outcome), 0) AS n, type = $3 AS refused FROM activity WHERE instance = $1 AND key >= $2) AS tail`,
		instance, k.sealed*chunkSize, string(activity.PolicyDecision)); err != nil {
		return k, err
	}
	k.bytes, k.refused, k.refusedBytes = k.bytes+tailBytes, k.refused+tailRefused, k.refusedBytes+tailRefusedBytes
	k.others = all - k.refused
	if _, err := c.firstRow(ctx, scanTargets{&total}, "SELECT coalesce(sum(next_key - first_key), 0)::bigint FROM instance"); err != nil {
		return k, err
	}
	if k.share = 1; total > k.next-k.first {
		k.share = float64(k.next-k.first) / float64(total)
	}
	return k, nil
}

// instanceShareOfLimit returns the part of a limit that belongs to this instance.
func (k *pgStoredRecordCounts) instanceShareOfLimit(all int64) int64 {
	return int64(float64(all) * k.share)
}

// refusalsOverQuota returns how many of the oldest refusals exceed their quota. Those that are not
// in a chunk yet stay.
func (k *pgStoredRecordCounts) refusalsOverQuota(keep activity.Retention) int64 {
	if k.firstRefused < 0 {
		return 0
	}
	over := int64(0)
	if keep.MaxRecords > 0 {
		over = k.refused - max(minRefusals, k.instanceShareOfLimit(keep.MaxRecords)/refusalShareDivisor)
	}
	if keep.MaxBytes > 0 && refusalSizeFactor*k.refusedBytes > k.instanceShareOfLimit(keep.MaxBytes)/refusalShareDivisor {
		over = max(over, chunkSize)
	}
	return max(0, over)
}

// pgFirstKeySince returns the key of the first record that is not older than limit, within what one
// step can prune.
func pgFirstKeySince(ctx context.Context, c *pgConn, instance, first, limit int64) (key int64, err error) {
	past := first + pruneStep
	found, err := c.firstRow(ctx, scanTargets{&key}, "SELECT key FROM activity WHERE instance = $1 AND key >= $2 AND key < $3 AND time >= $4 ORDER BY key LIMIT 1",
		instance, first, past, limit)
	if err == nil && !found {
		return past, nil
	}
	return key, err
}

// nextPruneKey returns the key before which the next step prunes; 0 if there is nothing to prune.
// The limits of number and size do not count refusals.
func (e *pgEngine) nextPruneKey(old int64, keep activity.Retention, k *pgStoredRecordCounts) int64 {
	if k.first == k.next {
		return 0
	}
	to := k.firstAlive
	if keep.MaxRecords > 0 {
		to = max(to, k.first+k.others-k.instanceShareOfLimit(keep.MaxRecords))
	}
	if keep.Days > 0 {
		to = max(to, e.agePruning.limit(min(old, k.next), k.first, k.next))
	}
	if keep.MaxBytes > 0 && to <= k.first && k.bytes > k.instanceShareOfLimit(keep.MaxBytes)+refusalSizeFactor*k.refusedBytes {
		to = k.first + pruneStep
	}
	if to <= k.first {
		return 0
	}
	return min(to, k.first+pruneStep, k.next)
}

// pruneRecords deletes the records below key to, and keeps what is needed to verify the rest of the
// chain.
func (e *pgEngine) pruneRecords(to int64, now time.Time, signer activity.CheckpointSigner) error {
	return e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		return c.runTx(ctx, beginWrite, func() error {
			var from int64
			if _, err := c.firstRow(ctx, scanTargets{&from}, "SELECT first_key FROM instance WHERE id = $1 FOR UPDATE", e.instance); err != nil {
				return err
			}
			if err := writePruneCheckpoint(ctx, c, from, to, now, signer); err != nil {
				return err
			}
			c.write("DELETE FROM activity WHERE instance = $1 AND key < $2", e.instance, to)
			c.write("DELETE FROM activity_column WHERE field = ANY($3::bigint[]) AND instance = $1 AND chunk < $2", e.instance, to/chunkSize, pgIntArray(allFieldNumbers()))
			c.write("DELETE FROM activity_chunk WHERE instance = $1 AND chunk < $2", e.instance, to/chunkSize)
			pgDeleteTextSegments(c, e.instance, 0, to/chunkSize*chunkSize)
			c.write("UPDATE instance SET first_key = $2, sealed = greatest(sealed, $3) WHERE id = $1", e.instance, to, to/chunkSize)
			for _, table := range []string{"activity_hour", "activity_took"} {
				c.write("DELETE FROM "+table+` WHERE instance = $1 AND hour < coalesce(least(
					(SELECT min(min_time) FROM activity_chunk WHERE instance = $1),
					(SELECT min(time) FROM activity WHERE instance = $1 AND key >= (SELECT sealed FROM instance WHERE id = $1) * 1024)) / 3600000000, 1::bigint << 60)`, e.instance)
			}
			return nil
		})
	})
}

func allFieldNumbers() (all []int64) {
	for _, f := range allColumnFields() {
		all = append(all, int64(f))
	}
	return all
}

// pruneRefusals deletes the oldest refusals of a chunk, at most most, and keeps the hashes that
// verify the rest of the chain.
func (e *pgEngine) pruneRefusals(most int64, k *pgStoredRecordCounts) error {
	chunk := k.firstRefused
	return e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		return c.runTx(ctx, beginWrite, func() error {
			var data []byte
			var minTime int64
			if _, err := c.firstRow(ctx, scanTargets{&data, &minTime}, "SELECT gone, min_time FROM activity_chunk WHERE instance = $1 AND chunk = $2 FOR UPDATE", e.instance, chunk); err != nil {
				return err
			}
			gone, err := decodeBitmap(data)
			if err != nil {
				return err
			}
			if gone == nil {
				gone = &bitmap{}
			}
			var going bitmap
			var key int64
			if err := c.eachRow(ctx, scanTargets{&key}, func() error {
				gone[key%chunkSize/64] |= 1 << (key % 64)
				going[key%chunkSize/64] |= 1 << (key % 64)
				return nil
			}, "SELECT key FROM activity WHERE instance = $1 AND key >= $2 AND key < $3 AND type = $4 ORDER BY key LIMIT $5",
				e.instance, chunk*chunkSize, (chunk+1)*chunkSize, string(activity.PolicyDecision), most); err != nil {
				return err
			}
			if err := deleteMarkedRecords(ctx, c, chunk*chunkSize, &going); err != nil {
				return err
			}
			p := pgProjectionTx{e: e, c: c}
			p.c.write("UPDATE activity_chunk SET gone = $3, refused = 0 WHERE instance = $1 AND chunk = $2", e.instance, chunk, gone.encode())
			p.c.write("DELETE FROM activity_hour WHERE instance = $1 AND type = $2 AND hour < $3", e.instance, string(activity.PolicyDecision), hourOfMicros(minTime))
			return p.resealChunk(ctx, chunk)
		})
	})
}

// deleteOldResultsAndInstances deletes expired results, and instances that were not seen for longer
// than records are kept.
func (e *pgEngine) deleteOldResultsAndInstances(now time.Time, keep activity.Retention) error {
	return e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		if _, err := c.exec(ctx, "DELETE FROM result WHERE expires <= $1", now.UnixMicro()); err != nil || keep.Days == 0 {
			return err
		}
		var gone int64
		found, err := c.firstRow(ctx, scanTargets{&gone}, "SELECT id FROM instance WHERE id <> $1 AND seen < now() - make_interval(days => $2::int + 1) LIMIT 1", e.instance, int64(keep.Days))
		if err != nil || !found {
			return err
		}
		return c.runTx(ctx, beginWrite, func() error {
			c.write("DELETE FROM activity_column WHERE field = ANY($2::bigint[]) AND instance = $1", gone, pgIntArray(allFieldNumbers()))
			for _, table := range []string{"activity", "activity_chunk", "activity_segment", "activity_text", "activity_hour", "activity_took",
				"activity_checkpoint", "activity_gap", "activity_signed", "activity_erasing"} {
				c.write("DELETE FROM "+table+" WHERE instance = $1", gone)
			}
			c.write("DELETE FROM instance WHERE id = $1", gone)
			return nil
		})
	})
}
