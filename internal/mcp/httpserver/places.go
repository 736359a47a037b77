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
	// slowAfter is how long a request may take to come before its connection
	// counts as slow, and stuckAfter how long a client may leave what is written
	// to it unread. Both matter only when places run short.
	slowAfter, stuckAfter = time.Second, 5 * time.Second
	// briskRate is the rate, in bytes a second, at which a body is not slow.
	briskRate = 64 << 10
	// graceTime is how long a newcomer has for its first request, however many
	// come after it.
	graceTime = 200 * time.Millisecond
)

// phase is where a connection is between two requests.
type phase uint8

const (
	waiting phase = iota // for a request of which nothing has come
	inHead               // some of the head has come
	inBody               // the head has come
	working              // the request has come whole, and is being answered
)

// fate is whether there may be one more request.
type fate uint8

const (
	staying fate = iota
	ending       // the one that is being answered is the last
	dropped      // the connection is closed
)

// registry is the account of the connections that are open.
type registry struct {
	most int // open at once
	made time.Time

	mu        sync.Mutex      // guards what follows
	places    map[*place]bool // that are taken; true: it is served here, not by net/http
	newcomers *list.List      // of *place: the oldest first
}

func newRegistry(most int) *registry {
	return &registry{most: most, made: time.Now(), places: map[*place]bool{}, newcomers: list.New()}
}

// place is what the registry knows of a connection that is open, here or at
// net/http. A connection whose first request has not come whole is a newcomer.
type place struct {
	in   *registry
	nc   net.Conn
	stop context.CancelFunc // ends the contexts of its requests; nil at net/http
	new  bool               // for the connection's own goroutine
	came time.Time          // in.mu guards this and the next one
	at   *list.Element      // in in.newcomers, or nil
	got  atomic.Int64       // bytes of the body that is waited for
	out  atomic.Int64       // when the write that goes on has begun, as in.clock tells it; 0 = there is none

	mu    sync.Mutex // guards what follows; phase and since are changed by the connection's goroutine alone
	phase phase
	since time.Time // not of working
	fate  fate
}

// enter notes that the connection is in another phase.
func (p *place) enter(to phase, now time.Time) fate {
	if to == inBody {
		p.got.Store(0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.since = to, now
	return p.fate
}

// whole notes that a request has come whole.
func (p *place) whole() fate {
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

// writing and written are around each write to the client.
func (p *place) writing(now time.Time) { p.out.Store(p.in.clock(now)) }
func (p *place) written()              { p.out.Store(0) }

// clock is a time as one number, which is not 0.
func (r *registry) clock(now time.Time) int64 { return int64(now.Sub(r.made)) + 1 }

// evictionClass is how much of a reason there is to keep a connection.
type evictionClass uint8

const (
	slow   evictionClass = iota // in the middle of a request, or of an answer that is not read
	idle                        // nothing is asked of it
	wanted                      // it is being worked on
)

// evictionClass returns what the connection is worth, and since when. p.mu is held.
func (p *place) evictionClass(now time.Time) (evictionClass, time.Time) {
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

// stuck reports whether the client does not read what is written to it.
func (p *place) stuck(now time.Time) bool {
	began := p.out.Load()
	return began != 0 && p.in.clock(now)-began >= int64(stuckAfter)
}

// closeIdle ends the connection now or after the request that is being
// answered.
func (p *place) closeIdle() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == waiting || p.phase == inHead {
		p.nc.Close()
	}
}

// end ends the connection after the request that is being answered, or the first.
func (p *place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fate == staying {
		p.fate = ending
	}
}

func (p *place) isEnding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fate != staying
}

func (p *place) isBrisk(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.brisk(now)
}

// brisk reports whether a body comes at a good rate. p.mu is held.
func (p *place) brisk(now time.Time) bool {
	got := p.got.Load()
	return p.phase == inBody && got > 0 && float64(got) >= briskRate*now.Sub(p.since).Seconds()
}

// room makes room for one more connection, and reports whether there is any; if
// there is none, when to look again, or 0.
//
// Newcomers may have half of the places, and more of them while these are free:
// who has many, and says little on them, pushes out his own. When all places are
// taken, those lose theirs that are slow in the middle of something, then those
// on which nothing has been asked for longest. r.mu is held.
func (r *registry) room(now time.Time) (ok bool, again time.Duration) {
	full, crowd := len(r.places) >= r.most, r.newcomers.Len() >= (r.most+1)/2
	if !full && !crowd || full && !crowd && r.dropKnown(now) {
		return true, 0
	}
	if r.newcomers.Len() == 0 {
		return false, 0 // all are being worked on
	}
	if grace := graceTime - now.Sub(r.newcomers.Front().Value.(*place).came); grace > 0 {
		return !full, grace
	}
	return r.dropNewcomer(now), time.Millisecond
}

// spared is how many newcomers are passed over at a time because their request
// is coming at a good rate.
const spared = 8

// dropNewcomer closes the newcomer that has been there for longest. r.mu is
// held.
func (r *registry) dropNewcomer(now time.Time) bool {
	for passed := 0; r.newcomers.Len() > 0; {
		oldest := r.newcomers.Front()
		p := oldest.Value.(*place)
		if passed < spared && p.isBrisk(now) {
			r.newcomers.MoveToBack(oldest)
			passed++
			continue
		}
		if r.drop(p, now) {
			return true
		}
		r.known(p) // its request has come in this moment
	}
	return false
}

// dropKnown closes connections that are no newcomers: some at once, since to
// find them takes a look at all. r.mu is held.
func (r *registry) dropKnown(now time.Time) bool {
	type candidate struct {
		*place
		worth evictionClass
		since time.Time
	}
	var all []candidate
	for p := range r.places {
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
	for _, c := range all[:min(len(all), 1+r.most/32)] {
		dropped = r.drop(c.place, now) || dropped
	}
	return dropped
}

// drop closes a connection, whose place is free at once, unless a request of
// its is being answered. r.mu is held.
func (r *registry) drop(p *place, now time.Time) bool {
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

// remove frees the place of a connection that is closed.
func (r *registry) remove(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(p)
}

// moved notes that a connection is net/http's now. It keeps its place.
func (r *registry) moved(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.places[p] { // it was not dropped
		r.places[p] = false
	}
}

// forget frees the place of a connection. r.mu is held.
func (r *registry) forget(p *place) {
	delete(r.places, p)
	r.known(p)
}

// known notes that a connection is no newcomer any more. r.mu is held.
func (r *registry) known(p *place) {
	if p.at != nil {
		r.newcomers.Remove(p.at)
		p.at = nil
	}
}
