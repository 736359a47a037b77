package activity

// blockSize is the size of the memory blocks into which entries are encoded. The same block is written to the file and
// read by the projector, so entries are never copied.
const blockSize = 128 << 10

// entryBlock contains lines of the spool in memory. The bytes up to written and the entries up to durable never change
// again.
type entryBlock struct {
	data    []byte
	entries []Entry
	written int
	durable int
}

// blockRange is the part of a block that one write includes.
type blockRange struct {
	block   *entryBlock
	data    []byte
	entries int // number of durable entries in the block after the write
}

// markWritten records that a range was written to a segment, and at which offsets its entries end.
func (b *entryBlock) markWritten(r blockRange, seg *segment) {
	for i := b.durable; i < r.entries; i++ {
		e := &b.entries[i]
		seg.size += int64(len(e.Payload) + lineOverhead)
		e.segment, e.offset = seg.first, seg.size
	}
	b.durable = r.entries
	b.written += len(r.data)
}

// entryQueue contains the newest entries in memory, oldest first. The mutex mu of the spool guards it.
type entryQueue struct {
	blocks []*entryBlock
	free   []*entryBlock
	bytes  int
	max    int
	ranges []blockRange
}

// blockWithRoom returns the block into which n more bytes can be encoded.
func (q *entryQueue) blockWithRoom(n int) *entryBlock {
	if k := len(q.blocks); k > 0 {
		if b := q.blocks[k-1]; cap(b.data)-len(b.data) >= n {
			return b
		}
	}
	b := q.newBlock(n)
	q.blocks = append(q.blocks, b)
	q.bytes += cap(b.data)
	q.dropOldest()
	return b
}

// newBlock returns an empty block with room for n bytes. It reuses an old block if possible.
func (q *entryQueue) newBlock(n int) *entryBlock {
	if k := len(q.free); k > 0 && n <= blockSize {
		b := q.free[k-1]
		q.free = q.free[:k-1]
		return b
	}
	return &entryBlock{data: make([]byte, 0, max(n, blockSize))}
}

// dropOldest drops the oldest entries from memory if the queue is too large. They are still in the files.
func (q *entryQueue) dropOldest() {
	for q.bytes > q.max && len(q.blocks) > 1 && q.blocks[0].isDurable() {
		q.bytes -= cap(q.blocks[0].data)
		q.blocks[0] = nil
		q.blocks = q.blocks[1:]
	}
}

func (b *entryBlock) isDurable() bool { return b.durable == len(b.entries) }

// unwrittenRanges returns the ranges that the next write must include. The result is valid until the next call.
func (q *entryQueue) unwrittenRanges() []blockRange {
	q.ranges = q.ranges[:0]
	first := len(q.blocks)
	for first > 0 && q.blocks[first-1].written < len(q.blocks[first-1].data) {
		first--
	}
	for _, b := range q.blocks[first:] {
		q.ranges = append(q.ranges, blockRange{b, b.data[b.written:], len(b.entries)})
	}
	return q.ranges
}

// discardUnwritten drops all entries that were not written.
func (q *entryQueue) discardUnwritten() {
	for _, b := range q.blocks {
		if !b.isDurable() {
			b.data = b.data[:b.written]
			clear(b.entries[b.durable:])
			b.entries = b.entries[:b.durable]
		}
	}
}

// copyEntriesAfter appends up to limit durable entries after the sequence number seq to dst.
func (q *entryQueue) copyEntriesAfter(dst []Entry, seq int64, limit int) []Entry {
	for _, b := range q.blocks {
		if b.durable == 0 || b.entries[b.durable-1].Seq <= seq {
			continue
		}
		from := max(0, int(seq+1-b.entries[0].Seq))
		to := min(b.durable, from+limit-len(dst))
		dst = append(dst, b.entries[from:to]...)
		if len(dst) >= limit || !b.isDurable() {
			return dst
		}
	}
	return dst
}

// releaseUpTo drops the blocks whose entries are all in the store.
func (q *entryQueue) releaseUpTo(seq int64) {
	for len(q.blocks) > 1 {
		b := q.blocks[0]
		if !b.isDurable() || len(b.entries) > 0 && b.entries[len(b.entries)-1].Seq > seq {
			return
		}
		q.blocks[0] = nil
		q.blocks = q.blocks[1:]
		q.bytes -= cap(b.data)
		q.recycleBlock(b)
	}
}

const freeBlocks = 8

func (q *entryQueue) recycleBlock(b *entryBlock) {
	if cap(b.data) > blockSize || len(q.free) >= freeBlocks {
		return
	}
	clear(b.entries)
	*b = entryBlock{data: b.data[:0], entries: b.entries[:0]}
	q.free = append(q.free, b)
}
