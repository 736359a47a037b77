package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/jsonrpc"
)

// pending is the table of the requests that a server on a pipe has not
// answered. The reader of the pipe puts things in and never waits; the
// goroutine of each caller takes them out, so that a slow caller delays no
// other one. Who removes an entry from the table owns it: an answer that comes
// after that has nobody to go to.
type pending struct {
	mu       sync.Mutex // guards byID, deserted, err and the notes of the entries in byID
	byID     map[uint64]*entry
	deserted deserted
	err      error // why there will be no more answers

	count   atomic.Int64 // len(byID)
	entries sync.Pool
}

type entry struct {
	r      *request
	noted  chan struct{} // cap 1: there are notes
	notes  []note
	size   int           // of the notes
	broken bool          // an answer has come that cannot be read
	closed chan struct{} // cap 1: reply or err is there, and e is in no table
	reply  Reply
	err    error
}

type note struct {
	method string
	id     json.RawMessage // of a request of the server
	params json.RawMessage
}

func newPending() *pending { return &pending{byID: map[uint64]*entry{}} }

// add enters r. It fails when the link is lost.
func (p *pending) add(r *request) (*entry, error) {
	e, ok := p.entries.Get().(*entry)
	if !ok {
		e = &entry{noted: make(chan struct{}, 1), closed: make(chan struct{}, 1)}
	}
	e.r = r
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, &unsentError{p.err}
	}
	p.byID[r.id] = e
	p.count.Add(1)
	return e, nil
}

// remove takes e out if it is still in, and says whether it was. The server may
// be at work on it for a while.
func (p *pending) remove(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desert(e.r.id) != nil
}

// desert is take for a request that the server may still be at work on.
func (p *pending) desert(id uint64) *entry {
	e := p.take(id)
	if e != nil && !e.r.keepsToken && e.r.listens == nil { // else there is nobody else, or nothing to work on
		p.deserted.add(e.r)
	}
	return e
}

// take removes and gives the entry of id. The caller holds mu.
func (p *pending) take(id uint64) *entry {
	e := p.byID[id]
	if e != nil {
		delete(p.byID, id)
		p.count.Add(-1)
	}
	return e
}

// recycle makes e ready for another request. e is in no table.
func (p *pending) recycle(e *entry) {
	select {
	case <-e.noted:
	default:
	}
	*e = entry{noted: e.noted, closed: e.closed}
	p.entries.Put(e)
}

// resolve gives the response m to the caller that waits for it, if there is
// one. The bytes of m are copied unless they are kept.
func (p *pending) resolve(m *jsonrpc.Message, kept bool) {
	id, ok := numericID(m.ID)
	if !ok {
		return
	}
	if e := p.claim(id); e != nil {
		e.reply = replyOf(m, kept)
		e.closed <- struct{}{}
	}
}

// reject ends one request with an error.
func (p *pending) reject(id uint64, err error) bool {
	e := p.claim(id)
	if e != nil {
		e.err = err
		e.closed <- struct{}{}
	}
	return e != nil
}

// brokenTime is how long the right answer may still come after one that cannot
// be read: that one may be of a log, or the last words of a process, whose end
// says more.
const brokenTime = 100 * time.Millisecond

// rejectBroken ends the request that a response answers which cannot be read,
// unless something better comes.
func (p *pending) rejectBroken(response []byte) {
	id, ok := numericID(jsonrpc.BrokenAnswer(response))
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byID[id]
	if e == nil || e.broken {
		return
	}
	e.broken = true
	time.AfterFunc(brokenTime, func() {
		p.mu.Lock()
		e := p.desert(id)
		p.mu.Unlock()
		if e != nil {
			e.err = errNoMessage
			e.closed <- struct{}{}
		}
	})
}

func (p *pending) claim(id uint64) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.take(id)
	if e == nil {
		p.deserted.answered(id)
	}
	return e
}

// replyOf takes a response out of the buffer it was read into, without a copy
// when that buffer has been kept for it.
func replyOf(m *jsonrpc.Message, kept bool) Reply {
	if m.Error != nil {
		e := *m.Error
		e.Data = bytes.Clone(e.Data)
		return Reply{Error: &e}
	}
	if kept {
		return Reply{Result: m.Result}
	}
	return Reply{Result: bytes.Clone(m.Result)}
}

// keepFrom is the size from which a message is taken with its buffer.
const keepFrom = 32 << 10

// progress gives a progress notification to the call it is about.
func (p *pending) progress(params json.RawMessage) {
	if id, ok := progressID(params); ok {
		p.give(id, note{method: methodProgress, params: params}, func(r *request) bool { return r.wants(methodProgress) })
	}
}

// subscribed gives a notification to the subscription that it names, if it
// does.
func (p *pending) subscribed(m *jsonrpc.Message) bool {
	id, ok := subscriptionID(m.Params)
	return ok && p.give(id, note{method: m.Method, params: m.Params}, func(r *request) bool { return r.listens != nil })
}

// give gives a note to the request with that id, if it fits.
func (p *pending) give(id uint64, n note, fits func(*request) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byID[id]
	return e != nil && fits(e.r) && e.add(n)
}

// message gives a log message to the only call in flight; with several in
// flight nobody can tell whose it is. It says whether it was given.
func (p *pending) message(params json.RawMessage) bool {
	return p.only(note{method: methodMessage, params: params}, func(r *request) bool { return r.wants(methodMessage) })
}

// only gives a note to the only request in flight, subscriptions aside.
func (p *pending) only(n note, fits func(*request) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var one *entry
	for _, e := range p.byID {
		switch {
		case e.r.listens != nil:
		case one != nil:
			return false
		default:
			one = e
		}
	}
	return one != nil && fits(one.r) && !p.deserted.byOther(one.r) && one.add(n)
}

// newest gives a note to the request that was sent last, of a client that has
// the connection for itself.
func (p *pending) newest(n note) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last *entry
	for _, e := range p.byID {
		if e.r.say != nil && (last == nil || e.r.id > last.r.id) {
			last = e
		}
	}
	return last != nil && last.add(n)
}

// add queues a note; when the caller is far behind it is dropped. It says
// whether it was queued.
func (e *entry) add(n note) bool {
	if len(e.notes) >= maxNotes || e.size+len(n.params) > maxNoteBytes {
		return false
	}
	e.size += len(n.params)
	e.notes = append(e.notes, note{n.method, bytes.Clone(n.id), bytes.Clone(n.params)})
	select {
	case e.noted <- struct{}{}:
	default:
	}
	return true
}

// fail ends all that wait, and those who come later.
func (p *pending) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	for id, e := range p.byID {
		p.take(id)
		e.err = &lostError{err}
		e.closed <- struct{}{}
	}
}

// abandon takes e out for good: its request has not been sent.
func (p *pending) abandon(e *entry) {
	if p.claim(e.r.id) == nil {
		<-e.closed
	}
	p.recycle(e)
}

// wait hands the notifications of e to its caller and gives the response. On
// an error of ctx the entry is out of the table: whatever comes for it later
// is dropped.
func (p *pending) wait(ctx context.Context, e *entry) (Reply, error) {
	defer p.recycle(e)
	done := ctx.Done()
	for {
		select {
		case <-e.closed:
			p.deliver(e)
			return e.reply, e.err
		case <-e.noted:
			p.deliver(e)
		case <-done:
			if p.remove(e) {
				return Reply{}, ctx.Err()
			}
			done = nil // the answer is on its way from the reader
		}
	}
}

// deliver hands on the notes that have come.
func (p *pending) deliver(e *entry) {
	if e.r.notify == nil && e.r.say == nil {
		return
	}
	p.mu.Lock()
	notes := e.notes
	e.notes, e.size = nil, 0
	p.mu.Unlock()
	for _, n := range notes {
		e.r.deliver(n)
	}
}
