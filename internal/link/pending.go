package link

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// pending is the table of the requests that a server on a pipe has not
// answered. The reader of the pipe puts things in and never waits; the
// goroutine of each caller takes them out, so that a slow caller delays no
// other one. Who removes an entry from the table owns it: an answer that comes
// after that has nobody to go to.
type pending struct {
	mu       sync.Mutex // guards byID, deserted and err
	byID     map[uint64]*entry
	deserted deserted
	err      error // why there will be no more answers

	count   atomic.Int64 // len(byID)
	entries sync.Pool
}

type entry struct {
	sent
	said   session.Queue // by the server, not handed on yet
	broken bool          // an answer has come that cannot be read
	closed chan struct{} // cap 1: reply or err is there, and e is in no table
	reply  session.Reply
	err    error
}

func newPending() *pending { return &pending{byID: map[uint64]*entry{}} }

// entry returns one for a request, which is not entered yet.
func (p *pending) entry() *entry {
	if e, ok := p.entries.Get().(*entry); ok {
		return e
	}
	return &entry{closed: make(chan struct{}, 1), said: session.Queue{Max: maxNotes, Bytes: maxNoteBytes}}
}

// enter puts e into the table. It fails when the link is lost.
func (p *pending) enter(e *entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return notSent(p.err)
	}
	p.byID[e.id] = e
	p.count.Add(1)
	return nil
}

// remove takes e out if it is still in, and reports whether it was. The server
// may be at work on it for a while.
func (p *pending) remove(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desert(e.id) != nil
}

// desert is take for a request that the server may still be at work on.
func (p *pending) desert(id uint64) *entry {
	e := p.take(id)
	if e != nil && !e.own && e.listenID == nil { // else there is nobody else, or nothing to work on
		p.deserted.add(&e.sent)
	}
	return e
}

// take removes and returns the entry of id. The caller holds mu.
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
	e.said.Reset()
	e.sent, e.broken, e.reply, e.err = sent{}, false, session.Reply{}, nil
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
			e.err = ErrNoMessage
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

// give hands e to the request with that id, if it wants it, and reports whether
// it did.
func (p *pending) give(id uint64, e session.Event, fits func(*sent) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.byID[id]
	return to != nil && fits(&to.sent) && to.put(e)
}

// progress gives a progress notification to the request it is about.
func (p *pending) progress(e session.Event) {
	if id, ok := progressID(e.Params); ok {
		p.give(id, e, func(s *sent) bool { return s.wants(mcp.Progress) })
	}
}

// subscribed gives a notification to the subscription that it names, if it
// does.
func (p *pending) subscribed(e session.Event) bool {
	id, ok := subscriptionID(e.Params)
	return ok && p.give(id, e, func(s *sent) bool { return s.listenID != nil })
}

// byToken gives a progress notification to the client's request with its own
// token.
func (p *pending) byToken(e session.Event) bool {
	token := json.RawMessage(rawjson.Find(e.Params, "progressToken"))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.byID {
		if to.passes() && to.token != nil && bytes.Equal(to.token, token) {
			return to.put(e)
		}
	}
	return false
}

// only gives e to the only request in flight, subscriptions aside: with several
// in flight nobody can tell whose it is.
func (p *pending) only(e session.Event, fits func(*sent) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var one *entry
	for _, to := range p.byID {
		switch {
		case to.listenID != nil:
		case one != nil:
			return false
		default:
			one = to
		}
	}
	return one != nil && fits(&one.sent) && !p.deserted.byOther(&one.sent) && one.put(e)
}

// newest gives e to the request that was sent last, of a client that has the
// connection for itself.
func (p *pending) newest(e session.Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last *entry
	for _, to := range p.byID {
		if to.passes() && (last == nil || to.id > last.id) {
			last = to
		}
	}
	return last != nil && last.put(e)
}

// put queues an event; when the caller is far behind it is dropped. It reports
// whether it was queued.
func (e *entry) put(v session.Event) bool { return e.said.Put(v.Clone()) }

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
		e.err = &LostError{err}
		e.closed <- struct{}{}
	}
}

// abandon takes e out for good: its request has not been sent.
func (p *pending) abandon(e *entry) {
	if p.claim(e.id) == nil {
		<-e.closed
	}
	p.recycle(e)
}

// wait hands what is said to e on to its caller and returns the response. On an
// error of ctx the entry is out of the table: whatever comes for it later is
// dropped.
func (p *pending) wait(ctx context.Context, e *entry) (session.Reply, error) {
	defer p.recycle(e)
	done := ctx.Done()
	for {
		select {
		case <-e.closed:
			e.handOn()
			return e.reply, e.err
		case <-e.said.Come():
			e.handOn()
		case <-done:
			if p.remove(e) {
				return session.Reply{}, ctx.Err()
			}
			done = nil // the answer is on its way from the reader
		}
	}
}

// handOn hands on what has been said.
func (e *entry) handOn() {
	if e.Say == nil {
		return
	}
	for _, v := range e.said.Take() {
		e.deliver(v)
	}
}
