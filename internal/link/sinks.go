package link

import (
	"sync"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/session"
)

// sink is where the notifications of one request over HTTP go. Those of the
// request's own stream and those of the server's stream come from two
// goroutines.
type sink struct {
	s *sent

	mu     sync.Mutex // guards closed, and orders the notifications
	closed bool

	late later
}

// put delivers a notification unless the request is over, and reports whether
// the caller wanted it. from is the request in whose stream it came, or nil. A
// nil sink wants nothing.
func (k *sink) put(m *jsonrpc.Message, from *sink) bool {
	if k == nil || !k.s.wants(m.Method) {
		return false
	}
	e := eventOf(m)
	if k.s.passes() && k != from {
		k.late.add(e.Clone(), k.deliver)
		return true
	}
	k.deliver(e)
	return true
}

func (k *sink) deliver(e session.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.s.deliver(e)
	}
}

// later is what came for a client in the stream of somebody else, who must not
// wait for that client. A goroutine hands it on while there is something.
type later struct {
	mu    sync.Mutex // guards what follows
	queue session.Queue
	runs  bool
	over  bool
	wg    sync.WaitGroup // of the goroutine
}

// add queues e; when the client is far behind it is dropped.
func (b *later) add(e session.Event, deliver func(session.Event)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue.Max, b.queue.Bytes = maxNotes, maxNoteBytes
	if b.over || !b.queue.Put(e) || b.runs {
		return
	}
	b.runs = true
	b.wg.Go(func() { b.run(deliver) })
}

func (b *later) run(deliver func(session.Event)) {
	for {
		b.mu.Lock()
		events := b.queue.Take()
		b.runs = len(events) > 0
		b.mu.Unlock()
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			deliver(e)
		}
	}
}

// end takes no more, and waits until what came is handed on.
func (b *later) end() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.wg.Wait()
}

// sinks are the sinks of the requests in flight whose callers want to be told.
type sinks struct {
	mu       sync.Mutex // guards what follows
	all      map[uint64]*sink
	deserted deserted
}

func (t *sinks) add(s *sent) *sink {
	if s.Say == nil {
		return nil
	}
	k := &sink{s: s}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[uint64]*sink{}
	}
	t.all[s.id] = k
	return k
}

// remove ends the deliveries: when it returns the caller gets none any more.
// deserted: the server may still be at work on s.
func (t *sinks) remove(s *sent, k *sink, deserted bool) {
	if k == nil && !deserted {
		return
	}
	t.mu.Lock()
	delete(t.all, s.id)
	if deserted {
		t.deserted.add(s)
	}
	t.mu.Unlock()
	if k == nil {
		return
	}
	k.late.end()
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
}

func (t *sinks) byID(id uint64) *sink {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[id]
}

// only returns the sink of the only request in flight, else nil.
func (t *sinks) only(inFlight int) *sink {
	t.mu.Lock()
	defer t.mu.Unlock()
	if inFlight != 1 || len(t.all) != 1 {
		return nil
	}
	for _, k := range t.all {
		if !t.deserted.byOther(k.s) {
			return k
		}
	}
	return nil
}
