package http1

import (
	"cmp"
	"container/list"
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

// place is what the Listener knows of a connection that is open, here or at
// net/http. A connection whose first request has not come whole is a newcomer.
type place struct {
	l    *Listener
	nc   net.Conn
	new  bool          // for the connection's own goroutine
	came time.Time     // l.mu guards this and the next one
	at   *list.Element // in l.newcomers, or nil
	got  atomic.Int64  // bytes of the body that is waited for
	out  atomic.Int64  // when the write that goes on has begun, as l.clock tells it; 0 = there is none

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
		p.l.mu.Lock()
		p.l.known(p)
		p.l.mu.Unlock()
	}
	return fate
}

// writing and written are around each write to the client.
func (p *place) writing(now time.Time) { p.out.Store(p.l.clock(now)) }
func (p *place) written()              { p.out.Store(0) }

// clock is a time as one number, which is not 0.
func (l *Listener) clock(now time.Time) int64 { return int64(now.Sub(l.made)) + 1 }

// worth is how much of a reason there is to keep a connection.
type worth uint8

const (
	slow   worth = iota // in the middle of a request, or of an answer that is not read
	idle                // nothing is asked of it
	wanted              // it is being worked on
)

// judge returns what the connection is worth, and since when. p.mu is held.
func (p *place) judge(now time.Time) (worth, time.Time) {
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
	return began != 0 && p.l.clock(now)-began >= int64(stuckAfter)
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
// on which nothing has been asked for longest. l.mu is held.
func (l *Listener) room(now time.Time) (ok bool, again time.Duration) {
	full, crowd := len(l.places) >= l.MaxConns, l.newcomers.Len() >= (l.MaxConns+1)/2
	if !full && !crowd || full && !crowd && l.dropKnown(now) {
		return true, 0
	}
	if l.newcomers.Len() == 0 {
		return false, 0 // all are being worked on
	}
	if grace := graceTime - now.Sub(l.newcomers.Front().Value.(*place).came); grace > 0 {
		return !full, grace
	}
	return l.dropNewcomer(now), time.Millisecond
}

// spared is how many newcomers are passed over at a time because their request
// is coming at a good rate.
const spared = 8

// dropNewcomer closes the newcomer that has been there for longest. l.mu is
// held.
func (l *Listener) dropNewcomer(now time.Time) bool {
	for passed := 0; l.newcomers.Len() > 0; {
		oldest := l.newcomers.Front()
		p := oldest.Value.(*place)
		if passed < spared && p.isBrisk(now) {
			l.newcomers.MoveToBack(oldest)
			passed++
			continue
		}
		if l.drop(p, now) {
			return true
		}
		l.known(p) // its request has come in this moment
	}
	return false
}

// dropKnown closes connections that are no newcomers: some at once, since to
// find them takes a look at all. l.mu is held.
func (l *Listener) dropKnown(now time.Time) bool {
	type candidate struct {
		*place
		worth worth
		since time.Time
	}
	var all []candidate
	for p := range l.places {
		if p.at != nil {
			continue
		}
		p.mu.Lock()
		if w, since := p.judge(now); w != wanted {
			all = append(all, candidate{p, w, since})
		}
		p.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.worth, b.worth), a.since.Compare(b.since))
	})
	dropped := false
	for _, c := range all[:min(len(all), 1+l.MaxConns/32)] {
		dropped = l.drop(c.place, now) || dropped
	}
	return dropped
}

// drop closes a connection, whose place is free at once, unless a request of
// its is being answered. l.mu is held.
func (l *Listener) drop(p *place, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == working && !p.stuck(now) {
		return false
	}
	p.fate = dropped
	p.nc.Close()
	l.forget(p)
	return true
}

// forget frees the place of a connection. l.mu is held.
func (l *Listener) forget(p *place) {
	delete(l.places, p)
	l.known(p)
}

// known says that a connection is no newcomer any more. l.mu is held.
func (l *Listener) known(p *place) {
	if p.at != nil {
		l.newcomers.Remove(p.at)
		p.at = nil
	}
}
