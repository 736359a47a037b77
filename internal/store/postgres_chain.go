package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/store/activity"
)

// pgInstanceChain reads the chain of one instance.
type pgInstanceChain struct {
	c        *pgConn
	instance int64
}

func (p pgInstanceChain) readRows(ctx context.Context, from int64, fn func(*chainRow) error) error {
	var r chainRow
	var endSeq sql.NullInt64
	var hash, endHash sql.RawBytes
	return p.c.eachRow(ctx, scanTargets{&r.key, &r.seq, &hash, &endSeq, &endHash, &r.entry, &r.outcome}, func() error {
		r.hash, r.endHash, r.endSeq, r.ended = hash, endHash, endSeq.Int64, endSeq.Valid
		return fn(&r)
	}, "SELECT key, seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE instance = $1 AND key >= $2 ORDER BY key LIMIT $3",
		p.instance, from, int64(chainRowsPerRead))
}

func (p pgInstanceChain) readOutcome(ctx context.Context, key int64) (outcome []byte, err error) {
	_, err = p.c.firstRow(ctx, scanTargets{&outcome}, "SELECT outcome FROM activity WHERE instance = $1 AND key = $2", p.instance, key)
	return outcome, err
}

// readPosition returns the end of the chain and the position of the spool.
func (p pgInstanceChain) readPosition(ctx context.Context) (end activity.SpoolPosition, err error) {
	var hash []byte
	_, err = p.c.firstRow(ctx, scanTargets{&end.Chain, &end.Seq, &hash, &end.Segment, &end.Offset},
		"SELECT chain, seq, hash, segment, file_offset FROM instance WHERE id = $1", p.instance)
	copy(end.Hash[:], hash)
	return end, err
}

// eachGapAndCheckpoint calls fn for deleted runs of entries and signed checkpoints, in the order of their
// numbers.
func (p pgInstanceChain) eachGapAndCheckpoint(ctx context.Context, chain string, fn func(activity.ChainPart) error) error {
	var from, seq, at int64
	var hash, key, signature []byte
	var what string
	return p.c.eachRow(ctx, scanTargets{&from, &seq, &hash, &at, &key, &signature, &what}, func() error {
		part := activity.ChainPart{First: from, Seq: seq, Gone: what != "signed", Pruned: what == "pruned"}
		copy(part.Hash[:], hash)
		if part.Gone {
			if err := fn(part); err != nil {
				return err
			}
		}
		if signature == nil {
			return nil
		}
		return fn(activity.ChainPart{First: seq, Seq: seq, Checkpoint: &activity.SignedCheckpoint{
			Chain: chain, Seq: seq, Hash: part.Hash, Time: time.UnixMicro(at).UTC(), Pruned: part.Pruned, Key: key, Signature: signature,
		}})
	}, `SELECT 1::bigint AS first, seq, hash, time, key, signature, 'pruned'::text FROM activity_checkpoint WHERE instance = $1
		UNION ALL SELECT first, seq, hash, 0, NULL, NULL, 'gone' FROM activity_gap WHERE instance = $1
		UNION ALL SELECT seq, seq, hash, time, key, signature, 'signed' FROM activity_signed WHERE instance = $1 AND chain = $2 ORDER BY 1, 2`,
		p.instance, chain)
}

// EachChainPart calls fn for every entry of this instance in order, in one snapshot.
func (p pgChainStore) EachChainPart(ctx context.Context, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	stopped := ctx.Err
	err = p.db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		records, end, err = pgInstanceChain{c, e.instance}.readAll(ctx, stopped, fn)
		return err
	})
	return records, end, err
}

func (p pgInstanceChain) readAll(ctx context.Context, stopped func() error, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	if end, err = p.readPosition(ctx); err != nil {
		return 0, end, err
	}
	w := chainEmitter{source: p, fn: fn}
	if err = p.eachGapAndCheckpoint(ctx, end.Chain, w.addGapOrCheckpoint); err == nil {
		err = w.emitAll(ctx, stopped)
	}
	return w.records, end, err
}

// EachOtherInstance calls fn for each other instance, with a function that reads its chain as EachChainPart does.
func (p pgChainStore) EachOtherInstance(ctx context.Context, fn func(name string, chain activity.ChainReader) error) error {
	stopped := ctx.Err
	return p.db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		type other struct {
			id         int64
			name, host string
		}
		var o other
		var all []other
		if err := c.eachRow(ctx, scanTargets{&o.id, &o.name, &o.host}, func() error { all = append(all, o); return nil },
			"SELECT id, name, host FROM instance WHERE id <> $1 AND seq > 0 ORDER BY id", e.instance); err != nil {
			return err
		}
		for _, o := range all {
			err := fn(o.name+" on "+o.host, func(fn func(activity.ChainPart) error) (int64, activity.SpoolPosition, error) {
				return pgInstanceChain{c, o.id}.readAll(ctx, stopped, fn)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// EachGapAndCheckpoint calls fn for deleted runs of entries and signed checkpoints of this instance.
func (p pgChainStore) EachGapAndCheckpoint(ctx context.Context, fn func(activity.ChainPart) error) error {
	return p.db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		chain := pgInstanceChain{c, e.instance}
		end, err := chain.readPosition(ctx)
		if err != nil {
			return err
		}
		return chain.eachGapAndCheckpoint(ctx, end.Chain, fn)
	})
}

// PendingErasures returns the erasures that the spool still has to make.
func (p pgChainStore) PendingErasures(ctx context.Context) (out []activity.FieldErasure, err error) {
	err = p.db.withReadConn(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		var id, fields string
		var at int64
		return c.eachRow(ctx, scanTargets{&id, &fields, &at}, func() error {
			r := activity.FieldErasure{ID: id, At: time.Unix(at, 0).UTC()}
			for f := range strings.SplitSeq(fields, ",") {
				r.Fields = append(r.Fields, activity.ErasableField(f))
			}
			out = append(out, r)
			return nil
		}, "SELECT id, fields, at FROM activity_erasing WHERE instance = $1", e.instance)
	})
	return out, err
}

// FinishErasures makes the server remove the erased values from its tables (VACUUM), if no transaction
// needs them, and deletes the notes of the erasures. The operator of the server is responsible for
// its own log and backups.
func (p pgChainStore) FinishErasures(ctx context.Context, what []activity.FieldErasure) (done bool, err error) {
	if len(what) == 0 {
		return true, nil
	}
	e, err := p.db.waitOpen(ctx)
	if err != nil {
		return false, err
	}
	err = e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		if err := c.execScript(ctx, "VACUUM activity, activity_text"); err != nil {
			return err
		}
		for _, r := range what {
			if _, err := c.exec(ctx, "DELETE FROM activity_erasing WHERE instance = $1 AND id = $2 AND at = $3", e.instance, r.ID, r.At.Unix()); err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil, err
}

// pgDeleteRecordsReturningLinks runs a DELETE of records and returns their positions in the chain.
func pgDeleteRecordsReturningLinks(ctx context.Context, c *pgConn, query string, args ...any) (out []chainLink, err error) {
	var seq int64
	var endSeq sql.NullInt64
	var hash, endHash []byte
	err = c.eachRow(ctx, scanTargets{&seq, &hash, &endSeq, &endHash}, func() error {
		if hash != nil {
			out = append(out, chainLink{seq, hash})
		}
		if endHash != nil {
			out = append(out, chainLink{endSeq.Int64, endHash})
		}
		return nil
	}, query+" RETURNING seq, hash, end_seq, end_hash", args...)
	return out, err
}

// pgSaveGapHashes stores the hashes of entries that are deleted. For several in a row it stores
// only the last hash.
func pgSaveGapHashes(ctx context.Context, c *pgConn, instance int64, gone []chainLink) error {
	slices.SortFunc(gone, func(a, b chainLink) int { return cmp.Compare(a.seq, b.seq) })
	for i := 0; i < len(gone); {
		from := gone[i].seq
		for i++; i < len(gone) && gone[i].seq-gone[i-1].seq <= 1; i++ {
		}
		if err := pgSaveGapAndMergeNeighbors(ctx, c, instance, from, gone[i-1]); err != nil {
			return err
		}
	}
	return nil
}

// pgSaveGapAndMergeNeighbors stores the hash of the last entry of a run and merges the run with its neighbors.
func pgSaveGapAndMergeNeighbors(ctx context.Context, c *pgConn, instance, from int64, last chainLink) error {
	var before, after int64
	found, err := c.firstRow(ctx, scanTargets{&before}, "DELETE FROM activity_gap WHERE instance = $1 AND seq = $2 RETURNING first", instance, from-1)
	if err != nil {
		return err
	}
	if found {
		from = before
	}
	found, err = c.firstRow(ctx, scanTargets{&after}, "UPDATE activity_gap SET first = $3 WHERE instance = $1 AND first = $2 RETURNING seq", instance, last.seq+1, from)
	if err != nil || found {
		return err
	}
	_, err = c.exec(ctx, `INSERT INTO activity_gap (instance, seq, hash, first) VALUES ($1, $2, $3, $4)
		ON CONFLICT (instance, seq) DO UPDATE SET hash = excluded.hash, first = excluded.first`, instance, last.seq, last.hash, from)
	return err
}

// pgPruneWithCheckpoint deletes the records below a key and writes a signed checkpoint for them.
// The checkpoint is at the last entry before the first one that stays. Deleted entries after it,
// the ends of long calls, leave their hash in activity_gap.
//
// The first entry that stays belongs to one of the next activity.MaxBatch records. They are in the
// order of their first entry, with one exception: an end whose beginning was pruned is stored after
// the records of its transaction that began later.
func pgPruneWithCheckpoint(ctx context.Context, c *pgConn, instance, from, to int64, now time.Time, signer activity.CheckpointSigner) error {
	cut := chainLink{}
	_, err := c.firstRow(ctx, scanTargets{&cut.seq}, `SELECT coalesce(min(first) - 1, (SELECT seq FROM instance WHERE id = $1)) FROM (
		SELECT CASE WHEN entry IS NULL THEN end_seq ELSE seq END AS first FROM activity
		WHERE instance = $1 AND key >= $2 ORDER BY key LIMIT $3) AS next`, instance, to, int64(activity.MaxBatch))
	if err != nil {
		return err
	}
	gone, err := pgDeleteRecordsReturningLinks(ctx, c, "DELETE FROM activity WHERE instance = $1 AND key < $2", instance, to)
	if err != nil {
		return err
	}
	if err := pgSaveGapHashes(ctx, c, instance, gone); err != nil {
		return err
	}
	found, err := c.firstRow(ctx, scanTargets{&cut.hash}, "SELECT hash FROM activity_gap WHERE instance = $1 AND seq = $2", instance, cut.seq)
	if err != nil || !found {
		return err // the last checkpoint is here, or the chain is already broken here
	}
	var before int64
	at := activity.SignedCheckpoint{Seq: cut.seq, Time: now, Pruned: true}
	copy(at.Hash[:], cut.hash)
	if _, err := c.firstRow(ctx, scanTargets{&at.Chain, &before}, `SELECT chain, (SELECT coalesce(sum(records), 0)::bigint FROM activity_checkpoint WHERE instance = $1)
		FROM instance WHERE id = $1`, instance); err != nil {
		return err
	}
	if signer != nil {
		at = signer.SignCheckpoint(at)
	}
	c.write("DELETE FROM activity_gap WHERE instance = $1 AND seq <= $2", instance, cut.seq)
	c.write("DELETE FROM activity_signed WHERE instance = $1 AND (chain <> $2 OR seq <= $3)", instance, at.Chain, cut.seq)
	c.write("DELETE FROM activity_checkpoint WHERE instance = $1", instance)
	c.write("INSERT INTO activity_checkpoint (instance, seq, hash, time, records, chain, key, signature) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		instance, cut.seq, cut.hash, at.Time.UnixMicro(), before+to-from, at.Chain, at.Key, at.Signature)
	return nil
}
