package store

import (
	"context"
	"database/sql"

	"mcpproxy/internal/store/activity"
)

// Refused calls have a quota of their own, beside what the log may keep of
// everything else: a tenth of it. So whoever is refused, however often, pushes
// nothing else out; and what is past the quota goes from among records that
// stay, which leaves holes.

const (
	refusedShare = 10
	// leastRefused is the quota of refusals, however little the log may keep.
	leastRefused = 1000
	// refusedCost is what a refusal takes of the file, in times of its text: it has
	// its part of the columns and of the text index.
	refusedCost = 2
)

// refusedBytes is the size of the marked records of a chunk that is about to be
// sealed.
func (e *engine) refusedBytes(ctx context.Context, first int64, marked *bitmap) (size int64, err error) {
	if marked == nil {
		return 0, nil
	}
	var key, n int64
	err = each(ctx, e.conn, into{&key, &n}, func() error {
		if marked.has(int(key - first)) {
			size += n
		}
		return nil
	}, "SELECT key, coalesce(length(entry), 0) + coalesce(length(outcome), 0) FROM activity WHERE key >= ? AND key < ?",
		first, first+chunkSize)
	return size, err
}

// kept is how many records there are.
type kept struct {
	refused, others int64
	refusedBytes    int64
	firstRefused    int64 // the chunk of the oldest refusal that is in one; -1: none is
	firstAlive      int64 // the key of the first record that is there
}

// kept counts. The engine's mu is held.
func (x *index) kept() kept {
	k := kept{firstRefused: -1, firstAlive: -1}
	all := x.nextKey - x.firstKey
	for i, c := range x.chunks {
		first := (x.firstChunk + int64(i)) * chunkSize
		from := max(0, x.firstKey-first)
		all -= c.gone.count(from)
		if n := c.refused.count(from); n > 0 {
			k.refused += n
			k.refusedBytes += c.refusedBytes
			if k.firstRefused < 0 {
				k.firstRefused = x.firstChunk + int64(i)
			}
		}
		for at := from; k.firstAlive < 0 && at < chunkSize; at++ {
			if !c.gone.has(int(at)) {
				k.firstAlive = first + at
			}
		}
	}
	if k.firstAlive < 0 {
		k.firstAlive = max(x.firstKey, x.tail.first)
	}
	k.refusedBytes += x.tail.refusedBytes
	for _, v := range x.tail.columns[fieldType][min(max(0, x.firstKey-x.tail.first), int64(len(x.tail.times))):] {
		if v == refusedType {
			k.refused++
		}
	}
	k.others = all - k.refused
	return k
}

// excess is how many of the oldest refusals are past their quota. Those that are
// in no chunk yet stay.
func (k kept) excess(keep activity.Retention) int64 {
	if k.firstRefused < 0 {
		return 0
	}
	over := int64(0)
	if keep.MaxRecords > 0 {
		over = k.refused - max(leastRefused, keep.MaxRecords/refusedShare)
	}
	if keep.MaxBytes > 0 && refusedCost*k.refusedBytes > keep.MaxBytes/refusedShare {
		over = max(over, chunkSize)
	}
	return max(0, over)
}

// pruneRefused removes the oldest refusals of a chunk, most at most, and leaves
// what is needed to verify the rest of the chain.
func (e *engine) pruneRefused(ctx context.Context, chunk, most int64) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	i := chunk - e.index.firstChunk
	c := e.index.chunks[i]
	first := chunk * chunkSize
	going, gone := bitmap{}, bitmap{}
	if c.gone != nil {
		gone = *c.gone
	}
	left := *c.refused
	for at := max(0, e.index.firstKey-first); at < chunkSize && most > 0; at++ {
		if bit := uint64(1) << (at % 64); left[at/64]&bit != 0 {
			going[at/64], gone[at/64], left[at/64] = going[at/64]|bit, gone[at/64]|bit, left[at/64]&^bit
			most--
		}
	}
	c.refused, c.gone = left.orNil(), gone.orNil()
	err := e.conn.tx(ctx, func() (err error) {
		if err := e.drop(ctx, first, &going); err != nil {
			return err
		}
		if c.refusedBytes, err = e.refusedBytes(ctx, first, c.refused); err != nil {
			return err
		}
		if c.segments != nil { // made anew, without what has gone
			e.dropText(chunk, chunk+1)
			if c.segments, err = e.indexChunk(ctx, chunk); err != nil {
				return err
			}
		}
		e.dropHours(chunk)
		e.conn.do("UPDATE activity_chunk SET gone = ?, refused_bytes = ? WHERE chunk = ?", gone.encode(), c.refusedBytes, chunk)
		return nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.index.chunks[i] = c
	e.mu.Unlock()
	return nil
}

// drop removes the marked records of a chunk.
func (e *engine) drop(ctx context.Context, first int64, marked *bitmap) error {
	links, keys, err := readLinks(ctx, e.conn, first, first+chunkSize, func(key int64) bool { return marked.has(int(key - first)) })
	if err != nil {
		return err
	}
	for _, key := range keys {
		e.conn.do("DELETE FROM activity WHERE key = ?", key)
	}
	return leave(ctx, e.conn, links)
}

// dropHours removes the refusals of the roll-up that are older than those which
// stay: who is refused chooses the names in it.
func (e *engine) dropHours(chunk int64) {
	e.conn.do("DELETE FROM activity_hour WHERE type = ? AND hour < ?",
		string(activity.PolicyDecision), hourOf(e.index.chunks[chunk-e.index.firstChunk].minTime))
}

// repeat brings the count of a refusal up to date. What told the count before
// leaves its hash, and so does a count whose record has gone.
func (p *projection) repeat(ctx context.Context, n *activity.Entry) error {
	key, err := p.findRefused(ctx, n.ID)
	if err != nil {
		return err
	}
	if key < 0 {
		return leave(ctx, p.e.conn, []link{{n.Seq, n.Hash[:]}})
	}
	var before sql.NullInt64
	var hash []byte
	if err := p.e.conn.QueryRowContext(ctx, "SELECT end_seq, end_hash FROM activity WHERE key = ?", key).Scan(&before, &hash); err != nil {
		return err
	}
	if hash != nil {
		if err := leave(ctx, p.e.conn, []link{{before.Int64, hash}}); err != nil {
			return err
		}
	}
	p.e.conn.do(updateEnd, n.Seq, n.Hash[:], n.Payload, key)
	p.set(key, fieldTimes, uint64(n.Facts.Repeats))
	return nil
}

// findRefused returns the key of a record, -1 when it is not there. Of most the
// key is still known.
func (p *projection) findRefused(ctx context.Context, id string) (int64, error) {
	if key, ok := p.e.refused[id]; ok {
		if at, found, err := idFrom(ctx, p.e.conn, key); err != nil || at == key && found == id {
			return at, err
		}
	}
	keys, err := find(ctx, p.e.conn, id, id, p.e.index.firstKey, p.next)
	if err != nil || len(keys) == 0 {
		return -1, err
	}
	return keys[0], nil
}

// noteRefused remembers the key of a refusal, whose count may follow.
func (e *engine) noteRefused(id string, key int64) {
	const enough = 4096
	if len(e.refused) >= enough {
		clear(e.refused)
	}
	e.refused[id] = key
}
