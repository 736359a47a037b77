package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"mcpproxy/internal/store/activity"
)

// link is a place in the chain.
type link struct {
	seq  int64
	hash []byte
}

// readLinks returns the links of the rows from from to before past that are
// wanted, and their keys.
func readLinks(ctx context.Context, db querier, from, past int64, want func(key int64) bool) (out []link, keys []int64, err error) {
	var key int64
	var seq, endSeq sql.NullInt64
	var hash, endHash []byte
	err = each(ctx, db, into{&key, &seq, &hash, &endSeq, &endHash}, func() error {
		if !want(key) {
			return nil
		}
		keys = append(keys, key)
		if hash != nil {
			out = append(out, link{seq.Int64, hash})
		}
		if endHash != nil {
			out = append(out, link{endSeq.Int64, endHash})
		}
		return nil
	}, "SELECT key, seq, hash, end_seq, end_hash FROM activity WHERE key >= ? AND key < ?", from, past)
	return out, keys, err
}

// cutChain writes a checkpoint, signed, for the records that are about to be deleted. It is
// at the last entry before the first one that stays. Entries behind it that are deleted too,
// the ends of long calls, leave their hash.
//
// Records with a beginning are in the order of their beginnings, and ends whose beginnings were
// pruned are in the order of these ends. But such an end is stored behind the records of its
// transaction that began later, so the first entry that stays is that of the first record of
// either kind.
func cutChain(ctx context.Context, c *rawConn, from, to int64, now time.Time, signer activity.CheckpointSigner) error {
	cut := link{}
	err := c.QueryRowContext(ctx, `SELECT coalesce(min(first) - 1, (SELECT seq FROM activity_position)) FROM (
		SELECT * FROM (SELECT seq AS first FROM activity WHERE key >= ?1 AND entry IS NOT NULL ORDER BY key LIMIT 1)
		UNION ALL SELECT * FROM (SELECT end_seq FROM activity WHERE key >= ?1 AND entry IS NULL ORDER BY key LIMIT 1))`, to).Scan(&cut.seq)
	if err != nil {
		return err
	}
	gone, _, err := readLinks(ctx, c, from, to, func(int64) bool { return true })
	if err != nil {
		return err
	}
	if err := leave(ctx, c, gone); err != nil {
		return err
	}
	found, err := first(ctx, c, into{&cut.hash}, "SELECT hash FROM activity_gap WHERE seq = ?", cut.seq)
	if err != nil || !found {
		return err // the last checkpoint is here, or the chain is broken here already
	}
	c.do("DELETE FROM activity_gap WHERE seq <= ?", cut.seq)
	var before int64
	at := activity.Checkpoint{Seq: cut.seq, Time: now, Pruned: true}
	copy(at.Hash[:], cut.hash)
	err = c.QueryRowContext(ctx, "SELECT chain, (SELECT coalesce(sum(records), 0) FROM activity_checkpoint) FROM activity_position").Scan(&at.Chain, &before)
	if err != nil {
		return err
	}
	if signer != nil {
		at = signer.SignCheckpoint(at)
	}
	c.do("DELETE FROM activity_signed WHERE chain <> ? OR seq <= ?", at.Chain, cut.seq)
	c.do("DELETE FROM activity_checkpoint")
	c.do("INSERT INTO activity_checkpoint (seq, hash, time, records, chain, key, signature) VALUES (?, ?, ?, ?, ?, ?, ?)",
		cut.seq, cut.hash, at.Time.UnixMicro(), before+to-from, at.Chain, orNull(at.Key), orNull(at.Signature))
	return nil
}

// leave keeps the hashes of entries that go. Of several in a row that of the
// last one is enough.
func leave(ctx context.Context, c *rawConn, gone []link) error {
	slices.SortFunc(gone, func(a, b link) int { return cmp.Compare(a.seq, b.seq) })
	for i := 0; i < len(gone); {
		from := gone[i].seq
		for i++; i < len(gone) && gone[i].seq-gone[i-1].seq <= 1; i++ {
		}
		if err := leaveRun(ctx, c, from, gone[i-1]); err != nil {
			return err
		}
	}
	return nil
}

// leaveRun keeps the hash of the last of a run, together with the runs that it
// touches.
func leaveRun(ctx context.Context, c *rawConn, from int64, last link) error {
	var before, after int64
	found, err := first(ctx, c, into{&before}, "SELECT first FROM activity_gap WHERE seq = ?", from-1)
	if err != nil {
		return err
	}
	if found {
		c.do("DELETE FROM activity_gap WHERE seq = ?", from-1)
		from = before
	}
	found, err = first(ctx, c, into{&after}, "SELECT seq FROM activity_gap WHERE first = ?", last.seq+1)
	if found {
		c.do("UPDATE activity_gap SET first = ? WHERE seq = ?", from, after)
	} else if err == nil {
		c.do("INSERT OR REPLACE INTO activity_gap (seq, hash, first) VALUES (?, ?, ?)", last.seq, last.hash, from)
	}
	return err
}
