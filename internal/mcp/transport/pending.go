package transport

import (
	"bytes"
	"context"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// pending is the table of the requests that a server has not answered. Who reads
// what the server says puts things in and never waits; the goroutine of each
// caller takes them out, so that a slow caller delays no other one. Who removes
// an entry from the table owns it: an answer that comes after that has nobody to
// go to.
type pending struct {
	mu      sync.Mutex // guards byID, orphans and err
	byID    map[uint64]*entry
	orphans orphans
	err     error // why there will be no more answers

	// ownAnswers: each caller reads its answer itself, and leave follows instead
	// of wait. What comes elsewhere is handed on by a goroutine.
	ownAnswers bool
	entries    sync.Pool
}

type entry struct {
	sent
	said   session.Queue // by the server, not handed on yet
	broken bool          // an answer has come that cannot be read
	probes bool          // it finds out whether the session is known; nothing follows from its answer alone
	closed chan struct{} // cap 1: reply or err is there, and e is in no table
	reply  session.Reply
	err    error

	request Request          // how it goes out over HTTP
	message wirejson.Message // what is read for it over HTTP

	saying sync.Mutex    // one event is handed on after the other
	late   *lateDelivery // nil until something comes elsewhere than in the caller's answer
}

// lateDelivery is the goroutine that hands on what came in the stream of somebody else,
// who must not wait for that caller.
type lateDelivery struct {
	runs bool // guarded by pending.mu
	sync.WaitGroup
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
	return nil
}

// inFlight returns how many there are.
func (p *pending) inFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byID)
}

// orphan is take for a request that the server may still be at work on.
func (p *pending) orphan(id uint64) *entry {
	e := p.take(id)
	if e != nil && !e.own && e.listenID == nil { // else there is nobody else, or nothing to work on
		p.orphans.add(&e.sent)
	}
	return e
}

// take removes and returns the entry of id. The caller holds mu.
func (p *pending) take(id uint64) *entry {
	e := p.byID[id]
	if e != nil {
		delete(p.byID, id)
	}
	return e
}

// recycle makes e ready for another request. e is in no table.
func (p *pending) recycle(e *entry) {
	e.said.Reset()
	e.sent, e.broken, e.probes, e.reply, e.err, e.late = sent{}, false, false, session.Reply{}, nil, nil
	e.request, e.message = Request{}, wirejson.Message{}
	p.entries.Put(e)
}

// resolve hands the response m to the caller that waits for it, if there is
// one. The bytes of m are copied unless they are kept.
func (p *pending) resolve(m *wirejson.Message, kept bool) {
	id, ok := numericID(m.ID)
	if !ok {
		return
	}
	if e := p.claim(id); e != nil {
		e.finish(replyOf(m, kept), nil)
	}
}

// reject ends one request with an error.
func (p *pending) reject(id uint64, err error) bool {
	e := p.claim(id)
	if e != nil {
		e.finish(session.Reply{}, err)
	}
	return e != nil
}

// finish tells the caller how its request ended. e is in no table.
func (e *entry) finish(r session.Reply, err error) {
	e.reply, e.err = r, err
	e.closed <- struct{}{}
}

// brokenTime is how long the right answer may still come after one that cannot
// be read: that one may be of a log, or the last words of a process, whose end
// says more.
const brokenTime = 100 * time.Millisecond

// rejectBroken ends the request that a response answers which cannot be read,
// unless something better comes.
func (p *pending) rejectBroken(response []byte) {
	id, ok := numericID(wirejson.BrokenAnswer(response))
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
		e := p.orphan(id)
		p.mu.Unlock()
		if e != nil {
			e.finish(session.Reply{}, ErrNoMessage)
		}
	})
}

func (p *pending) claim(id uint64) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.take(id)
	if e == nil {
		p.orphans.answered(id)
	}
	return e
}

// give hands e to the request with that id, if it wants it, and reports whether
// it did.
func (p *pending) give(id uint64, e session.Event, fits func(*sent) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.byID[id]
	return to != nil && fits(&to.sent) && p.put(to, e)
}

// progress hands a progress notification, which came in the answer to from or by
// itself, to the request it is about.
func (p *pending) progress(e session.Event, from *entry) {
	switch id, ok := progressID(e.Params); {
	case !ok:
	case from != nil && from.id == id:
		from.hear(e)
	default:
		p.give(id, e, func(s *sent) bool { return s.wants(mcp.Progress) })
	}
}

// subscribed hands a notification to the subscription that it names, if it
// does.
func (p *pending) subscribed(e session.Event) bool {
	id, ok := subscriptionID(e.Params)
	return ok && p.give(id, e, func(s *sent) bool { return s.listenID != nil })
}

// byToken hands a progress notification to the client's request with its own
// token.
func (p *pending) byToken(e session.Event) bool {
	token := wirejson.Find(e.Params, "progressToken")
	return p.newest(e, func(s *sent) bool { return s.token != nil && bytes.Equal(s.token, token) })
}

// newest hands e to the request that was sent last, of those that fit and whose
// client has the connection for itself.
func (p *pending) newest(e session.Event, fits func(*sent) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last *entry
	for _, to := range p.byID {
		if to.passes() && fits(&to.sent) && (last == nil || to.id > last.id) {
			last = to
		}
	}
	return last != nil && p.put(last, e)
}

// only hands e to the only request in flight, subscriptions aside, if it wants
// it: with several in flight nobody can tell whose it is.
func (p *pending) only(e session.Event) bool {
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
	return one != nil && one.wants(e.Method) && !p.orphans.byOther(&one.sent) && p.put(one, e)
}

// put queues an event for to; when its caller is far behind it is dropped. It
// reports whether it was queued. The caller holds mu.
func (p *pending) put(to *entry, e session.Event) bool {
	if !to.said.Put(e.Clone()) {
		return false
	}
	if p.ownAnswers {
		if to.late == nil {
			to.late = &lateDelivery{}
		}
		if !to.late.runs {
			to.late.runs = true
			to.late.Go(func() { p.handLate(to) })
		}
	}
	return true
}

// handLate hands on what is queued for e, and what comes meanwhile.
func (p *pending) handLate(e *entry) {
	for {
		p.mu.Lock()
		events := e.said.Take()
		e.late.runs = len(events) > 0
		p.mu.Unlock()
		if len(events) == 0 {
			return
		}
		e.handOn(events)
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
		e.finish(session.Reply{}, &LostError{err})
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
			e.handOn(e.said.Take())
			e.settle(&e.reply)
			return e.reply, e.err
		case <-e.said.Come():
			e.handOn(e.said.Take())
		case <-done:
			if p.leave(e, ctx.Err()) {
				return session.Reply{}, ctx.Err()
			}
			done = nil // the answer is on its way from the reader
		}
	}
}

// leave takes e out, whose request came to err, if it is still in, and reports
// whether it was. What came for it elsewhere is handed on when it returns.
func (p *pending) leave(e *entry, err error) bool {
	p.mu.Lock()
	out := p.take
	if stillAtWork(err) {
		out = p.orphan
	}
	was, late := out(e.id) != nil, e.late
	p.mu.Unlock()
	if late != nil {
		late.Wait()
	}
	return was
}

// hear hands on what came in the answer to e, and reports whether its caller
// wants it.
func (e *entry) hear(v session.Event) bool {
	if !e.wants(v.Method) {
		return false
	}
	e.handOn([]session.Event{v})
	return true
}

// handOn hands on what has been said.
func (e *entry) handOn(events []session.Event) {
	if e.Say == nil {
		return
	}
	e.saying.Lock()
	defer e.saying.Unlock()
	for _, v := range events {
		e.deliver(v)
	}
}
