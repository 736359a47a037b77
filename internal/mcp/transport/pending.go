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

// pendingRequests is the table of open requests. The reader of the connection delivers messages and never blocks. The
// goroutine of each caller consumes them, so a slow caller does not delay others. The goroutine that removes an entry
// owns it. Later responses are dropped.
type pendingRequests struct {
	mu      sync.Mutex // guards byID, orphans, asked and err
	byID    map[uint64]*pendingRequest
	orphans orphanedRequests
	asked   map[string]*pendingRequest // open questions by ID; see questions.go
	err     error                      // the reason why there are no more responses

	refuse func(msg []byte) // sends the refusal of a question; nil on a connection without questions

	// ownAnswers is set if each caller reads its own response and calls removeEnded instead of waitForReply. Then a
	// goroutine delivers events from other streams.
	ownAnswers bool
	entries    sync.Pool
}

type pendingRequest struct {
	sentRequest
	events session.EventQueue // undelivered events of the server
	asked  int                // number of open questions; guarded by pendingRequests.mu
	broken bool               // a malformed response has arrived
	probes bool               // checks whether the server still accepts the session; its result has no other effect
	closed chan struct{}      // capacity 1: reply or err is set, and e is in no table
	reply  session.Reply
	err    error

	request HTTPRequest      // the HTTP request
	message wirejson.Message // the message that is read over HTTP

	deliverMu sync.Mutex           // orders the events
	late      *crossStreamDelivery // nil until an event arrives on another stream
}

// crossStreamDelivery is the goroutine that delivers events from other streams, whose readers must not wait for this
// caller.
type crossStreamDelivery struct {
	runs bool // guarded by pendingRequests.mu
	sync.WaitGroup
}

func newPendingRequests() *pendingRequests {
	return &pendingRequests{byID: map[uint64]*pendingRequest{}}
}

// newUnregistered returns an unregistered entry.
func (p *pendingRequests) newUnregistered() *pendingRequest {
	if e, ok := p.entries.Get().(*pendingRequest); ok {
		return e
	}
	return &pendingRequest{closed: make(chan struct{}, 1), events: session.EventQueue{Max: maxEvents, Bytes: maxEventBytes}}
}

// register registers e. It fails if the link is lost.
func (p *pendingRequests) register(e *pendingRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return newNotSentError(p.err)
	}
	p.byID[e.id] = e
	return nil
}

// countInFlight returns the number of open requests.
func (p *pendingRequests) countInFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byID)
}

// isInitializing reports whether initialize is open.
func (p *pendingRequests) isInitializing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.byID {
		if e.Request != nil && e.Method == mcp.Initialize {
			return true
		}
	}
	return false
}

// takeAsOrphan removes and returns a request that the server may still execute.
func (p *pendingRequests) takeAsOrphan(id uint64) *pendingRequest {
	e := p.removeLocked(id)
	if e != nil && !e.own && e.listenID == nil { // otherwise it affects no other client, or does not run
		p.orphans.addRequest(&e.sentRequest)
	}
	return e
}

// removeLocked removes and returns the entry of id. The caller holds mu.
func (p *pendingRequests) removeLocked(id uint64) *pendingRequest {
	e := p.byID[id]
	if e != nil {
		delete(p.byID, id)
	}
	return e
}

// recycleRequest returns e, which is in no table, to the pool.
func (p *pendingRequests) recycleRequest(e *pendingRequest) {
	p.refuseOpenQuestions(e)
	e.events.Reset()
	e.sentRequest, e.broken, e.probes, e.reply, e.err, e.late = sentRequest{}, false, false, session.Reply{}, nil, nil
	e.request, e.message = HTTPRequest{}, wirejson.Message{}
	p.entries.Put(e)
}

// deliverReply delivers a response to its caller. The bytes of m are copied unless kept.
func (p *pendingRequests) deliverReply(m *wirejson.Message, kept bool) {
	id, ok := parseNumericID(m.ID)
	if !ok {
		if m.Error != nil && (m.ID == nil || string(m.ID) == "null") {
			p.failOnlyCall(m)
		}
		return
	}
	if e := p.claimRequest(id); e != nil {
		e.finishRequest(toReply(m, kept), nil)
	}
}

// failOnlyCall handles an error without an ID. It fails the tool call that is the only open request, unless a response
// with its ID follows in time, because some servers lose the ID when a call fails. An unknown method may also be the
// method of a notification.
func (p *pendingRequests) failOnlyCall(m *wirejson.Message) {
	if m.Error.Code == wirejson.CodeMethodNotFound {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var call *pendingRequest
	for _, e := range p.byID {
		if e.listenID != nil {
			continue
		}
		if call != nil || e.Call == nil && e.Method != mcp.CallTool {
			return
		}
		call = e
	}
	if call == nil || call.broken {
		return
	}
	call.broken = true
	p.finishAfterMalformedWait(call.id, toReply(m, false), nil)
}

// finishAfterMalformedWait finishes a request unless a correct response arrives in time. The caller holds mu.
func (p *pendingRequests) finishAfterMalformedWait(id uint64, r session.Reply, err error) {
	time.AfterFunc(malformedWait, func() {
		p.mu.Lock()
		e := p.takeAsOrphan(id)
		p.mu.Unlock()
		if e != nil {
			e.finishRequest(r, err)
		}
	})
}

// rejectRequest fails one request.
func (p *pendingRequests) rejectRequest(id uint64, err error) bool {
	e := p.claimRequest(id)
	if e != nil {
		e.finishRequest(session.Reply{}, err)
	}
	return e != nil
}

// finishRequest delivers the result of a request. e is in no table.
func (e *pendingRequest) finishRequest(r session.Reply, err error) {
	e.reply, e.err = r, err
	e.closed <- struct{}{}
}

// malformedWait is the time in which a correct response may follow a malformed one. The malformed text may be log
// output or the end of a process that is dying.
const malformedWait = 100 * time.Millisecond

// failAfterMalformedReply fails the request of a malformed response, unless a correct one follows in time.
func (p *pendingRequests) failAfterMalformedReply(response []byte) {
	id, ok := parseNumericID(wirejson.MalformedResponseID(response))
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
	p.finishAfterMalformedWait(id, session.Reply{}, ErrNoMessage)
}

// claimRequest removes and returns the request with this ID. It returns nil if no caller waits for it any more. In that
// case, it also removes an orphan with this ID.
func (p *pendingRequests) claimRequest(id uint64) *pendingRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.removeLocked(id)
	if e == nil {
		p.orphans.dropAnswered(id)
	}
	return e
}

// deliverEventTo queues e for the request with this ID if fits accepts the request, and reports whether it did.
func (p *pendingRequests) deliverEventTo(id uint64, e session.Event, fits func(*sentRequest) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := p.byID[id]
	return to != nil && fits(&to.sentRequest) && p.queueEvent(to, e)
}

// deliverProgress delivers a progress notification to its request. from is the request in whose reply stream it
// arrived, or nil.
func (p *pendingRequests) deliverProgress(e session.Event, from *pendingRequest) {
	switch id, ok := progressRequestID(e.Params); {
	case !ok:
	case from != nil && from.id == id:
		from.deliverIfWanted(e)
	default:
		p.deliverEventTo(id, e, func(s *sentRequest) bool { return s.wantsNotification(mcp.Progress) })
	}
}

// deliverToSubscription delivers a notification to the subscription that it names.
func (p *pendingRequests) deliverToSubscription(e session.Event) bool {
	id, ok := subscriptionID(e.Params)
	return ok && p.deliverEventTo(id, e, func(s *sentRequest) bool { return s.listenID != nil })
}

// deliverByProgressToken delivers a progress notification to the client's request with this token.
func (p *pendingRequests) deliverByProgressToken(e session.Event) bool {
	token := wirejson.Find(e.Params, "progressToken")
	return p.deliverToNewest(e, func(s *sentRequest) bool { return s.token != nil && bytes.Equal(s.token, token) })
}

// deliverToNewest delivers e to the newest request that fits, on a client's own connection.
func (p *pendingRequests) deliverToNewest(e session.Event, fits func(*sentRequest) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last *pendingRequest
	for _, to := range p.byID {
		if to.getsAllEvents() && fits(&to.sentRequest) && (last == nil || to.id > last.id) {
			last = to
		}
	}
	return last != nil && p.queueEvent(last, e)
}

// deliverToOnlyRequest delivers e to the only open request, not counting subscriptions. If there are several, the
// recipient is unknown.
func (p *pendingRequests) deliverToOnlyRequest(e session.Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var one *pendingRequest
	for _, to := range p.byID {
		switch {
		case to.listenID != nil:
		case one != nil:
			return false
		default:
			one = to
		}
	}
	return one != nil && one.wantsNotification(e.Method) && !p.orphans.hasOtherOwner(&one.sentRequest) && p.queueEvent(one, e)
}

// queueEvent queues an event for to, or drops it if the queue is full. It reports whether it queued the event. The
// caller holds mu.
func (p *pendingRequests) queueEvent(to *pendingRequest, e session.Event) bool {
	if !to.events.Put(e.Clone()) {
		return false
	}
	if p.ownAnswers {
		if to.late == nil {
			to.late = &crossStreamDelivery{}
		}
		if !to.late.runs {
			to.late.runs = true
			to.late.Go(func() { p.deliverQueuedEvents(to) })
		}
	}
	return true
}

// deliverQueuedEvents delivers the queued events of e until the queue is empty.
func (p *pendingRequests) deliverQueuedEvents(e *pendingRequest) {
	for {
		p.mu.Lock()
		events := e.events.TakeAll()
		e.late.runs = len(events) > 0
		p.mu.Unlock()
		if len(events) == 0 {
			return
		}
		e.deliverEvents(events)
	}
}

// failAll fails all open and later requests.
func (p *pendingRequests) failAll(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	for id, e := range p.byID {
		p.removeLocked(id)
		e.finishRequest(session.Reply{}, &ConnectionLostError{err})
	}
}

// abandonUnsent removes e, whose request was not sent.
func (p *pendingRequests) abandonUnsent(e *pendingRequest) {
	if p.claimRequest(e.id) == nil {
		<-e.closed
	}
	p.recycleRequest(e)
}

// waitForReply delivers events to the caller of e and returns its response. If ctx ends, the entry is removed and
// later messages are dropped.
func (p *pendingRequests) waitForReply(ctx context.Context, e *pendingRequest) (session.Reply, error) {
	defer p.recycleRequest(e)
	done := ctx.Done()
	for {
		select {
		case <-e.closed:
			e.deliverEvents(e.events.TakeAll())
			e.restoreSubscriptionID(&e.reply)
			return e.reply, e.err
		case <-e.events.ReadyChannel():
			e.deliverEvents(e.events.TakeAll())
		case <-done:
			if p.removeEnded(e, ctx.Err()) {
				return session.Reply{}, ctx.Err()
			}
			done = nil // the reader is already delivering the response
		}
	}
}

// removeEnded removes e, whose request ended with err, and reports whether it was registered. All its events have been
// delivered when it returns.
func (p *pendingRequests) removeEnded(e *pendingRequest, err error) bool {
	p.mu.Lock()
	out := p.removeLocked
	if mayStillBeExecuting(err) {
		out = p.takeAsOrphan
	}
	was, late := out(e.id) != nil, e.late
	p.mu.Unlock()
	if late != nil {
		late.Wait()
	}
	return was
}

// deliverIfWanted delivers an event of e's own stream and reports whether its caller wants it.
func (e *pendingRequest) deliverIfWanted(v session.Event) bool {
	if !e.wantsNotification(v.Method) {
		return false
	}
	e.deliverEvents([]session.Event{v})
	return true
}

// deliverEvents delivers events in order.
func (e *pendingRequest) deliverEvents(events []session.Event) {
	if e.Say == nil {
		return
	}
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	for _, v := range events {
		e.deliverEvent(v)
	}
}
