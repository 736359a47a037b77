package httpserver

import (
	"cmp"
	"container/list"
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// slowAfter is the time after which an incomplete request counts as slow. stuckAfter is the time after which a
	// client that does not read its reply counts as stuck. Both matter only at the connection limit.
	slowAfter, stuckAfter = time.Second, 5 * time.Second
	// fastBodyRate is the rate from which on a body does not count as slow, in bytes per second.
	fastBodyRate = 64 << 10
	// graceTime is the time a new connection has for its first request.
	graceTime = 200 * time.Millisecond
)

// connPhase is the state of a connection.
type connPhase uint8

const (
	waiting connPhase = iota // no byte of the next request has arrived
	inHead                   // reading the head
	inBody                   // reading the body
	working                  // a complete request is being answered
)

// connFate determines whether a connection may serve another request.
type connFate uint8

const (
	staying connFate = iota
	ending           // the connection closes after the current reply
	dropped          // the connection is closed
)

// connRegistry tracks all open connections.
type connRegistry struct {
	limit int // limit of open connections
	made  time.Time

	mu        sync.Mutex          // guards the following fields
	conns     map[*connState]bool // all open connections; true means served by this package, not by net/http
	newcomers *list.List          // of *connState, the oldest first
}

func newConnRegistry(most int) *connRegistry {
	return &connRegistry{limit: most, made: time.Now(), conns: map[*connState]bool{}, newcomers: list.New()}
}

// connState is the state of an open connection, in this package or at net/http. Before its first complete request, it
// is in connRegistry.newcomers.
type connState struct {
	in   *connRegistry
	nc   net.Conn
	raw  net.Conn           // nc without TLS: its Close does not block
	stop context.CancelFunc // ends the contexts of its requests; nil at net/http
	new  bool               // used only by the connection's own goroutine
	came time.Time          // in.mu guards this field and the next one
	at   *list.Element      // position in in.newcomers, or nil
	got  atomic.Int64       // bytes of the current body
	out  atomic.Int64       // start of the current write, by in.clock; 0 means none

	mu    sync.Mutex // guards the following fields; only the connection's goroutine changes phase and since
	phase connPhase
	since time.Time // start of the phase, except for working
	fate  connFate
}

// enterPhase sets the phase.
func (p *connState) enterPhase(to connPhase, now time.Time) connFate {
	if to == inBody {
		p.got.Store(0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.since = to, now
	return p.fate
}

// markRequestComplete registers a complete request.
func (p *connState) markRequestComplete() connFate {
	p.mu.Lock()
	p.phase = working
	fate := p.fate
	p.mu.Unlock()
	if p.new {
		p.new = false
		p.in.mu.Lock()
		p.in.unmarkNewcomer(p)
		p.in.mu.Unlock()
	}
	return fate
}

// markWriteStarted and markWriteEnded are called before and after each write to the client.
func (p *connState) markWriteStarted(now time.Time) { p.out.Store(p.in.clockValue(now)) }
func (p *connState) markWriteEnded()                { p.out.Store(0) }

// clockValue returns a time as a number that is not 0.
func (r *connRegistry) clockValue(now time.Time) int64 { return int64(now.Sub(r.made)) + 1 }

// evictionClass is the order in which connections are closed.
type evictionClass uint8

const (
	slow   evictionClass = iota // an incomplete request or an unread reply
	idle                        // no request
	wanted                      // a request is being answered
)

// evictionClass returns the class of the connection and when it entered that class. p.mu is held.
func (p *connState) evictionClass(now time.Time) (evictionClass, time.Time) {
	switch {
	case p.isClientStuck(now):
		return slow, now.Add(-stuckAfter)
	case p.phase == waiting:
		return idle, p.since
	case p.phase != working && now.Sub(p.since) >= slowAfter && !p.isBodyFastLocked(now):
		return slow, p.since
	}
	return wanted, p.since
}

// isClientStuck reports whether a write to the client has been blocked for stuckAfter, because the client does not
// read.
func (p *connState) isClientStuck(now time.Time) bool {
	began := p.out.Load()
	return began != 0 && p.in.clockValue(now)-began >= int64(stuckAfter)
}

// closeUnlessBusy closes an idle connection now, and a busy one after the current request.
func (p *connState) closeUnlessBusy() {
	p.closeAfterRequest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == waiting || p.phase == inHead {
		p.raw.Close()
	}
}

// closeAfterRequest closes the connection after the current or the first request.
func (p *connState) closeAfterRequest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fate == staying {
		p.fate = ending
	}
}

func (p *connState) isEnding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fate != staying
}

func (p *connState) isBodyFast(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isBodyFastLocked(now)
}

// isBodyFastLocked reports whether a body arrives at a good rate. p.mu is held.
func (p *connState) isBodyFastLocked(now time.Time) bool {
	got := p.got.Load()
	return p.phase == inBody && got > 0 && float64(got) >= fastBodyRate*now.Sub(p.since).Seconds()
}

// reserveSlot makes a slot available for one more connection and reports whether that succeeded. Otherwise it returns
// when to try again, or 0.
//
// Connections without a request yet may use half of the slots, or more while other slots are free. So a client that
// opens many silent connections evicts only its own. At the limit, reserveSlot closes slow connections first, then
// those that have been idle for longest. r.mu is held.
func (r *connRegistry) reserveSlot(now time.Time) (ok bool, again time.Duration) {
	full, crowd := len(r.conns) >= r.limit, r.newcomers.Len() >= (r.limit+1)/2
	if !full && !crowd || full && !crowd && r.evictEstablishedConns(now) {
		return true, 0
	}
	if r.newcomers.Len() == 0 {
		return false, 0 // all connections are busy
	}
	if grace := graceTime - now.Sub(r.newcomers.Front().Value.(*connState).came); grace > 0 {
		return !full, grace
	}
	return r.evictNewcomer(now), time.Millisecond
}

// maxSpared limits how many connections without a complete request are skipped at a time because their request arrives
// at a good rate.
const maxSpared = 8

// evictNewcomer closes the oldest connection that has not sent a request. The caller holds r.mu.
func (r *connRegistry) evictNewcomer(now time.Time) bool {
	for passed := 0; r.newcomers.Len() > 0; {
		oldest := r.newcomers.Front()
		p := oldest.Value.(*connState)
		if passed < maxSpared && p.isBodyFast(now) {
			r.newcomers.MoveToBack(oldest)
			passed++
			continue
		}
		if r.evictConnUnlessBusy(p, now) {
			return true
		}
		r.unmarkNewcomer(p) // its first request is now complete
	}
	return false
}

// evictEstablishedConns closes connections that have sent a request. It closes several at once, because it inspects
// all. r.mu is held.
func (r *connRegistry) evictEstablishedConns(now time.Time) bool {
	type candidate struct {
		*connState
		worth evictionClass
		since time.Time
	}
	var all []candidate
	for p := range r.conns {
		if p.at != nil {
			continue
		}
		p.mu.Lock()
		if w, since := p.evictionClass(now); w != wanted {
			all = append(all, candidate{p, w, since})
		}
		p.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.worth, b.worth), a.since.Compare(b.since))
	})
	dropped := false
	for _, c := range all[:min(len(all), 1+r.limit/32)] {
		dropped = r.evictConnUnlessBusy(c.connState, now) || dropped
	}
	return dropped
}

// evictConnUnlessBusy closes a connection and frees its slot, unless a request is being answered. r.mu is held.
func (r *connRegistry) evictConnUnlessBusy(p *connState, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == working && !p.isClientStuck(now) {
		return false
	}
	p.fate = dropped
	p.raw.Close()
	r.removeConnLocked(p)
	return true
}

// removeConn frees the slot of a closed connection.
func (r *connRegistry) removeConn(p *connState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeConnLocked(p)
}

// markMovedToNetHTTP records that net/http serves a connection. The connection keeps its slot.
func (r *connRegistry) markMovedToNetHTTP(p *connState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns[p] { // the connection was not dropped
		r.conns[p] = false
	}
}

// removeConnLocked frees the slot of a connection. r.mu is held.
func (r *connRegistry) removeConnLocked(p *connState) {
	delete(r.conns, p)
	r.unmarkNewcomer(p)
}

// unmarkNewcomer records that a connection has sent its first request. r.mu is held.
func (r *connRegistry) unmarkNewcomer(p *connState) {
	if p.at != nil {
		r.newcomers.Remove(p.at)
		p.at = nil
	}
}
