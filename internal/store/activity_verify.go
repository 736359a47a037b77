package store

import (
	"bytes"
	"container/heap"
	"context"
	"database/sql"
	"time"

	"mcpproxy/internal/store/activity"
)

const (
	// chainRows is how many rows are read at a time.
	chainRows = 256
	// chainAhead is how many entries are read past one that is missing: it may come
	// with a later row, as an end does whose beginning is gone.
	chainAhead = 4096
	// chainHeld is how many bytes of entries are kept that came before their turn, the
	// ends of long calls. Beyond, they are read again.
	chainHeld = 16 << 20
)

// EachChainPart calls fn for every entry in order. Readers of this database see it as it was
// when they began, and hold up no writer.
func (p proofs) EachChainPart(ctx context.Context, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	e, err := p.db.use(ctx)
	if err != nil {
		return 0, end, err
	}
	return chainIn(ctx, e.reads, fn)
}

// chainIn calls fn for every entry that a database has, in order.
func chainIn(ctx context.Context, db *sql.DB, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, end, err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	done, ctx := ctx, context.WithoutCancel(ctx)
	var hash []byte
	err = tx.QueryRowContext(ctx, "SELECT chain, seq, hash, segment, offset FROM activity_position").
		Scan(&end.Chain, &end.Seq, &hash, &end.Segment, &end.Offset)
	if err != nil {
		return 0, end, err
	}
	copy(end.Hash[:], hash)
	w := chainWalk{source: chainOf{tx}, fn: fn}
	if err := eachMark(ctx, tx, end.Chain, w.mark); err != nil {
		return 0, end, err
	}
	err = w.walk(ctx, done.Err)
	return w.records, end, err
}

// chainOf is the chain of a database with one.
type chainOf struct{ tx *sql.Tx }

func (c chainOf) chainRows(ctx context.Context, from int64, fn func(*chainRow) error) error {
	var r chainRow
	var seq, endSeq sql.NullInt64
	var hash, endHash sql.RawBytes
	return each(ctx, c.tx, into{&r.key, &seq, &hash, &endSeq, &endHash, &r.entry, &r.outcome}, func() error {
		r.seq, r.hash, r.endSeq, r.ended, r.endHash = seq.Int64, hash, endSeq.Int64, endSeq.Valid, endHash
		return fn(&r)
	}, "SELECT key, seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE key >= ? ORDER BY key LIMIT ?", from, chainRows)
}

func (c chainOf) chainOutcome(ctx context.Context, key int64) (outcome []byte, err error) {
	err = c.tx.QueryRowContext(ctx, "SELECT outcome FROM activity WHERE key = ?", key).Scan(&outcome)
	return outcome, err
}

// chainRow is a record as the walk reads it. The hashes are valid until the next one is read.
type chainRow struct {
	key, seq, endSeq int64
	ended            bool
	hash, endHash    []byte
	entry, outcome   []byte
}

// chainSource has the rows of one chain.
type chainSource interface {
	// chainRows calls fn for up to chainRows rows from a key on.
	chainRows(ctx context.Context, from int64, fn func(*chainRow) error) error
	chainOutcome(ctx context.Context, key int64) ([]byte, error)
}

// chainWalk brings the entries into their order: rows come in the order in which
// their records began, and have their ends with them.
type chainWalk struct {
	source  chainSource
	fn      func(activity.ChainPart) error
	next    int64 // the key to read from
	records int64
	last    int64 // the number of the last entry that was passed on
	ahead   int64 // the highest number of an entry that began a record
	waiting chainParts
	held    int
}

// chainPart is an entry that waits for its turn.
type chainPart struct {
	activity.ChainPart
	key   int64
	again bool // its text is to be read again
}

// chainParts is a heap: that with the lowest number is on top.
type chainParts []chainPart

func (h chainParts) Len() int { return len(h) }
func (h chainParts) Less(i, j int) bool {
	if h[i].First != h[j].First {
		return h[i].First < h[j].First
	}
	return h[i].Checkpoint == nil && h[j].Checkpoint != nil // which comes after its entry
}
func (h chainParts) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *chainParts) Push(x any)   { *h = append(*h, x.(chainPart)) }
func (h *chainParts) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = chainPart{}
	*h = (*h)[:len(*h)-1]
	return last
}

// EachChainMark calls fn for what is gone and for what is signed.
func (p proofs) EachChainMark(ctx context.Context, fn func(activity.ChainPart) error) error {
	e, err := p.db.use(ctx)
	if err != nil {
		return err
	}
	tx, err := e.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	ctx = context.WithoutCancel(ctx)
	var chain string
	if err := tx.QueryRowContext(ctx, "SELECT chain FROM activity_position").Scan(&chain); err != nil {
		return err
	}
	return eachMark(ctx, tx, chain, fn)
}

// eachMark calls fn for what is gone and for what is signed of a chain, in the order of the
// numbers.
func eachMark(ctx context.Context, db querier, chain string, fn func(activity.ChainPart) error) error {
	var from, seq, at int64
	var hash, key, signature []byte
	var what string
	return each(ctx, db, into{&from, &seq, &hash, &at, &key, &signature, &what}, func() error {
		p := activity.ChainPart{First: from, Seq: seq, Gone: what != "signed", Pruned: what == "pruned"}
		copy(p.Hash[:], hash)
		if p.Gone {
			if err := fn(p); err != nil {
				return err
			}
		}
		if signature == nil {
			return nil
		}
		return fn(activity.ChainPart{First: seq, Seq: seq, Checkpoint: &activity.Checkpoint{
			Chain: chain, Seq: seq, Hash: p.Hash, Time: time.UnixMicro(at).UTC(), Pruned: p.Pruned, Key: bytes.Clone(key), Signature: bytes.Clone(signature),
		}})
	}, `SELECT 1 AS first, seq, hash, time, key, signature, 'pruned' FROM activity_checkpoint
		UNION ALL SELECT first, seq, hash, 0, NULL, NULL, 'gone' FROM activity_gap
		UNION ALL SELECT seq, seq, hash, time, key, signature, 'signed' FROM activity_signed WHERE chain = ? ORDER BY first, seq`, chain)
}

// mark takes what was pruned or signed.
func (w *chainWalk) mark(p activity.ChainPart) error {
	heap.Push(&w.waiting, chainPart{ChainPart: p})
	return nil
}

// walk passes everything on. failed says why it ends before.
func (w *chainWalk) walk(ctx context.Context, failed func() error) error {
	for more := true; more; {
		err := failed()
		if err == nil {
			more, err = w.readRows(ctx)
		}
		if err != nil {
			return err
		}
	}
	return w.pass(ctx, true)
}

// readRows reads some rows and passes on whose turn it is. It reports whether there
// may be more.
func (w *chainWalk) readRows(ctx context.Context) (more bool, err error) {
	rows := 0
	err = w.source.chainRows(ctx, w.next, func(r *chainRow) error {
		rows++
		w.next = r.key + 1
		if r.entry != nil || r.hash != nil {
			w.push(chainPart{activity.ChainPart{First: r.seq, Seq: r.seq, Payload: r.entry, Record: r.key + 1}, r.key, false}, r.hash)
			w.ahead = max(w.ahead, r.seq)
		}
		if r.outcome != nil || r.endHash != nil || r.ended && r.endSeq != r.seq {
			w.push(chainPart{activity.ChainPart{First: r.endSeq, Seq: r.endSeq, Payload: r.outcome}, r.key, false}, r.endHash)
		}
		return nil
	})
	w.records += int64(rows)
	if err != nil {
		return false, err
	}
	return rows == chainRows, w.pass(ctx, false)
}

func (w *chainWalk) push(p chainPart, hash []byte) {
	if len(hash) == len(p.Hash) { // else it fits nothing
		copy(p.Hash[:], hash)
	}
	if w.held+len(p.Payload) > chainHeld && p.Record == 0 {
		p.Payload, p.again = nil, true
	}
	w.held += len(p.Payload)
	heap.Push(&w.waiting, p)
}

// pass passes on the entries whose turn it is, or all.
func (w *chainWalk) pass(ctx context.Context, all bool) error {
	for len(w.waiting) > 0 {
		next := w.last + 1
		if w.waiting[0].Checkpoint != nil { // its entry comes before it
			next = w.last
		}
		if w.waiting[0].First > next && w.ahead <= w.last+1+chainAhead && !all {
			return nil
		}
		p := heap.Pop(&w.waiting).(chainPart)
		w.held -= len(p.Payload)
		if p.again {
			var err error
			if p.Payload, err = w.source.chainOutcome(ctx, p.key); err != nil {
				return err
			}
		}
		if p.Checkpoint == nil {
			w.last = max(w.last, p.Seq)
		}
		if err := w.fn(p.ChainPart); err != nil {
			return err
		}
	}
	return nil
}
