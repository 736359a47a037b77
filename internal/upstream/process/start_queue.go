package process

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// StartQueue bounds how many processes start at a time, from their spawn until
// they are ready or have failed: a start keeps a processor busy, a package
// manager that installs more than one. It is first come, first served, but what
// somebody waits for goes first, and has room of its own, so that it does not
// wait for the installation of others. What runs needs no place.
type StartQueue struct {
	room   int          // sum of the weights that may start at a time
	ending atomic.Int64 // package managers that end what they install

	mu        sync.Mutex // guards what follows, and the places
	taken     int
	waiting   []*StartSlot    // in the order in which they get their turn
	fetching  map[string]bool // keys of those that start now
	installed map[string]bool // keys of those that have been ready once
}

const (
	roomPerCore = 2            // weight that one processor bears
	hastyRoom   = runnerWeight // beyond room, for what somebody waits for
	maxKeys     = 10_000       // of installed
)

// NewStartQueue returns a queue with the room that this machine has.
func NewStartQueue() *StartQueue { return StartQueueOf(roomPerCore * runtime.GOMAXPROCS(0)) }

// StartQueueOf returns a queue in which as much may start at a time: 1 is a plain
// program, 2 is one that is fetched first.
func StartQueueOf(room int) *StartQueue {
	return &StartQueue{room: room, fetching: map[string]bool{}, installed: map[string]bool{}}
}

// StartSlot is the right of one process to start, or the wait for it. A nil place
// is for what needs none.
type StartSlot struct {
	q      *StartQueue
	weight int
	key    string
	hasty  bool
	held   bool          // of room; what has its turn and does not work any more has none
	turn   chan struct{} // closed when its turn has come

	trouble string // see Trouble
}

// Ending returns how many package managers end what they install just now.
func (q *StartQueue) Ending() int { return int(q.ending.Load()) }

// Waiting returns how many wait for their turn.
func (q *StartQueue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Turn returns a channel that is closed when the turn of p has come.
func (p *StartSlot) Turn() <-chan struct{} { return p.turn }

// Join gets in line.
func (q *StartQueue) Join(r Runner, hasty bool) *StartSlot {
	p := &StartSlot{q: q, weight: r.weight(), key: r.key(), turn: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enqueue(p, hasty)
	q.advance()
	return p
}

// enqueue puts p behind the others of its kind. The lock is held.
func (q *StartQueue) enqueue(p *StartSlot, hasty bool) {
	p.hasty = hasty
	at := len(q.waiting)
	if hasty {
		if at = slices.IndexFunc(q.waiting, func(p *StartSlot) bool { return !p.hasty }); at < 0 {
			at = len(q.waiting)
		}
	}
	q.waiting = slices.Insert(q.waiting, at, p)
}

// advance gives the turn to as many as there is room for. Nobody overtakes one
// for whom there is not enough room yet, or it would never get any; only what
// has to wait for another one that fetches the same package is passed by. The
// lock is held.
func (q *StartQueue) advance() {
	for i := 0; i < len(q.waiting); {
		p := q.waiting[i]
		if p.key != "" && q.fetching[p.key] && !q.installed[p.key] {
			i++
			continue
		}
		room := q.room
		if p.hasty {
			room += hastyRoom
		}
		if q.taken > 0 && q.taken+p.weight > room {
			return
		}
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.taken += p.weight
		p.held = true
		if p.key != "" {
			q.fetching[p.key] = true
		}
		close(p.turn)
	}
}

// Hurry puts p before all that nobody waits for.
func (p *StartSlot) Hurry() {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	i := slices.Index(p.q.waiting, p)
	if i < 0 || p.hasty {
		return
	}
	p.q.waiting = slices.Delete(p.q.waiting, i, i+1)
	p.q.enqueue(p, true)
	p.q.advance()
}

// Ahead returns how many get their turn before p, and whether p still waits at all.
func (p *StartSlot) Ahead() (n int, waits bool) {
	if p == nil {
		return 0, false
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	n = slices.Index(p.q.waiting, p)
	return max(0, n), n >= 0
}

// fetches reports whether the package of p may not be there yet.
func (p *StartSlot) fetches() bool {
	if p == nil {
		return false
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	return p.key != "" && !p.q.installed[p.key]
}

// Trouble is why the runner cannot fetch now, in our own words; "" when nothing is known.
func (p *StartSlot) Trouble() string {
	if p == nil {
		return ""
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	return p.trouble
}

func (p *StartSlot) setTrouble(why string) {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	p.trouble = why
}

// ends notes that what has p ends what it installs, until done.
func (p *StartSlot) ends() (done func()) {
	if p == nil {
		return func() {}
	}
	p.q.ending.Add(1)
	return func() { p.q.ending.Add(-1) }
}

// yield lets another one start beside p, which does not work at the moment.
func (p *StartSlot) yield() {
	if p == nil {
		return
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	p.giveBack()
	p.q.advance()
}

// giveBack frees the room of p. The lock is held.
func (p *StartSlot) giveBack() {
	if p.held {
		p.held = false
		p.q.taken -= p.weight
	}
}

// Leave ends the start, or the wait for it. ready reports whether it has come to an
// end that leaves its package installed.
func (p *StartSlot) Leave(ready bool) {
	if p == nil {
		return
	}
	q := p.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else if p.key != "" {
		delete(q.fetching, p.key) // of several, all are installed
		if len(q.installed) >= maxKeys {
			clear(q.installed)
		}
		if ready {
			q.installed[p.key] = true
		}
	}
	p.giveBack()
	p.key = ""
	q.advance()
}

// IsInstalled reports whether the package of r has been started once.
func (q *StartQueue) IsInstalled(r Runner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return r.key() == "" || q.installed[r.key()]
}
