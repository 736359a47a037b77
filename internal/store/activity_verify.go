package store

import (
	"container/heap"
	"context"
	"database/sql"
	"time"

	"mcpproxy/internal/store/activity"
)

const (
	// chainRowsPerRead is the number of rows that are read at a time.
	chainRowsPerRead = 256
	// maxChainAhead is the number of entries that are read after a missing entry. The missing entry may be in a later
	// row, for example an end whose beginning was pruned.
	maxChainAhead = 4096
	// maxChainHeldBytes limits the memory for entries that were read early, which are the ends of long calls. Above it,
	// such entries are read again later.
	maxChainHeldBytes = 16 << 20
)

// EachChainPart calls fn for every entry of this instance in order, in one snapshot of the database. It does not block
// writers.
func (s *commonStore) EachChainPart(ctx context.Context, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	stopped := ctx.Err
	err = s.db.snapshot(ctx, func(ctx context.Context, r sqlReader) error {
		records, end, err = readChain(ctx, r, stopped, fn)
		return err
	})
	return records, end, err
}

// readChain calls fn for every entry of an instance, in order. If stopped returns an error, readChain stops and returns
// it.
func readChain(ctx context.Context, r sqlReader, stopped func() error, fn func(activity.ChainPart) error) (records int64, end activity.SpoolPosition, err error) {
	if end, err = readPosition(ctx, r); err != nil {
		return 0, end, err
	}
	w := chainEmitter{db: r, fn: fn}
	if err := eachGapAndCheckpoint(ctx, r, end.Chain, w.addGapOrCheckpoint); err != nil {
		return 0, end, err
	}
	err = w.emitAll(ctx, stopped)
	return w.records, end, err
}

// readPosition returns the end of the chain in the database, and the position in the spool.
func readPosition(ctx context.Context, r sqlReader) (pos activity.SpoolPosition, err error) {
	var hash []byte
	_, err = r.firstRow(ctx, scanTargets{&pos.Chain, &pos.Seq, &hash, &pos.Segment, &pos.Offset, &pos.Signer, &pos.HasPendingErasures},
		"SELECT chain, seq, hash, segment, {file_}offset, signer, EXISTS (SELECT 1 FROM activity_erasing{ WHERE instance = @instance}) FROM "+ownPosition)
	copy(pos.Hash[:], hash)
	return pos, err
}

// ownPosition selects the row with the position in the spool.
const ownPosition = "{instance WHERE id = @instance|activity_position}"

// chainRow is a row of a record. The hashes are valid until the next row is read.
type chainRow struct {
	key, seq, endSeq int64
	ended            bool
	hash, endHash    []byte
	entry, outcome   []byte
}

// chainEmitter emits the entries of a chain in order. Rows are in the order of their beginnings and also contain the
// ends, so chainEmitter must delay some entries.
type chainEmitter struct {
	db          sqlReader
	fn          func(activity.ChainPart) error
	next        int64 // key of the next row to read
	records     int64
	lastEmitted int64 // sequence number of the last emitted entry
	ahead       int64 // highest sequence number of a beginning that was read
	waiting     waitingEntryHeap
	heldBytes   int
}

// waitingChainEntry is an entry that must be emitted later.
type waitingChainEntry struct {
	activity.ChainPart
	key           int64
	rereadPayload bool // whether the payload must be read again
}

// waitingEntryHeap is a heap with the lowest sequence number at the top.
type waitingEntryHeap []waitingChainEntry

func (h waitingEntryHeap) Len() int { return len(h) }
func (h waitingEntryHeap) Less(i, j int) bool {
	if h[i].First != h[j].First {
		return h[i].First < h[j].First
	}
	return h[i].Checkpoint == nil && h[j].Checkpoint != nil // a checkpoint comes after its entry
}
func (h waitingEntryHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *waitingEntryHeap) Push(x any)   { *h = append(*h, x.(waitingChainEntry)) }
func (h *waitingEntryHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = waitingChainEntry{}
	*h = (*h)[:len(*h)-1]
	return last
}

// EachGapAndCheckpoint calls fn for deleted runs of entries and for signed checkpoints.
func (s *commonStore) EachGapAndCheckpoint(ctx context.Context, fn func(activity.ChainPart) error) error {
	return s.db.snapshot(ctx, func(ctx context.Context, r sqlReader) error {
		pos, err := readPosition(ctx, r)
		if err != nil {
			return err
		}
		return eachGapAndCheckpoint(ctx, r, pos.Chain, fn)
	})
}

// eachGapAndCheckpoint calls fn for the deleted runs of entries in a chain and for its signed checkpoints, ordered by
// sequence number.
func eachGapAndCheckpoint(ctx context.Context, r sqlReader, chain string, fn func(activity.ChainPart) error) error {
	var from, seq, at int64
	var hash, key, signature []byte
	var what string
	return r.eachRow(ctx, scanTargets{&from, &seq, &hash, &at, &key, &signature, &what}, func() error {
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
		return fn(activity.ChainPart{First: seq, Seq: seq, Checkpoint: &activity.SignedCheckpoint{
			Chain: chain, Seq: seq, Hash: p.Hash, Time: time.UnixMicro(at).UTC(), Pruned: p.Pruned, Key: key, Signature: signature,
		}})
	}, `SELECT 1{::bigint} AS first, seq, hash, time, key, signature, 'pruned'{::text} FROM activity_checkpoint{ WHERE instance = @instance}
		UNION ALL SELECT first, seq, hash, 0, NULL, NULL, 'gone' FROM activity_gap{ WHERE instance = @instance}
		UNION ALL SELECT seq, seq, hash, time, key, signature, 'signed' FROM activity_signed WHERE {instance = @instance AND} chain = ? ORDER BY 1, 2`, chain)
}

// addGapOrCheckpoint adds a deleted run or a signed checkpoint.
func (w *chainEmitter) addGapOrCheckpoint(p activity.ChainPart) error {
	heap.Push(&w.waiting, waitingChainEntry{ChainPart: p})
	return nil
}

// emitAll emits all entries. If failed returns an error, emitAll stops and returns it.
func (w *chainEmitter) emitAll(ctx context.Context, failed func() error) error {
	for more := true; more; {
		err := failed()
		if err == nil {
			more, err = w.emitNextRows(ctx)
		}
		if err != nil {
			return err
		}
	}
	return w.emitReady(ctx, true)
}

// emitNextRows reads some rows, and emits all entries that are next in the chain. It reports whether there may be more
// rows.
func (w *chainEmitter) emitNextRows(ctx context.Context) (more bool, err error) {
	rows := 0
	err = w.readRows(ctx, func(r *chainRow) error {
		rows++
		w.next = r.key + 1
		if r.entry != nil || r.hash != nil {
			w.addEntry(waitingChainEntry{activity.ChainPart{First: r.seq, Seq: r.seq, Payload: r.entry, Record: r.key + 1}, r.key, false}, r.hash)
			w.ahead = max(w.ahead, r.seq)
		}
		if r.outcome != nil || r.endHash != nil || r.ended && r.endSeq != r.seq {
			w.addEntry(waitingChainEntry{activity.ChainPart{First: r.endSeq, Seq: r.endSeq, Payload: r.outcome}, r.key, false}, r.endHash)
		}
		return nil
	})
	w.records += int64(rows)
	if err != nil {
		return false, err
	}
	return rows == chainRowsPerRead, w.emitReady(ctx, false)
}

// readRows calls fn for up to chainRowsPerRead rows.
func (w *chainEmitter) readRows(ctx context.Context, fn func(*chainRow) error) error {
	var r chainRow
	var seq, endSeq sql.NullInt64
	var hash, endHash sql.RawBytes
	return w.db.eachRow(ctx, scanTargets{&r.key, &seq, &hash, &endSeq, &endHash, &r.entry, &r.outcome}, func() error {
		r.seq, r.hash, r.endSeq, r.ended, r.endHash = seq.Int64, hash, endSeq.Int64, endSeq.Valid, endHash
		return fn(&r)
	}, "SELECT key, seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE {instance = @instance AND} key >= ? ORDER BY key LIMIT ?", w.next, int64(chainRowsPerRead))
}

func (w *chainEmitter) readOutcome(ctx context.Context, key int64) (outcome []byte, err error) {
	_, err = w.db.firstRow(ctx, scanTargets{&outcome}, "SELECT outcome FROM activity WHERE {instance = @instance AND} key = ?", key)
	return outcome, err
}

func (w *chainEmitter) addEntry(p waitingChainEntry, hash []byte) {
	if len(hash) == len(p.Hash) { // a hash of another size cannot match
		copy(p.Hash[:], hash)
	}
	if w.heldBytes+len(p.Payload) > maxChainHeldBytes && p.Record == 0 {
		p.Payload, p.rereadPayload = nil, true
	}
	w.heldBytes += len(p.Payload)
	heap.Push(&w.waiting, p)
}

// emitReady emits the waiting entries that are next in the chain, or all waiting entries.
func (w *chainEmitter) emitReady(ctx context.Context, all bool) error {
	for len(w.waiting) > 0 {
		next := w.lastEmitted + 1
		if w.waiting[0].Checkpoint != nil { // the entry of the checkpoint comes first
			next = w.lastEmitted
		}
		if w.waiting[0].First > next && w.ahead <= w.lastEmitted+1+maxChainAhead && !all {
			return nil
		}
		p := heap.Pop(&w.waiting).(waitingChainEntry)
		w.heldBytes -= len(p.Payload)
		if p.rereadPayload {
			var err error
			if p.Payload, err = w.readOutcome(ctx, p.key); err != nil {
				return err
			}
		}
		if p.Checkpoint == nil {
			w.lastEmitted = max(w.lastEmitted, p.Seq)
		}
		if err := w.fn(p.ChainPart); err != nil {
			return err
		}
	}
	return nil
}
