package process

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// StartQueue limits how many processes start at a time, from spawn until they are ready or have failed, because a start keeps a
// core busy. It is first come, first served. But starts that a caller waits for have precedence and extra capacity, so that
// they do not wait for installations. Running processes need no slot.
type StartQueue struct {
	capacity  int          // total weight that may start at a time
	finishing atomic.Int64 // package managers that finish an installation

	mu        sync.Mutex // guards the fields below and those of the slots
	used      int
	waiting   []*StartSlot    // in queue order
	fetching  map[string]bool // keys that are starting now
	installed map[string]bool // keys that have been ready once
}

const (
	capacityPerCore = 2            // weight per core
	urgentCapacity  = runnerWeight // extra, for starts that a caller waits for
	maxKeys         = 10_000       // in installed
)

// NewStartQueue returns a queue with the capacity of this machine.
func NewStartQueue() *StartQueue {
	return NewStartQueueWithCapacity(capacityPerCore * runtime.GOMAXPROCS(0))
}

// NewStartQueueWithCapacity returns a queue with that capacity: a plain program takes 1,
// one that is fetched first takes 2.
func NewStartQueueWithCapacity(room int) *StartQueue {
	return &StartQueue{capacity: room, fetching: map[string]bool{}, installed: map[string]bool{}}
}

// StartSlot is a place in the queue or the right to start. A nil slot means that no slot is needed.
type StartSlot struct {
	q        *StartQueue
	weight   int
	key      string
	urgent   bool
	occupied bool          // it uses capacity; a slot that had its turn and yielded does not
	turn     chan struct{} // closed when its turn has come

	trouble string // see DownloadProblem
}

// FinishingInstallCount returns how many package managers are finishing an installation.
func (q *StartQueue) FinishingInstallCount() int { return int(q.finishing.Load()) }

// WaitingCount returns the number of starts that wait for a slot.
func (q *StartQueue) WaitingCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// TurnGranted returns a channel that is closed when the turn of p has come.
func (p *StartSlot) TurnGranted() <-chan struct{} { return p.turn }

// Join adds a slot to the queue.
func (q *StartQueue) Join(r PackageRunner, hasty bool) *StartSlot {
	p := &StartSlot{q: q, weight: r.startWeight(), key: r.packageKey(), turn: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enqueue(p, hasty)
	q.grantTurns()
	return p
}

// enqueue puts p behind the others of its priority. The lock is held.
func (q *StartQueue) enqueue(p *StartSlot, hasty bool) {
	p.urgent = hasty
	at := len(q.waiting)
	if hasty {
		if at = slices.IndexFunc(q.waiting, func(p *StartSlot) bool { return !p.urgent }); at < 0 {
			at = len(q.waiting)
		}
	}
	q.waiting = slices.Insert(q.waiting, at, p)
}

// grantTurns gives turns while there is capacity. No slot overtakes one that needs more capacity, to prevent starvation. Only a
// slot that waits for another one to fetch the same package is skipped. The lock is held.
func (q *StartQueue) grantTurns() {
	for i := 0; i < len(q.waiting); {
		p := q.waiting[i]
		if p.key != "" && q.fetching[p.key] && !q.installed[p.key] {
			i++
			continue
		}
		room := q.capacity
		if p.urgent {
			room += urgentCapacity
		}
		if q.used > 0 && q.used+p.weight > room {
			return
		}
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.used += p.weight
		p.occupied = true
		if p.key != "" {
			q.fetching[p.key] = true
		}
		close(p.turn)
	}
}

// MakeUrgent moves p before all slots that no caller waits for.
func (p *StartSlot) MakeUrgent() {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	i := slices.Index(p.q.waiting, p)
	if i < 0 || p.urgent {
		return
	}
	p.q.waiting = slices.Delete(p.q.waiting, i, i+1)
	p.q.enqueue(p, true)
	p.q.grantTurns()
}

// SlotsAhead returns how many slots precede p, and whether p still waits.
func (p *StartSlot) SlotsAhead() (n int, waits bool) {
	if p == nil {
		return 0, false
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	n = slices.Index(p.q.waiting, p)
	return max(0, n), n >= 0
}

// mayNeedInstall reports whether the package of p may not be installed yet.
func (p *StartSlot) mayNeedInstall() bool {
	if p == nil {
		return false
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	return p.key != "" && !p.q.installed[p.key]
}

// DownloadProblem returns why the runner cannot fetch now; "" if unknown.
func (p *StartSlot) DownloadProblem() string {
	if p == nil {
		return ""
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	return p.trouble
}

func (p *StartSlot) setDownloadProblem(why string) {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	p.trouble = why
}

// trackFinishingInstall counts a package manager that finishes its installation, until done.
func (p *StartSlot) trackFinishingInstall() (done func()) {
	if p == nil {
		return func() {}
	}
	p.q.finishing.Add(1)
	return func() { p.q.finishing.Add(-1) }
}

// yieldCapacity lets another process start while p makes no progress.
func (p *StartSlot) yieldCapacity() {
	if p == nil {
		return
	}
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	p.releaseCapacity()
	p.q.grantTurns()
}

// releaseCapacity frees the capacity of p. The lock is held.
func (p *StartSlot) releaseCapacity() {
	if p.occupied {
		p.occupied = false
		p.q.used -= p.weight
	}
}

// Release ends the start or the wait. ready reports whether the package is now installed.
func (p *StartSlot) Release(ready bool) {
	if p == nil {
		return
	}
	q := p.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else if p.key != "" {
		delete(q.fetching, p.key) // one success means that the package is installed
		if len(q.installed) >= maxKeys {
			clear(q.installed)
		}
		if ready {
			q.installed[p.key] = true
		}
	}
	p.releaseCapacity()
	p.key = ""
	q.grantTurns()
}

// IsInstalled reports whether the package of r has been started before.
func (q *StartQueue) IsInstalled(r PackageRunner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return r.packageKey() == "" || q.installed[r.packageKey()]
}
