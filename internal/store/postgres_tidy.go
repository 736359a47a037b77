package store

import (
	"context"
	"time"

	"mcpproxy/internal/store/activity"
)

// Tidy does one short step of deferred maintenance. Each instance prunes its own records. Its part of the limits is its
// share of all records. The records of an instance that no longer exists are deleted together when they exceed the age
// limit.
func (db *Postgres) Tidy(ctx context.Context, now time.Time, keep activity.Retention, idle bool) (more bool, err error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return false, err
	}
	var k storedRecordCounts
	var bytes, unindexed, old int64
	err = db.withSnapshotTx(ctx, func(ctx context.Context, c *pgConn) (err error) {
		if k, bytes, err = pgCountStoredRecords(ctx, c); err != nil {
			return err
		}
		if _, err = c.firstRow(ctx, scanTargets{&unindexed}, "SELECT count(*) FROM activity_chunk WHERE NOT indexed"); err != nil {
			return err
		}
		if keep.Days > 0 {
			old, err = pgFirstKeySince(ctx, c, k.first, now.AddDate(0, 0, -keep.Days).UnixMicro())
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if n := k.refusalsOverQuota(keep); n > 0 {
		return true, e.pruneRefusals(k.firstRefused, n)
	}
	to, err := k.nextPruneKey(keep, old, &e.agePruning, func(limit int64) (bool, error) { return bytes > limit, nil })
	if err != nil {
		return false, err
	}
	if to > 0 {
		return true, e.pruneRecords(to, now, keep.Signer)
	}
	if unindexed > 0 && (idle || unindexed > maxUnindexed) {
		return db.indexTextOfNextChunk(ctx)
	}
	return false, e.deleteOldResultsAndInstances(now.Add(-db.clock.wallClockShift()), keep)
}

// pgCountStoredRecords returns the counts of the stored records of this instance, and their size in bytes.
func pgCountStoredRecords(ctx context.Context, c *pgConn) (k storedRecordCounts, bytes int64, err error) {
	var sealed int64
	if _, err := c.firstRow(ctx, scanTargets{&k.first, &k.next, &sealed}, "SELECT first_key, next_key, sealed FROM instance WHERE id = $1", c.instance); err != nil {
		return k, 0, err
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
		if bytes += size * (chunkSize - min(from, chunkSize)) / chunkSize; refused > 0 {
			k.refused, k.refusedBytes = k.refused+refused, k.refusedBytes+refusedBytes
			if k.firstRefused < 0 {
				k.firstRefused = chunk
			}
		}
		k.findFirstAlive(chunk*chunkSize, gone)
		return nil
	}, "SELECT chunk, bytes, refused, refused_bytes, gone FROM activity_chunk WHERE instance = $1 ORDER BY chunk", c.instance); err != nil {
		return k, 0, err
	}
	if k.firstAlive < 0 {
		k.firstAlive = k.first
	}
	var tailBytes, tailRefused, tailRefusedBytes, total int64
	if _, err := c.firstRow(ctx, scanTargets{&tailBytes, &tailRefused, &tailRefusedBytes}, `SELECT coalesce(sum(n), 0)::bigint, count(*) FILTER (WHERE refused), coalesce(sum(n) FILTER (WHERE refused), 0)::bigint
		FROM (SELECT coalesce(octet_length(entry), 0) + coalesce(octet_length(outcome), 0) AS n, type = $3 AS refused FROM activity WHERE instance = $1 AND key >= $2) AS tail`,
		c.instance, sealed*chunkSize, string(activity.PolicyDecision)); err != nil {
		return k, 0, err
	}
	bytes, k.refused, k.refusedBytes = bytes+tailBytes, k.refused+tailRefused, k.refusedBytes+tailRefusedBytes
	k.others = all - k.refused
	if _, err := c.firstRow(ctx, scanTargets{&total}, "SELECT coalesce(sum(next_key - first_key), 0)::bigint FROM instance"); err != nil {
		return k, 0, err
	}
	if k.share = 1; total > k.next-k.first {
		k.share = float64(k.next-k.first) / float64(total)
	}
	return k, bytes, nil
}

// pgFirstKeySince returns the key of the first record that is not older than limit, but examines only as many records
// as one step can prune.
func pgFirstKeySince(ctx context.Context, c *pgConn, first, limit int64) (key int64, err error) {
	past := first + pruneStep
	found, err := c.firstRow(ctx, scanTargets{&key}, "SELECT key FROM activity WHERE instance = $1 AND key >= $2 AND key < $3 AND time >= $4 ORDER BY key LIMIT 1",
		c.instance, first, past, limit)
	if err == nil && !found {
		return past, nil
	}
	return key, err
}

// pruneRecords deletes the records with keys below to. It keeps the data that is needed to verify the rest of the
// chain.
func (e *pgEngine) pruneRecords(to int64, now time.Time, signer activity.CheckpointSigner) error {
	return e.writeTx(func(ctx context.Context, c *pgConn) error {
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
		deleteTextIndexOfChunks(c, 0, to/chunkSize)
		c.write("UPDATE instance SET first_key = $2, sealed = greatest(sealed, $3) WHERE id = $1", e.instance, to, to/chunkSize)
		for _, table := range []string{"activity_hour", "activity_took"} {
			c.write("DELETE FROM "+table+` WHERE instance = $1 AND hour < coalesce(least(
				(SELECT min(min_time) FROM activity_chunk WHERE instance = $1),
				(SELECT min(time) FROM activity WHERE instance = $1 AND key >= (SELECT sealed FROM instance WHERE id = $1) * 1024)) / 3600000000, 1::bigint << 60)`, e.instance)
		}
		return nil
	})
}

func allFieldNumbers() (all []int64) {
	for _, f := range allColumnFields() {
		all = append(all, int64(f))
	}
	return all
}

// pruneRefusals deletes up to most of the oldest refusals in a chunk. It keeps the hashes that are needed to verify the
// rest of the chain.
func (e *pgEngine) pruneRefusals(chunk, most int64) error {
	return e.writeTx(func(ctx context.Context, c *pgConn) error {
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
}

// deleteOldResultsAndInstances deletes expired results. It also deletes instances that have not been running for longer
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
