package ops

import (
	"mcpproxy/internal/store/activity"
)

// eventChunk contains the encoded events between two log positions.
type eventChunk struct {
	from, to activity.ChainPosition
	data     []byte
	events   []chunkEvent
}

// chunkEvent is one event of a chunk.
type chunkEvent struct {
	kind EventKind
	seq  int64 // sequence number of its log position
	end  int   // offset of its end in data
}

// registerAppendedEvent registers an event that was just appended to data.
func (c *eventChunk) registerAppendedEvent(kind EventKind, at activity.ChainPosition) {
	c.events = append(c.events, chunkEvent{kind, at.Seq, len(c.data)})
}

// eventsAfter returns the events of the given kinds after a log entry; nil means all kinds. It includes change events
// at the position of that entry, because they are new.
func (c *eventChunk) eventsAfter(seq int64, kinds map[EventKind]bool) []byte {
	if seq <= c.from.Seq && kinds == nil {
		return c.data
	}
	var part []byte
	begin := 0
	for _, e := range c.events {
		fresh := e.seq > seq || c.from == c.to // the chunk contains no log entries, only change events
		if fresh && (kinds == nil || kinds[e.kind] || e.kind == EventReset) {
			part = append(part, c.data[begin:e.end]...)
		}
		begin = e.end
	}
	return part
}

// addActivityEntry appends the event for a log entry, if it has one.
func (c *eventChunk) addActivityEntry(s *activity.EntryEvent) {
	c.to = s.ChainPosition
	if kind := eventKindOf(s); kind != "" {
		c.data = appendEvent(c.data, s.ChainPosition, kind, NewEventRecord(s.ID, &s.Facts))
		c.registerAppendedEvent(kind, s.ChainPosition)
	}
}

// maxBufferBytes limits the total size of the buffered chunks. A listener that is too slow reads from the log instead.
const maxBufferBytes = 4 << 20

// eventBuffer contains the newest chunks. They are numbered, so that each listener can store the number of its next
// chunk.
type eventBuffer struct {
	live   bool                   // whether events are collected, because there are listeners
	head   activity.ChainPosition // position up to which everything was sent
	chunks []*eventChunk
	next   uint64 // number of the next chunk
	bytes  int
	more   chan struct{} // closed and replaced when a chunk is added
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

// start begins to collect events after a position. stop drops all collected events.
func (r *eventBuffer) start(at activity.ChainPosition) {
	r.live, r.head = true, at
	r.wakeListeners()
}

func (r *eventBuffer) stop() { *r = eventBuffer{next: r.next, more: r.more} }

func (r *eventBuffer) wakeListeners() {
	close(r.more)
	r.more = make(chan struct{})
}

// chunksFrom returns the chunks from a number on. ok is false if some of them were dropped.
func (r *eventBuffer) chunksFrom(number uint64) (chunks []*eventChunk, ok bool) {
	first := r.next - uint64(len(r.chunks))
	if number < first {
		return nil, false
	}
	return append(chunks, r.chunks[number-first:]...), true
}

// chunkNumberAfter returns the number of the chunk that continues at a position. ok is false if chunks after the
// position were dropped, or if the buffer has not reached it yet.
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
