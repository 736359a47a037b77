package process

import (
	"sync"
	"time"

	"mcpproxy/internal/problem"
)

// StartWatch watches a process from its spawn until it is ready. connect_timeout
// counts from when the process could answer: as long as it works (it or what it
// has started uses processor time, or writes to stderr) it is installing or
// loading something and is left alone, up to Longest.
type StartWatch struct {
	proc   *Process
	runner Runner
	limit  time.Duration // of quiet, connect_timeout
	bound  time.Duration // the same for what may wait for a network, or for somebody else's work
	place  *StartSlot
	source string // from where the runner fetches; "": not known
	began  time.Time
	unseen bool // a runner works where we cannot see it

	ready chan struct{} // closed when it is ready
	once  sync.Once
}

// The times of a start.
const (
	LongestStart = 15 * time.Minute // a start that works all the time
	lookPause    = time.Second      // between two looks at a start
	quietPlace   = 5 * time.Second  // after which a start that does not work gives its place to others
	unseenPlace  = time.Minute      // the same where work cannot be seen
	fetchQuiet   = 2 * time.Minute  // the least connect_timeout of a package manager at its first start: it may wait for the network
	unseenQuiet  = 3 * time.Minute  // the same of a runner whose work cannot be seen
	installGrace = 2 * time.Minute  // for a package manager to end what it installs
	quietInstall = 3 * time.Second  // it does not install any more
)

// NewStartWatch returns the watch of proc, which has just been started by r. limit is how
// long it may be quiet, 0 or more; place is what it has in the queue; source is from where r
// fetches, see Runner.Source.
func NewStartWatch(proc *Process, r Runner, limit time.Duration, place *StartSlot, source string) *StartWatch {
	s := &StartWatch{proc: proc, runner: r, limit: limit, bound: limit, place: place, source: source, began: time.Now(), ready: make(chan struct{})}
	if r.Name != "" {
		_, _, seen := proc.Work()
		s.unseen = r.remote || !seen
	}
	switch {
	case s.unseen:
		s.bound = max(limit, unseenQuiet)
	case r.Installs && place.fetches():
		s.bound = max(limit, fetchQuiet)
	}
	if place == nil || !r.Installs {
		s.source = "" // there is nobody to tell
	}
	proc.Spare(r.Installs)
	return s
}

// Watch watches the process until it is ready or done is closed, and returns why
// it takes too long, if it does.
func (s *StartWatch) Watch(done <-chan struct{}) error {
	if s.source != "" {
		s.proc.Go(func() { s.watchNetwork(done, s.source) })
	}
	quiet := s.watch()
	look := time.NewTicker(max(min(lookPause, s.limit/20), 20*time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-s.ready:
			return nil
		case <-done:
			return nil
		case now := <-look.C:
			since, yields := quiet(now), quietPlace
			if s.unseen {
				yields = unseenPlace
			}
			switch {
			case since >= s.bound:
				return problem.Slowf("it did not answer within %v", s.bound)
			case now.Sub(s.began) >= LongestStart:
				return problem.Slowf("it was not ready after %v", LongestStart)
			case since >= yields:
				s.place.yield()
			}
		}
	}
}

// watch returns a function that looks at the process and tells for how long
// it has not been working.
func (s *StartWatch) watch() (quiet func(now time.Time) time.Duration) {
	// What sleeps wakes up now and then. The shorter the time, the less counts.
	least := min(50*time.Millisecond, max(10*time.Millisecond, s.limit/600))
	worked := s.began
	var used time.Duration
	var said int64
	return func(now time.Time) time.Duration {
		u, running, _ := s.proc.Work()
		wrote := s.proc.Said()
		// What has ended is not counted any more, so that the sum may shrink.
		if running || wrote != said || u >= used+least || u < used {
			worked, used, said = now, u, wrote
		}
		return now.Sub(worked)
	}
}

// Done ends the watch: the process is ready.
func (s *StartWatch) Done() {
	s.once.Do(func() {
		s.proc.Spare(false)
		close(s.ready)
	})
}

// installing reports whether a kill now might break what the runner installs.
func (s *StartWatch) installing() bool {
	select {
	case <-s.ready:
		return false
	default:
		return s.runner.Installs
	}
}

// Finish lets a package manager come to the end of what it installs, for a
// while or until hard, and reports whether there was one: then it gets more time
// to end, and done is to be called when it has. begun ends its input, and gets its
// name.
func (s *StartWatch) Finish(hard <-chan struct{}, begun func(runner string)) (done func(), installs bool) {
	if !s.installing() {
		return func() {}, false
	}
	done = s.place.ends()
	begun(s.runner.Name)
	s.letFinish(hard)
	return done, true
}

// letFinish waits until a package manager whose input has ended has come to the
// end of what it installs, but not longer than installGrace or until hard.
func (s *StartWatch) letFinish(hard <-chan struct{}) {
	quiet := s.watch()
	limit := time.NewTimer(installGrace)
	defer limit.Stop()
	look := time.NewTicker(lookPause / 4)
	defer look.Stop()
	quiet(time.Now())
	for {
		select {
		case <-s.proc.Exited():
			return
		case <-limit.C:
			return
		case <-hard:
			return
		case now := <-look.C:
			if quiet(now) >= quietInstall && !s.unseen {
				return
			}
		}
	}
}
