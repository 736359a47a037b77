package store

import (
	"context"
	"time"

	"mcpproxy/internal/store/activity"
)

// pgKept is what there is of an instance, and of all.
type pgKept struct {
	first, next, sealed        int64
	refused, others            int64
	refusedBytes, bytes        int64
	firstRefused, refusedThere int64 // the oldest chunk with refusals, and how many it has; -1: none
	firstAlive                 int64
	share                      float64 // of what all instances have
}

// Tidy does one short piece of work that can wait. Each instance prunes its own records:
// what may be kept in all is shared out as the records are. What nobody writes any more
// goes as a whole, when it is past its days.
func (db *Postgres) Tidy(ctx context.Context, now time.Time, keep activity.Retention, idle bool) (more bool, err error) {
	e, err := db.use(ctx)
	if err != nil {
		return false, err
	}
	var k pgKept
	var unindexed int64
	var old int64
	err = db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) (err error) {
		if k, err = pgKeptOf(ctx, c, e.instance); err != nil {
			return err
		}
		if _, err = c.first(ctx, into{&unindexed}, "SELECT count(*) FROM activity_chunk WHERE NOT indexed"); err != nil {
			return err
		}
		if keep.Days > 0 {
			old, err = pgOlderThan(ctx, c, e.instance, k.first, now.AddDate(0, 0, -keep.Days).UnixMicro())
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if n := k.excess(keep); n > 0 {
		return true, e.pruneRefused(n, &k)
	}
	if to := e.pruneTo(old, keep, &k); to > 0 {
		return true, e.prune(to, now, keep.Signer)
	}
	if unindexed > 0 && (idle || unindexed > maxUnindexed) {
		return db.indexNext(ctx)
	}
	if idle && !e.prefixed.Load() {
		return db.upgradeText(ctx)
	}
	return false, e.dropOld(now.Add(-db.clock.jumped()), keep)
}

// pgKeptOf counts what there is.
func pgKeptOf(ctx context.Context, c *pgConn, instance int64) (k pgKept, err error) {
	if _, err := c.first(ctx, into{&k.first, &k.next, &k.sealed}, "SELECT first_key, next_key, sealed FROM instance WHERE id = $1", instance); err != nil {
		return k, err
	}
	k.firstRefused, k.firstAlive = -1, -1
	all := k.next - k.first
	var chunk, size, refused, refusedBytes int64
	var data []byte
	if err := c.each(ctx, into{&chunk, &size, &refused, &refusedBytes, &data}, func() error {
		gone, err := decodeBitmap(data)
		if err != nil {
			return err
		}
		from := max(0, k.first-chunk*chunkSize)
		all -= gone.count(from)
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
	if _, err := c.first(ctx, into{&tailBytes, &tailRefused, &tailRefusedBytes}, `SELECT coalesce(sum(n), 0)::bigint, count(*) FILTER (WHERE refused), coalesce(sum(n) FILTER (WHERE refused), 0)::bigint
		FROM (SELECT coalesce(octet_length(entry), 0) + coalesce(octet_length(outcome), 0) AS n, type = $3 AS refused FROM activity WHERE instance = $1 AND key >= $2) AS tail`,
		instance, k.sealed*chunkSize, string(activity.PolicyDecision)); err != nil {
		return k, err
	}
	k.bytes, k.refused, k.refusedBytes = k.bytes+tailBytes, k.refused+tailRefused, k.refusedBytes+tailRefusedBytes
	k.others = all - k.refused
	if _, err := c.first(ctx, into{&total}, "SELECT coalesce(sum(next_key - first_key), 0)::bigint FROM instance"); err != nil {
		return k, err
	}
	if k.share = 1; total > k.next-k.first {
		k.share = float64(k.next-k.first) / float64(total)
	}
	return k, nil
}

// most is the share of this instance in what may be kept in all.
func (k *pgKept) most(all int64) int64 { return int64(float64(all) * k.share) }

// excess is how many of the oldest refusals are past their quota. Those that are in no
// chunk yet stay.
func (k *pgKept) excess(keep activity.Retention) int64 {
	if k.firstRefused < 0 {
		return 0
	}
	over := int64(0)
	if keep.MaxRecords > 0 {
		over = k.refused - max(leastRefused, k.most(keep.MaxRecords)/refusedShare)
	}
	if keep.MaxBytes > 0 && refusedCost*k.refusedBytes > k.most(keep.MaxBytes)/refusedShare {
		over = max(over, chunkSize)
	}
	return max(0, over)
}

// pgOlderThan returns the key of the first record that is not older than the time, as far
// as one step needs it.
func pgOlderThan(ctx context.Context, c *pgConn, instance, first, limit int64) (key int64, err error) {
	past := first + pruneStep
	found, err := c.first(ctx, into{&key}, "SELECT key FROM activity WHERE instance = $1 AND key >= $2 AND key < $3 AND time >= $4 ORDER BY key LIMIT 1",
		instance, first, past, limit)
	if err == nil && !found {
		return past, nil
	}
	return key, err
}

// pruneTo returns the key up to which the next step has to prune; 0 for nothing. Number
// and size are those of what is no refusal.
func (e *pgEngine) pruneTo(old int64, keep activity.Retention, k *pgKept) int64 {
	if k.first == k.next {
		return 0
	}
	to := k.firstAlive
	if keep.MaxRecords > 0 {
		to = max(to, k.first+k.others-k.most(keep.MaxRecords))
	}
	if keep.Days > 0 {
		to = max(to, e.pace.paced(min(old, k.next), k.first, k.next))
	}
	if keep.MaxBytes > 0 && to <= k.first && k.bytes > k.most(keep.MaxBytes)+refusedCost*k.refusedBytes {
		to = k.first + pruneStep
	}
	if to <= k.first {
		return 0
	}
	return min(to, k.first+pruneStep, k.next)
}

// prune removes the records below key to, and leaves what is needed to verify the rest of
// the chain.
func (e *pgEngine) prune(to int64, now time.Time, signer activity.CheckpointSigner) error {
	return e.write(func(ctx context.Context, c *pgConn) error {
		return c.tx(ctx, beginWrite, func() error {
			var from int64
			if _, err := c.first(ctx, into{&from}, "SELECT first_key FROM instance WHERE id = $1 FOR UPDATE", e.instance); err != nil {
				return err
			}
			if err := pgCut(ctx, c, e.instance, from, to, now, signer); err != nil {
				return err
			}
			b := pgBatch{conn: c}
			b.do(ctx, "DELETE FROM activity_column WHERE field = ANY($3::bigint[]) AND instance = $1 AND chunk < $2", e.instance, to/chunkSize, pgIntegers(fieldNumbers()))
			b.do(ctx, "DELETE FROM activity_chunk WHERE instance = $1 AND chunk < $2", e.instance, to/chunkSize)
			pgDropText(ctx, &b, e.instance, 0, to/chunkSize*chunkSize)
			b.do(ctx, "UPDATE instance SET first_key = $2, sealed = greatest(sealed, $3) WHERE id = $1", e.instance, to, to/chunkSize)
			for _, table := range []string{"activity_hour", "activity_took"} {
				b.do(ctx, "DELETE FROM "+table+` WHERE instance = $1 AND hour < coalesce(least(
					(SELECT min(min_time) FROM activity_chunk WHERE instance = $1),
					(SELECT min(time) FROM activity WHERE instance = $1 AND key >= (SELECT sealed FROM instance WHERE id = $1) * 1024)) / 3600000000, 1::bigint << 60)`, e.instance)
			}
			return b.run(ctx)
		})
	})
}

func fieldNumbers() (all []int64) {
	for _, f := range allFields() {
		all = append(all, int64(f))
	}
	return all
}

// pruneRefused removes the oldest refusals of a chunk, most at most, and leaves what is
// needed to verify the rest of the chain.
func (e *pgEngine) pruneRefused(most int64, k *pgKept) error {
	chunk := k.firstRefused
	return e.write(func(ctx context.Context, c *pgConn) error {
		return c.tx(ctx, beginWrite, func() error {
			var data []byte
			var minTime int64
			if _, err := c.first(ctx, into{&data, &minTime}, "SELECT gone, min_time FROM activity_chunk WHERE instance = $1 AND chunk = $2 FOR UPDATE", e.instance, chunk); err != nil {
				return err
			}
			gone, err := decodeBitmap(data)
			if err != nil {
				return err
			}
			if gone == nil {
				gone = &bitmap{}
			}
			var key int64
			var keys []int64
			if err := c.each(ctx, into{&key}, func() error {
				keys = append(keys, key)
				gone[key%chunkSize/64] |= 1 << (key % 64)
				return nil
			}, "SELECT key FROM activity WHERE instance = $1 AND key >= $2 AND key < $3 AND type = $4 ORDER BY key LIMIT $5",
				e.instance, chunk*chunkSize, (chunk+1)*chunkSize, string(activity.PolicyDecision), most); err != nil {
				return err
			}
			links, err := pgLinks(ctx, c, "DELETE FROM activity WHERE instance = $1 AND key = ANY($2::bigint[])", e.instance, pgIntegers(keys))
			if err != nil {
				return err
			}
			if err := pgLeave(ctx, c, e.instance, links); err != nil {
				return err
			}
			p := pgProjection{e: e, c: c, batch: pgBatch{conn: c}}
			p.batch.do(ctx, "UPDATE activity_chunk SET gone = $3, refused = 0 WHERE instance = $1 AND chunk = $2", e.instance, chunk, gone.encode())
			p.batch.do(ctx, "DELETE FROM activity_hour WHERE instance = $1 AND type = $2 AND hour < $3", e.instance, string(activity.PolicyDecision), hourOf(minTime))
			if err := p.batch.run(ctx); err != nil {
				return err
			}
			return p.sealAgain(ctx, chunk)
		})
	})
}

// dropOld removes results that are past their time, and instances that have not been
// there for the days that records are kept.
func (e *pgEngine) dropOld(now time.Time, keep activity.Retention) error {
	return e.write(func(ctx context.Context, c *pgConn) error {
		if _, err := c.exec(ctx, "DELETE FROM result WHERE expires <= $1", now.UnixMicro()); err != nil || keep.Days == 0 {
			return err
		}
		var gone int64
		found, err := c.first(ctx, into{&gone}, "SELECT id FROM instance WHERE id <> $1 AND seen < now() - make_interval(days => $2::int + 1) LIMIT 1", e.instance, int64(keep.Days))
		if err != nil || !found {
			return err
		}
		return c.tx(ctx, beginWrite, func() error {
			b := pgBatch{conn: c}
			b.do(ctx, "DELETE FROM activity_column WHERE field = ANY($2::bigint[]) AND instance = $1", gone, pgIntegers(fieldNumbers()))
			for _, table := range []string{"activity", "activity_chunk", "activity_segment", "activity_text", "activity_hour", "activity_took",
				"activity_checkpoint", "activity_gap", "activity_signed", "activity_erasing"} {
				b.do(ctx, "DELETE FROM "+table+" WHERE instance = $1", gone)
			}
			b.do(ctx, "DELETE FROM instance WHERE id = $1", gone)
			return b.run(ctx)
		})
	})
}
