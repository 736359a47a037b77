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

// pending is the table of open requests. The reader of the connection delivers messages and never blocks;
// each caller's goroutine consumes them, so a slow caller delays no other. The goroutine that removes an
// entry owns it: later responses are dropped.
type pending struct {
	mu      sync.Mutex // guards byID, orphans and err
	byID    map[uint64]*entry
	orphans orphans
	err     error // why there are no more responses

	// ownAnswers: each caller reads its own response and calls leave instead of wait. Events from other
	// streams are delivered by a goroutine.
	ownAnswers bool
	entries    sync.Pool
}

type entry struct {
	sent
	events session.Queue // undelivered events of the server
	broken bool          // a malformed response has arrived
	probes bool          // checks whether the session is known; its result has no other effect
	closed chan struct{} // cap 1: reply or err is set, and e is in no table
	reply  session.Reply
	err    error

	request Request          // the HTTP request
	message wirejson.Message // the message that is read over HTTP

	deliverMu sync.Mutex    // orders the events
	late      *lateDelivery // nil until an event arrives on another stream
}

// lateDelivery is the goroutine that delivers events from other streams, whose readers must not wait for
// this caller.
type lateDelivery struct {
	runs bool // guarded by pending.mu
	sync.WaitGroup
}

func newPending() *pending { return &pending{byID: map[uint64]*entry{}} }

// entry returns an unregistered entry.
func (p *pending) entry() *entry {
	if e, ok := p.entries.Get().(*entry); ok {
		return e
	}
	return &entry{closed: make(chan struct{}, 1), events: session.Queue{Max: maxEvents, Bytes: maxEventBytes}}
}

// acquire registers e. It fails if the link is lost.
func (p *pending) enter(e *entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return notSent(p.err)
	}
	p.byID[e.id] = e
	return nil
}

// inFlight returns the number of open requests.
func (p *pending) inFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byID)
}

// orphan is take for a request that the server may still execute.
func (p *pending) orphan(id uint64) *entry {
	e := p.take(id)
	if e != nil && !e.own && e.listenID == nil { // otherwise no other client is affected, or nothing runs
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

// recycle returns e, which is in no table, to the pool.
func (p *pending) recycle(e *entry) {
	e.events.Reset()
	e.sent, e.broken, e.probes, e.reply, e.err, e.late = sent{}, false, false, session.Reply{}, nil, nil
	e.request, e.message = Request{}, wirejson.Message{}
	p.entries.Put(e)
}

// resolve delivers a response to its caller. The bytes of m are copied unless kept.
func (p *pending) resolve(m *wirejson.Message, kept bool) {
	id, ok := numericID(m.ID)
	if !ok {
		return
	}
	if e := p.claim(id); e != nil {
		e.finish(replyOf(m, kept), nil)
	}
}

// reject fails one request.
func (p *pending) reject(id uint64, err error) bool {
	e := p.claim(id)
	if e != nil {
		e.finish(session.Reply{}, err)
	}
	return e != nil
}

// finish delivers the result of a request. e is in no table.
func (e *entry) finish(r session.Reply, err error) {
	e.reply, e.err = r, err
	e.closed <- struct{}{}
}

// malformedWait is how long a correct response may follow a malformed one, which may be log output or the
// end of a dying process.
const malformedWait = 100 * time.Millisecond

// rejectMalformed fails the request of a malformed response, unless a correct one follows in time.
func (p *pending) rejectMalformed(response []byte) {
	id, ok := numericID(wirejson.MalformedResponseID(response))
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
	time.AfterFunc(malformedWait, func() {
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

// deliverTo queues e for the request id if fits accepts it, and reports success.
func (p *pending) deliverTo(id uint64, e session.Event, fits func(*sent) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.byID[id]
	return to != nil && fits(&to.sent) && p.put(to, e)
}

// progress delivers a progress notification, which arrived in the reply stream of from or by itself, to
// its request.
func (p *pending) progress(e session.Event, from *entry) {
	switch id, ok := progressID(e.Params); {
	case !ok:
	case from != nil && from.id == id:
		from.receive(e)
	default:
		p.deliverTo(id, e, func(s *sent) bool { return s.wants(mcp.Progress) })
	}
}

// subscribed delivers a notification to the subscription that it names.
func (p *pending) subscribed(e session.Event) bool {
	id, ok := subscriptionID(e.Params)
	return ok && p.deliverTo(id, e, func(s *sent) bool { return s.listenID != nil })
}

// byToken delivers a progress notification to the client's request with this token.
func (p *pending) byToken(e session.Event) bool {
	token := wirejson.Find(e.Params, "progressToken")
	return p.newest(e, func(s *sent) bool { return s.token != nil && bytes.Equal(s.token, token) })
}

// newest delivers e to the newest request that fits, on a client's own connection.
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

// only delivers e to the only open request, not counting subscriptions; with several the recipient is
// unknown.
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
	return one != nil && one.wants(e.Method) && !p.orphans.ofOtherOwner(&one.sent) && p.put(one, e)
}

// put queues an event for to, or drops it if the queue is full. It reports success. The caller holds mu.
func (p *pending) put(to *entry, e session.Event) bool {
	if !to.events.Put(e.Clone()) {
		return false
	}
	if p.ownAnswers {
		if to.late == nil {
			to.late = &lateDelivery{}
		}
		if !to.late.runs {
			to.late.runs = true
			to.late.Go(func() { p.deliverLate(to) })
		}
	}
	return true
}

// deliverLate delivers the queued events of e until there are none.
func (p *pending) deliverLate(e *entry) {
	for {
		p.mu.Lock()
		events := e.events.Take()
		e.late.runs = len(events) > 0
		p.mu.Unlock()
		if len(events) == 0 {
			return
		}
		e.deliverAll(events)
	}
}

// fail fails all open and later requests.
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

// abandon removes e, whose request was not sent.
func (p *pending) abandon(e *entry) {
	if p.claim(e.id) == nil {
		<-e.closed
	}
	p.recycle(e)
}

// pending delivers events to the caller of e and returns its response. If ctx ends, the entry is removed and
// later messages are dropped.
func (p *pending) wait(ctx context.Context, e *entry) (session.Reply, error) {
	defer p.recycle(e)
	done := ctx.Done()
	for {
		select {
		case <-e.closed:
			e.deliverAll(e.events.Take())
			e.settle(&e.reply)
			return e.reply, e.err
		case <-e.events.Ready():
			e.deliverAll(e.events.Take())
		case <-done:
			if p.leave(e, ctx.Err()) {
				return session.Reply{}, ctx.Err()
			}
			done = nil // the reader is already delivering the response
		}
	}
}

// release removes e, whose request ended with err, and reports whether it was registered. Its events are
// delivered when it returns.
func (p *pending) leave(e *entry, err error) bool {
	p.mu.Lock()
	out := p.take
	if mayStillRun(err) {
		out = p.orphan
	}
	was, late := out(e.id) != nil, e.late
	p.mu.Unlock()
	if late != nil {
		late.Wait()
	}
	return was
}

// receive delivers an event of e's own stream and reports whether its caller wants it.
func (e *entry) receive(v session.Event) bool {
	if !e.wants(v.Method) {
		return false
	}
	e.deliverAll([]session.Event{v})
	return true
}

// deliverAll delivers events in order.
func (e *entry) deliverAll(events []session.Event) {
	if e.Say == nil {
		return
	}
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	for _, v := range events {
		e.deliver(v)
	}
}
