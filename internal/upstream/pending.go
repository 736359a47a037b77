package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/jsonrpc"
)

// pending is the table of the requests that a server on a pipe has not
// answered. The reader of the pipe puts things in and never waits; the
// goroutine of each caller takes them out, so that a slow caller delays no
// other one. Who removes an entry from the table owns it: an answer that comes
// after that has nobody to go to.
type pending struct {
	mu   sync.Mutex // guards byID, err and the notes of the entries in byID
	byID map[uint64]*entry
	err  error // why there will be no more answers

	count   atomic.Int64 // len(byID)
	entries sync.Pool
}

type entry struct {
	r      *request
	noted  chan struct{} // cap 1: there are notes
	notes  []note
	size   int           // of the notes
	closed chan struct{} // cap 1: reply or err is there, and e is in no table
	reply  Reply
	err    error
}

type note struct {
	method string
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

// remove takes e out if it is still in, and says whether it was.
func (p *pending) remove(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(e.r.id) != nil
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

func (p *pending) claim(id uint64) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(id)
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
	id, ok := progressID(params)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.byID[id]; e != nil && e.r.wants(methodProgress) {
		e.add(methodProgress, params)
	}
}

// message gives a log message to the only call in flight; with several in
// flight nobody can tell whose it is. It says whether it was given.
func (p *pending) message(params json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byID) != 1 {
		return false
	}
	for _, e := range p.byID {
		if e.r.wants(methodMessage) {
			e.add(methodMessage, params)
			return true
		}
	}
	return false
}

// add queues a notification; when the caller is far behind it is dropped.
func (e *entry) add(method string, params json.RawMessage) {
	if len(e.notes) >= maxNotes || e.size+len(params) > maxNoteBytes {
		return
	}
	e.size += len(params)
	e.notes = append(e.notes, note{method, bytes.Clone(params)})
	select {
	case e.noted <- struct{}{}:
	default:
	}
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
	if !p.remove(e) {
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
	if e.r.notify == nil {
		return
	}
	p.mu.Lock()
	notes := e.notes
	e.notes, e.size = nil, 0
	p.mu.Unlock()
	for _, n := range notes {
		e.r.deliver(n.method, n.params)
	}
}
