package ops

import (
	"mcpproxy/internal/store/activity"
)

// chunk is what happened after one place up to another, as it is sent.
type chunk struct {
	from, to activity.Place
	data     []byte
	events   []event
}

// event is one event of a chunk.
type event struct {
	kind EventKind
	seq  int64 // of its place
	end  int   // where it ends in data
}

// note notes the event that was appended to data.
func (c *chunk) note(kind EventKind, at activity.Place) {
	c.events = append(c.events, event{kind, at.Seq, len(c.data)})
}

// after is the part of a chunk for a listener who was told everything up to an
// entry, and wants these kinds; nil is all. A change that has the place of that
// entry is news.
func (c *chunk) after(seq int64, kinds map[EventKind]bool) []byte {
	if seq <= c.from.Seq && kinds == nil {
		return c.data
	}
	var part []byte
	begin := 0
	for _, e := range c.events {
		fresh := e.seq > seq || c.from == c.to // it tells of no entry
		if fresh && (kinds == nil || kinds[e.kind] || e.kind == EventReset) {
			part = append(part, c.data[begin:e.end]...)
		}
		begin = e.end
	}
	return part
}

// add adds the event of an entry.
func (c *chunk) add(s *activity.Step) {
	c.to = s.Place
	if kind := kindOf(s); kind != "" {
		c.data = appendStep(c.data, kind, s)
		c.note(kind, s.Place)
	}
}

// maxRecent is how many bytes of chunks are kept for who is a little late. Who is
// later reads from the log again.
const maxRecent = 4 << 20

// eventsRecent is the newest chunks. They are numbered, so that who has read some knows
// which one comes next.
type eventsRecent struct {
	live   bool           // somebody listens, and what happens is put here
	head   activity.Place // up to which everything is told
	chunks []*chunk
	next   uint64 // the number of the chunk that will follow the last one
	bytes  int
	more   chan struct{} // closed and replaced when there is something new
}

// add puts a chunk behind the others.
func (r *eventsRecent) add(c *chunk) {
	r.chunks = append(r.chunks, c)
	r.bytes += len(c.data)
	r.next++
	r.head = c.to
	for r.bytes > maxRecent && len(r.chunks) > 1 {
		r.bytes -= len(r.chunks[0].data)
		r.chunks[0] = nil
		r.chunks = r.chunks[1:]
	}
	r.tell()
}

// begin begins anew at a place, end forgets everything.
func (r *eventsRecent) begin(at activity.Place) {
	r.live, r.head = true, at
	r.tell()
}

func (r *eventsRecent) end() { *r = eventsRecent{next: r.next, more: r.more} }

func (r *eventsRecent) tell() {
	close(r.more)
	r.more = make(chan struct{})
}

// since returns the chunks from a number on; ok is false when some of them are not
// kept any more.
func (r *eventsRecent) since(number uint64) (chunks []*chunk, ok bool) {
	first := r.next - uint64(len(r.chunks))
	if number < first {
		return nil, false
	}
	return append(chunks, r.chunks[number-first:]...), true
}

// join returns the number of the chunk that continues a place; ok is false when
// there is something between, or the place is not reached.
func (r *eventsRecent) join(at activity.Place) (number uint64, ok bool) {
	number = r.next
	for i := len(r.chunks) - 1; i >= 0 && r.chunks[i].to.Seq > at.Seq; i-- {
		number--
	}
	if number == r.next {
		return number, at.Seq == r.head.Seq
	}
	return number, r.chunks[len(r.chunks)-int(r.next-number)].from.Seq <= at.Seq
}
