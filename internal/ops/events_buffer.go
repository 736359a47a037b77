package ops

import (
	"mcpproxy/internal/store/activity"
)

// eventChunk is the encoded events between two log positions.
type eventChunk struct {
	from, to activity.ChainPosition
	data     []byte
	events   []chunkEvent
}

// chunkEvent is one event of a chunk.
type chunkEvent struct {
	kind EventKind
	seq  int64 // offset of its end in data
	end  int   // where it ends in data
}

// registerAppendedEvent registers the event that was appended to data.
func (c *eventChunk) registerAppendedEvent(kind EventKind, at activity.ChainPosition) {
	c.events = append(c.events, chunkEvent{kind, at.Seq, len(c.data)})
}

// eventsAfter returns the events of these kinds (nil is all) after an entry. Change events at that entry are included, because they are new.
func (c *eventChunk) eventsAfter(seq int64, kinds map[EventKind]bool) []byte {
	if seq <= c.from.Seq && kinds == nil {
		return c.data
	}
	var part []byte
	begin := 0
	for _, e := range c.events {
		fresh := e.seq > seq || c.from == c.to // it belongs to no entry
		if fresh && (kinds == nil || kinds[e.kind] || e.kind == EventReset) {
			part = append(part, c.data[begin:e.end]...)
		}
		begin = e.end
	}
	return part
}

// addActivityEntry appends the event of a log entry.
func (c *eventChunk) addActivityEntry(s *activity.EntryEvent) {
	c.to = s.ChainPosition
	if kind := eventKindOf(s); kind != "" {
		c.data = appendEvent(c.data, s.ChainPosition, kind, NewEventRecord(s.ID, &s.Facts))
		c.registerAppendedEvent(kind, s.ChainPosition)
	}
}

// maxBufferBytes limits the buffered chunks. A slower listener reads from the log again.
const maxBufferBytes = 4 << 20

// eventBuffer has the newest chunks. They are numbered, so that a listener knows which one comes next.
type eventBuffer struct {
	live   bool                   // there are listeners, and events are collected
	head   activity.ChainPosition // position up to which everything was sent
	chunks []*eventChunk
	next   uint64 // number of the next chunk
	bytes  int
	more   chan struct{} // closed and replaced when there is a new chunk
}

// addChunk appends a chunk.
func (r *eventBuffer) addChunk(c *eventChunk) {
	r.chunks = append(r.chunks, c)
	r.bytes += len(c.data)
	r.next++
	r.head = c.to
	for r.bytes > maxBufferBytes && len(r.chunks) > 1 {
		r.bytes -= len(r.chunks[0].data)
		r.chunks[0] = nil
		r.chunks = r.chunks[1:]
	}
	r.wakeListeners()
}

// start begins to collect events after a position; stop drops everything that was collected.
func (r *eventBuffer) start(at activity.ChainPosition) {
	r.live, r.head = true, at
	r.wakeListeners()
}

func (r *eventBuffer) stop() { *r = eventBuffer{next: r.next, more: r.more} }

func (r *eventBuffer) wakeListeners() {
	close(r.more)
	r.more = make(chan struct{})
}

// chunksFrom returns the chunks from a number on. ok is false when some were dropped.
func (r *eventBuffer) chunksFrom(number uint64) (chunks []*eventChunk, ok bool) {
	first := r.next - uint64(len(r.chunks))
	if number < first {
		return nil, false
	}
	return append(chunks, r.chunks[number-first:]...), true
}

// chunkNumberAfter returns the number of the chunk that continues a position. ok is false when chunks between were dropped, or the position is not reached yet.
func (r *eventBuffer) chunkNumberAfter(at activity.ChainPosition) (number uint64, ok bool) {
	number = r.next
	for i := len(r.chunks) - 1; i >= 0 && r.chunks[i].to.Seq > at.Seq; i-- {
		number--
	}
	if number == r.next {
		return number, at.Seq == r.head.Seq
	}
	return number, r.chunks[len(r.chunks)-int(r.next-number)].from.Seq <= at.Seq
}
