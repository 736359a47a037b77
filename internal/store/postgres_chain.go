package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/store/activity"
)

// pgChain is the chain of an instance.
type pgChain struct {
	c        *pgConn
	instance int64
}

func (p pgChain) chainRows(ctx context.Context, from int64, fn func(*chainRow) error) error {
	var r chainRow
	var endSeq nullable
	var hash, endHash pgRaw
	return p.c.each(ctx, into{&r.key, &r.seq, &hash, &endSeq, &endHash, &r.entry, &r.outcome}, func() error {
		r.hash, r.endHash, r.endSeq, r.ended = hash, endHash, endSeq.int64, endSeq.valid
		return fn(&r)
	}, "SELECT key, seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE instance = $1 AND key >= $2 ORDER BY key LIMIT $3",
		p.instance, from, int64(chainRows))
}

func (p pgChain) chainOutcome(ctx context.Context, key int64) (outcome []byte, err error) {
	_, err = p.c.first(ctx, into{&outcome}, "SELECT outcome FROM activity WHERE instance = $1 AND key = $2", p.instance, key)
	return outcome, err
}

// end is how far the chain is.
func (p pgChain) end(ctx context.Context) (end activity.SpoolPosition, err error) {
	var hash []byte
	_, err = p.c.first(ctx, into{&end.Chain, &end.Seq, &hash, &end.Segment, &end.Offset},
		"SELECT chain, seq, hash, segment, file_offset FROM instance WHERE id = $1", p.instance)
	copy(end.Hash[:], hash)
	return end, err
}

// eachMark calls fn for what is gone and for what is signed, in the order of the numbers.
func (p pgChain) eachMark(ctx context.Context, chain string, fn func(activity.ChainPart) error) error {
	var from, seq, at int64
	var hash, key, signature []byte
	var what string
	return p.c.each(ctx, into{&from, &seq, &hash, &at, &key, &signature, &what}, func() error {
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
		return fn(activity.ChainPart{First: seq, Seq: seq, Checkpoint: &activity.Checkpoint{
			Chain: chain, Seq: seq, Hash: part.Hash, Time: time.UnixMicro(at).UTC(), Pruned: part.Pruned, Key: key, Signature: signature,
		}})
	}, `SELECT 1::bigint AS first, seq, hash, time, key, signature, 'pruned'::text FROM activity_checkpoint WHERE instance = $1
		UNION ALL SELECT first, seq, hash, 0, NULL, NULL, 'gone' FROM activity_gap WHERE instance = $1
		UNION ALL SELECT seq, seq, hash, time, key, signature, 'signed' FROM activity_signed WHERE instance = $1 AND chain = $2 ORDER BY 1, 2`,
		p.instance, chain)
}

// EachChainPart calls fn for every entry of this instance in order, all as they are at one time.
func (p pgProofs) EachChainPart(ctx context.Context, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	stopped := ctx.Err
	err = p.db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		records, end, err = pgChain{c, e.instance}.walk(ctx, stopped, fn)
		return err
	})
	return records, end, err
}

func (p pgChain) walk(ctx context.Context, stopped func() error, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	if end, err = p.end(ctx); err != nil {
		return 0, end, err
	}
	w := chainWalk{source: p, fn: fn}
	if err = p.eachMark(ctx, end.Chain, w.mark); err == nil {
		err = w.walk(ctx, stopped)
	}
	return w.records, end, err
}

// Others calls fn for the other instances, with a function that reads the chain of each as Chain
// does.
func (p pgProofs) Others(ctx context.Context, fn func(name string, chain activity.ChainReader) error) error {
	stopped := ctx.Err
	return p.db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		type other struct {
			id         int64
			name, host string
		}
		var o other
		var all []other
		if err := c.each(ctx, into{&o.id, &o.name, &o.host}, func() error { all = append(all, o); return nil },
			"SELECT id, name, host FROM instance WHERE id <> $1 AND seq > 0 ORDER BY id", e.instance); err != nil {
			return err
		}
		for _, o := range all {
			err := fn(o.name+" on "+o.host, func(fn func(activity.ChainPart) error) (int64, activity.SpoolPosition, error) {
				return pgChain{c, o.id}.walk(ctx, stopped, fn)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// EachChainMark calls fn for what is gone and for what is signed of this instance.
func (p pgProofs) EachChainMark(ctx context.Context, fn func(activity.ChainPart) error) error {
	return p.db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		chain := pgChain{c, e.instance}
		end, err := chain.end(ctx)
		if err != nil {
			return err
		}
		return chain.eachMark(ctx, end.Chain, fn)
	})
}

// PendingErasures returns what is erased here, and not in the spool yet.
func (p pgProofs) PendingErasures(ctx context.Context) (out []activity.Redaction, err error) {
	err = p.db.read(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		var id, fields string
		var at int64
		return c.each(ctx, into{&id, &fields, &at}, func() error {
			r := activity.Redaction{ID: id, At: time.Unix(at, 0).UTC()}
			for f := range strings.SplitSeq(fields, ",") {
				r.Fields = append(r.Fields, activity.ErasableField(f))
			}
			out = append(out, r)
			return nil
		}, "SELECT id, fields, at FROM activity_erasing WHERE instance = $1", e.instance)
	})
	return out, err
}

// FinishErasures has the server take the values out of its tables, where no transaction sees them
// any more, and forgets what was noted. What its own log and its backups have is for who
// runs it.
func (p pgProofs) FinishErasures(ctx context.Context, what []activity.Redaction) (done bool, err error) {
	if len(what) == 0 {
		return true, nil
	}
	e, err := p.db.use(ctx)
	if err != nil {
		return false, err
	}
	err = e.write(func(ctx context.Context, c *pgConn) error {
		if err := c.run(ctx, "VACUUM activity, activity_text"); err != nil {
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

// pgLinks returns the places in the chain of records that go.
func pgLinks(ctx context.Context, c *pgConn, query string, args ...any) (out []link, err error) {
	var seq int64
	var endSeq nullable
	var hash, endHash []byte
	err = c.each(ctx, into{&seq, &hash, &endSeq, &endHash}, func() error {
		if hash != nil {
			out = append(out, link{seq, hash})
		}
		if endHash != nil {
			out = append(out, link{endSeq.int64, endHash})
		}
		return nil
	}, query+" RETURNING seq, hash, end_seq, end_hash", args...)
	return out, err
}

// pgLeave keeps the hashes of entries that go. Of several in a row that of the last one
// is enough.
func pgLeave(ctx context.Context, c *pgConn, instance int64, gone []link) error {
	slices.SortFunc(gone, func(a, b link) int { return cmp.Compare(a.seq, b.seq) })
	for i := 0; i < len(gone); {
		from := gone[i].seq
		for i++; i < len(gone) && gone[i].seq-gone[i-1].seq <= 1; i++ {
		}
		if err := pgLeaveRun(ctx, c, instance, from, gone[i-1]); err != nil {
			return err
		}
	}
	return nil
}

// pgLeaveRun keeps the hash of the last of a run, together with the runs that it touches.
func pgLeaveRun(ctx context.Context, c *pgConn, instance, from int64, last link) error {
	var before, after int64
	found, err := c.first(ctx, into{&before}, "DELETE FROM activity_gap WHERE instance = $1 AND seq = $2 RETURNING first", instance, from-1)
	if err != nil {
		return err
	}
	if found {
		from = before
	}
	found, err = c.first(ctx, into{&after}, "UPDATE activity_gap SET first = $3 WHERE instance = $1 AND first = $2 RETURNING seq", instance, last.seq+1, from)
	if err != nil || found {
		return err
	}
	_, err = c.exec(ctx, `INSERT INTO activity_gap (instance, seq, hash, first) VALUES ($1, $2, $3, $4)
		ON CONFLICT (instance, seq) DO UPDATE SET hash = excluded.hash, first = excluded.first`, instance, last.seq, last.hash, from)
	return err
}

// pgCut deletes the records below a key, and writes a checkpoint, signed, for them. It is at
// the last entry before the first one that stays. Entries behind it that are deleted too, the
// ends of long calls, leave their hash.
//
// The first entry that stays belongs to one of the next activity.MaxBatch records. They are in
// the order of their first entry, with one exception: an end whose beginning was pruned is
// stored behind the records of its transaction that began later.
func pgCut(ctx context.Context, c *pgConn, instance, from, to int64, now time.Time, signer activity.CheckpointSigner) error {
	cut := link{}
	_, err := c.first(ctx, into{&cut.seq}, `SELECT coalesce(min(first) - 1, (SELECT seq FROM instance WHERE id = $1)) FROM (
		SELECT CASE WHEN entry IS NULL THEN end_seq ELSE seq END AS first FROM activity
		WHERE instance = $1 AND key >= $2 ORDER BY key LIMIT $3) AS next`, instance, to, int64(activity.MaxBatch))
	if err != nil {
		return err
	}
	gone, err := pgLinks(ctx, c, "DELETE FROM activity WHERE instance = $1 AND key < $2", instance, to)
	if err != nil {
		return err
	}
	if err := pgLeave(ctx, c, instance, gone); err != nil {
		return err
	}
	found, err := c.first(ctx, into{&cut.hash}, "SELECT hash FROM activity_gap WHERE instance = $1 AND seq = $2", instance, cut.seq)
	if err != nil || !found {
		return err // the last checkpoint is here, or the chain is broken here already
	}
	var before int64
	at := activity.Checkpoint{Seq: cut.seq, Time: now, Pruned: true}
	copy(at.Hash[:], cut.hash)
	if _, err := c.first(ctx, into{&at.Chain, &before}, `SELECT chain, (SELECT coalesce(sum(records), 0)::bigint FROM activity_checkpoint WHERE instance = $1)
		FROM instance WHERE id = $1`, instance); err != nil {
		return err
	}
	if signer != nil {
		at = signer.SignCheckpoint(at)
	}
	b := pgBatch{conn: c}
	b.do(ctx, "DELETE FROM activity_gap WHERE instance = $1 AND seq <= $2", instance, cut.seq)
	b.do(ctx, "DELETE FROM activity_signed WHERE instance = $1 AND (chain <> $2 OR seq <= $3)", instance, at.Chain, cut.seq)
	b.do(ctx, "DELETE FROM activity_checkpoint WHERE instance = $1", instance)
	b.do(ctx, "INSERT INTO activity_checkpoint (instance, seq, hash, time, records, chain, key, signature) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		instance, cut.seq, cut.hash, at.Time.UnixMicro(), before+to-from, at.Chain, at.Key, at.Signature)
	return b.run(ctx)
}
