package store

import (
	"context"
	"database/sql"

	"mcpproxy/internal/store/activity"
)

// Refused calls have a separate quota, which is a tenth of the limit for all other records. So a caller with many
// refused calls does not displace other records. Refusals above the quota are pruned from between records that remain,
// which leaves gaps.

const (
	refusalShareDivisor = 10
	// minRefusals is the minimum quota of refusals.
	minRefusals = 1000
	// refusalSizeFactor is used to estimate the size of a refusal in the file from the size of its text, because the
	// text is also in the columns and in the text index.
	refusalSizeFactor = 2
)

// sizeOfMarkedRecords returns the total size of the marked records of a chunk.
func (e *sqliteEngine) sizeOfMarkedRecords(ctx context.Context, first int64, marked *bitmap) (size int64, err error) {
	if marked == nil {
		return 0, nil
	}
	var key, n int64
	err = eachRow(ctx, e.writeConn, scanTargets{&key, &n}, func() error {
		if marked.has(int(key - first)) {
			size += n
		}
		return nil
	}, "SELECT key, coalesce(length(entry), 0) + coalesce(length(outcome), 0) FROM activity WHERE key >= ? AND key < ?",
		first, first+chunkSize)
	return size, err
}

// storedRecordCounts contains the number and size of the stored records of an instance.
type storedRecordCounts struct {
	first, next     int64 // their keys are in [first, next)
	refused, others int64
	refusedBytes    int64
	firstRefused    int64 // the oldest chunk with a refusal; -1 if there is none
	firstAlive      int64 // the key of the oldest record
	// share is the instance's share of the records of all instances. The instance may use the same share of the limits.
	share float64
}

// shareOfLimit returns the part of a limit that the instance may use.
func (k *storedRecordCounts) shareOfLimit(all int64) int64 { return int64(float64(all) * k.share) }

// findFirstAlive sets firstAlive to the first record in a chunk that is not deleted, unless an earlier chunk had one.
// The argument chunk is the first key of the chunk, and deleted contains its deleted records.
func (k *storedRecordCounts) findFirstAlive(chunk int64, deleted *bitmap) {
	for at := max(0, k.first-chunk); k.firstAlive < 0 && at < chunkSize; at++ {
		if !deleted.has(int(at)) {
			k.firstAlive = chunk + at
		}
	}
}

// countStoredRecords counts the stored records. The caller must hold the engine's mu.
func (x *activityIndex) countStoredRecords() storedRecordCounts {
	k := storedRecordCounts{first: x.firstKey, next: x.nextKey, firstRefused: -1, firstAlive: -1, share: 1}
	all := x.nextKey - x.firstKey
	for i, c := range x.chunks {
		first := (x.firstChunk + int64(i)) * chunkSize
		from := max(0, x.firstKey-first)
		all -= c.deleted.countFrom(from)
		if n := c.refused.countFrom(from); n > 0 {
			k.refused += n
			k.refusedBytes += c.refusedBytes
			if k.firstRefused < 0 {
				k.firstRefused = x.firstChunk + int64(i)
			}
		}
		k.findFirstAlive(first, c.deleted)
	}
	if k.firstAlive < 0 {
		k.firstAlive = max(x.firstKey, x.tail.first)
	}
	k.refusedBytes += x.tail.refusedBytes
	for _, v := range x.tail.columns[fieldType][min(max(0, x.firstKey-x.tail.first), int64(len(x.tail.times))):] {
		if v == refusalHash {
			k.refused++
		}
	}
	k.others = all - k.refused
	return k
}

// refusalsOverQuota returns how many of the oldest refusals exceed their quota. Refusals that are not in a chunk yet
// are not pruned.
func (k *storedRecordCounts) refusalsOverQuota(keep activity.Retention) int64 {
	if k.firstRefused < 0 {
		return 0
	}
	over := int64(0)
	if keep.MaxRecords > 0 {
		over = k.refused - max(minRefusals, k.shareOfLimit(keep.MaxRecords)/refusalShareDivisor)
	}
	if keep.MaxBytes > 0 && refusalSizeFactor*k.refusedBytes > k.shareOfLimit(keep.MaxBytes)/refusalShareDivisor {
		over = max(over, chunkSize)
	}
	return max(0, over)
}

// pruneRefusals deletes up to most of the oldest refusals in a chunk. It keeps the hashes that are needed to verify the
// rest of the chain.
func (e *sqliteEngine) pruneRefusals(ctx context.Context, chunk, most int64) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	i := chunk - e.index.firstChunk
	c := e.index.chunks[i]
	first := chunk * chunkSize
	going, gone := bitmap{}, bitmap{}
	if c.deleted != nil {
		gone = *c.deleted
	}
	left := *c.refused
	for at := max(0, e.index.firstKey-first); at < chunkSize && most > 0; at++ {
		if bit := uint64(1) << (at % 64); left[at/64]&bit != 0 {
			going[at/64], gone[at/64], left[at/64] = going[at/64]|bit, gone[at/64]|bit, left[at/64]&^bit
			most--
		}
	}
	c.refused, c.deleted = left.nilIfEmpty(), gone.nilIfEmpty()
	err := e.writeConn.runTx(ctx, func() (err error) {
		if err := deleteMarkedRecords(ctx, e.writeConn, first, &going); err != nil {
			return err
		}
		if c.refusedBytes, err = e.sizeOfMarkedRecords(ctx, first, c.refused); err != nil {
			return err
		}
		if c.indexed { // the chunk is indexed again without the deleted records
			deleteTextIndexOfChunks(e.writeConn, chunk, chunk+1)
			if err := e.indexChunkText(ctx, chunk); err != nil {
				return err
			}
		}
		e.deleteOldRefusalsFromRollUp(chunk)
		e.writeConn.write("UPDATE activity_chunk SET gone = ?, refused_bytes = ? WHERE chunk = ?", gone.encode(), c.refusedBytes, chunk)
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

// deleteMarkedRecords deletes the marked records of a chunk.
func deleteMarkedRecords(ctx context.Context, t sqlTx, first int64, marked *bitmap) error {
	links, keys, err := readChainLinks(ctx, t, first, first+chunkSize, func(key int64) bool { return marked.has(int(key - first)) })
	if err != nil {
		return err
	}
	for _, key := range keys {
		t.write("DELETE FROM activity WHERE {instance = @instance AND} key = ?", key)
	}
	return saveGapHashes(ctx, t, links)
}

// deleteOldRefusalsFromRollUp deletes refusals from the hourly counts that are older than the stored refusals. Refused
// callers choose the names in these counts, so they must not stay forever.
func (e *sqliteEngine) deleteOldRefusalsFromRollUp(chunk int64) {
	e.writeConn.write("DELETE FROM activity_hour WHERE type = ? AND hour < ?",
		string(activity.PolicyDecision), hourOfMicros(e.index.chunks[chunk-e.index.firstChunk].minTime))
}

// updateRefusalCount stores a new count of a refusal.
func (p *projectionTx) updateRefusalCount(ctx context.Context, n *activity.Entry) error {
	key, err := p.findRefusalKey(ctx, n.ID)
	if err == nil {
		err = replaceRefusalCount(ctx, p.e.writeConn, key, n)
	}
	if err == nil && key >= 0 {
		p.noteFieldChange(key, fieldRepeats, uint64(n.Facts.Repeats))
	}
	return err
}

// replaceRefusalCount stores the entry with a new count in the row of a refusal. The hash of the entry with the
// previous count is kept. If the record was pruned, key is -1, and only the hash of the new entry is kept.
func replaceRefusalCount(ctx context.Context, t sqlTx, key int64, n *activity.Entry) error {
	if key < 0 {
		return saveGapHashes(ctx, t, []chainLink{{n.Seq, n.Hash[:]}})
	}
	var before sql.NullInt64
	var hash []byte
	_, err := t.firstRow(ctx, scanTargets{&before, &hash}, "SELECT end_seq, end_hash FROM activity WHERE {instance = @instance AND} key = ?", key)
	if err == nil && hash != nil {
		err = saveGapHashes(ctx, t, []chainLink{{before.Int64, hash}})
	}
	if err == nil {
		t.write(updateEnd, n.Seq, n.Hash[:], n.Payload, key)
	}
	return err
}

// findRefusalKey returns the key of a refusal, or -1 if it is not stored. The keys of recent refusals are cached.
func (p *projectionTx) findRefusalKey(ctx context.Context, id string) (int64, error) {
	if key, ok := p.e.refusalKeys[id]; ok {
		if at, found, err := firstRecordWithIDFrom(ctx, p.e.writeConn, key); err != nil || at == key && found == id {
			return at, err
		}
	}
	keys, err := findKeysInIDRange(ctx, p.e.writeConn, id, id, p.e.index.firstKey, p.nextKey)
	if err != nil || len(keys) == 0 {
		return -1, err
	}
	return keys[0], nil
}

// rememberRefusalKey caches the key of a refusal, because a count for it may follow.
func (e *sqliteEngine) rememberRefusalKey(id string, key int64) {
	const enough = 4096
	if len(e.refusalKeys) >= enough {
		clear(e.refusalKeys)
	}
	e.refusalKeys[id] = key
}
