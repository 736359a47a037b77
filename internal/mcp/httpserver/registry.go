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
	// slowAfter is when an incomplete request counts as slow, and stuckAfter when an unread reply does.
	// Both matter only at the connection limit.
	slowAfter, stuckAfter = time.Second, 5 * time.Second
	// briskRate is the rate from which a body is not slow, in bytes per second.
	briskRate = 64 << 10
	// graceTime is how long a newcomer may wait with its first request.
	graceTime = 200 * time.Millisecond
)

// phase is the state of a connection between two requests.
type phase uint8

const (
	waiting phase = iota // no byte of the next request
	inHead               // reading the head
	inBody               // reading the body
	working              // a complete request is being answered
)

// fate says whether a connection may serve another request.
type fate uint8

const (
	staying fate = iota
	ending       // after the current reply the connection closes
	dropped      // the connection is closed
)

// registry tracks all open connections.
type registry struct {
	limit int // limit of open connections
	made  time.Time

	mu        sync.Mutex          // guards the following fields
	conns     map[*connState]bool // all open connections; true: served here, not by net/http
	newcomers *list.List          // of *connState, the oldest first
}

func newRegistry(most int) *registry {
	return &registry{limit: most, made: time.Now(), conns: map[*connState]bool{}, newcomers: list.New()}
}

// connState is the state of an open connection, here or at net/http. Until its first complete request it
// is a newcomer.
type connState struct {
	in   *registry
	nc   net.Conn
	stop context.CancelFunc // ends the contexts of its requests; nil at net/http
	new  bool               // for the connection's own goroutine
	came time.Time          // in.mu guards this and the next one
	at   *list.Element      // in in.newcomers, or nil
	got  atomic.Int64       // bytes of the current body
	out  atomic.Int64       // start of the current write, by in.clock; 0: none

	mu    sync.Mutex // guards the following fields; only the connection's goroutine changes phase and since
	phase phase
	since time.Time // of the phase, except working
	fate  fate
}

// enter sets the phase.
func (p *connState) enter(to phase, now time.Time) fate {
	if to == inBody {
		p.got.Store(0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.since = to, now
	return p.fate
}

// complete registers a complete request.
func (p *connState) complete() fate {
	p.mu.Lock()
	p.phase = working
	fate := p.fate
	p.mu.Unlock()
	if p.new {
		p.new = false
		p.in.mu.Lock()
		p.in.known(p)
		p.in.mu.Unlock()
	}
	return fate
}

// writing and written surround each write to the client.
func (p *connState) writing(now time.Time) { p.out.Store(p.in.clock(now)) }
func (p *connState) written()              { p.out.Store(0) }

// clock returns a time as a number that is not 0.
func (r *registry) clock(now time.Time) int64 { return int64(now.Sub(r.made)) + 1 }

// evictionClass is the order in which connections are closed.
type evictionClass uint8

const (
	slow   evictionClass = iota // in an incomplete request or an unread reply
	idle                        // no request
	wanted                      // a request is being answered
)

// evictionClass returns the class of the connection, and since when. p.mu is held.
func (p *connState) evictionClass(now time.Time) (evictionClass, time.Time) {
	switch {
	case p.stuck(now):
		return slow, now.Add(-stuckAfter)
	case p.phase == waiting:
		return idle, p.since
	case p.phase != working && now.Sub(p.since) >= slowAfter && !p.brisk(now):
		return slow, p.since
	}
	return wanted, p.since
}

// stuck reports whether the client does not read.
func (p *connState) stuck(now time.Time) bool {
	began := p.out.Load()
	return began != 0 && p.in.clock(now)-began >= int64(stuckAfter)
}

// closeIdle closes the connection now, or after the current request.
func (p *connState) closeIdle() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == waiting || p.phase == inHead {
		p.nc.Close()
	}
}

// end closes the connection after the current or the first request.
func (p *connState) end() {
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

func (p *connState) isBrisk(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.brisk(now)
}

// brisk reports whether a body arrives at a good rate. p.mu is held.
func (p *connState) brisk(now time.Time) bool {
	got := p.got.Load()
	return p.phase == inBody && got > 0 && float64(got) >= briskRate*now.Sub(p.since).Seconds()
}

// reserve makes a slot for one more connection and reports whether there is one; if not, it returns when
// to try again, or 0.
//
// Newcomers get half of the slots, or more while these are free: a client that opens many silent
// connections evicts its own. At the limit it closes slow connections first, then the longest idle. r.mu
// is held.
func (r *registry) reserve(now time.Time) (ok bool, again time.Duration) {
	full, crowd := len(r.conns) >= r.limit, r.newcomers.Len() >= (r.limit+1)/2
	if !full && !crowd || full && !crowd && r.dropKnown(now) {
		return true, 0
	}
	if r.newcomers.Len() == 0 {
		return false, 0 // all are busy
	}
	if grace := graceTime - now.Sub(r.newcomers.Front().Value.(*connState).came); grace > 0 {
		return !full, grace
	}
	return r.dropNewcomer(now), time.Millisecond
}

// maxSpared limits how many newcomers are skipped at a time because their request arrives at a good rate.
const maxSpared = 8

// dropNewcomer closes the oldest newcomer. r.mu is held.
func (r *registry) dropNewcomer(now time.Time) bool {
	for passed := 0; r.newcomers.Len() > 0; {
		oldest := r.newcomers.Front()
		p := oldest.Value.(*connState)
		if passed < maxSpared && p.isBrisk(now) {
			r.newcomers.MoveToBack(oldest)
			passed++
			continue
		}
		if r.drop(p, now) {
			return true
		}
		r.known(p) // its request has just become complete
	}
	return false
}

// dropKnown closes connections that are no newcomers: several at once, because it inspects all. r.mu is
// held.
func (r *registry) dropKnown(now time.Time) bool {
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
		dropped = r.drop(c.connState, now) || dropped
	}
	return dropped
}

// drop closes a connection and frees its slot, unless a request is being answered. r.mu is held.
func (r *registry) drop(p *connState, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == working && !p.stuck(now) {
		return false
	}
	p.fate = dropped
	p.nc.Close()
	r.forget(p)
	return true
}

// remove frees the slot of a closed connection.
func (r *registry) remove(p *connState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(p)
}

// moved marks a connection as net/http's. It keeps its slot.
func (r *registry) moved(p *connState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns[p] { // not dropped
		r.conns[p] = false
	}
}

// forget frees the slot of a connection. r.mu is held.
func (r *registry) forget(p *connState) {
	delete(r.conns, p)
	r.known(p)
}

// known marks a connection as no newcomer. r.mu is held.
func (r *registry) known(p *connState) {
	if p.at != nil {
		r.newcomers.Remove(p.at)
		p.at = nil
	}
}
