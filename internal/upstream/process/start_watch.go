package process

import (
	"sync"
	"time"

	"mcpproxy/internal/problem"
)

// StartWatch watches a process from its spawn until it is ready. connect_timeout counts only while the process makes no
// progress. While it or its descendants use CPU or write to stderr, it is installing or loading, up to LongestStart.
type StartWatch struct {
	proc        *Process
	runner      PackageRunner
	quietLimit  time.Duration // without progress; connect_timeout
	waitLimit   time.Duration // the same if it may wait for a network or another process
	slot        *StartSlot
	registryURL string // where the runner fetches; "": unknown
	began       time.Time
	remoteWork  bool // a runner works in another process that cannot be seen

	ready chan struct{} // closed when it is ready
	once  sync.Once
}

// Times of a start.
const (
	LongestStart     = 15 * time.Minute // maximum with progress
	pollInterval     = time.Second      // between two checks
	idleYield        = 5 * time.Second  // without progress until it yields its capacity
	remoteYield      = time.Minute      // the same if work cannot be seen
	fetchQuietLimit  = 2 * time.Minute  // minimum connect_timeout of a package manager at its first start, which may wait for the network
	remoteQuietLimit = 3 * time.Minute  // the same if work cannot be seen
	installGrace     = 2 * time.Minute  // for a package manager to finish an installation
	installQuiet     = 3 * time.Second  // without progress until an installation counts as finished
)

// NewStartWatch returns the watch of proc, just started by r. limit is the time without
// progress, 0 or more; place is its slot in the queue; source is where r fetches, see
// PackageRunner.RegistryURL.
func NewStartWatch(proc *Process, r PackageRunner, limit time.Duration, place *StartSlot, source string) *StartWatch {
	s := &StartWatch{proc: proc, runner: r, quietLimit: limit, waitLimit: limit, slot: place, registryURL: source, began: time.Now(), ready: make(chan struct{})}
	if r.Name != "" {
		_, _, seen := proc.CPUTime()
		s.remoteWork = r.remote || !seen
	}
	switch {
	case s.remoteWork:
		s.waitLimit = max(limit, remoteQuietLimit)
	case r.Installs && place.mayNeedInstall():
		s.waitLimit = max(limit, fetchQuietLimit)
	}
	if place == nil || !r.Installs {
		s.registryURL = "" // no slot to report to
	}
	proc.LetLeftoversFinish(r.Installs)
	return s
}

// WatchUntilReady watches the process until it is ready or done is closed, and returns an error if
// it takes too long.
func (s *StartWatch) WatchUntilReady(done <-chan struct{}) error {
	if s.registryURL != "" {
		s.proc.Go(func() { s.watchNetwork(done, s.registryURL) })
	}
	quiet := s.newInactivityMeter()
	look := time.NewTicker(max(min(pollInterval, s.quietLimit/20), 20*time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-s.ready:
			return nil
		case <-done:
			return nil
		case now := <-look.C:
			since, yields := quiet(now), idleYield
			if s.remoteWork {
				yields = remoteYield
			}
			switch {
			case since >= s.waitLimit:
				return problem.TrustedTextTimeoutErrorf("it did not answer within %v", s.waitLimit)
			case now.Sub(s.began) >= LongestStart:
				return problem.TrustedTextTimeoutErrorf("it was not ready within %v", LongestStart)
			case since >= yields:
				s.slot.yieldCapacity()
			}
		}
	}
}

// newInactivityMeter returns a function that checks the process and returns how long it has
// made no progress.
func (s *StartWatch) newInactivityMeter() (quiet func(now time.Time) time.Duration) {
	// A sleeping process also wakes up now and then. The shorter the limit, the less CPU
	// counts as progress.
	least := min(50*time.Millisecond, max(10*time.Millisecond, s.quietLimit/600))
	worked := s.began
	var used time.Duration
	var said int64
	return func(now time.Time) time.Duration {
		u, running, _ := s.proc.CPUTime()
		wrote := s.proc.StderrByteCount()
		// The sum may shrink, because ended processes are not counted.
		if running || wrote != said || u >= used+least || u < used {
			worked, used, said = now, u, wrote
		}
		return now.Sub(worked)
	}
}

// MarkReady ends the watch: the process is ready.
func (s *StartWatch) MarkReady() {
	s.once.Do(func() {
		s.proc.LetLeftoversFinish(false)
		close(s.ready)
	})
}

// isInstalling reports whether a kill might corrupt an installation.
func (s *StartWatch) isInstalling() bool {
	select {
	case <-s.ready:
		return false
	default:
		return s.runner.Installs
	}
}

// LetInstallFinish lets a package manager finish its installation, for a while or until hard, and reports whether there was
// one. If so, it gets more time to end, and the caller calls done afterwards. begun closes its input and receives its name.
func (s *StartWatch) LetInstallFinish(hard <-chan struct{}, begun func(runner string)) (done func(), installs bool) {
	if !s.isInstalling() {
		return func() {}, false
	}
	done = s.slot.trackFinishingInstall()
	begun(s.runner.Name)
	s.waitInstallEnd(hard)
	return done, true
}

// waitInstallEnd waits until a package manager whose input is closed has finished its
// installation, for at most installGrace or until hard.
func (s *StartWatch) waitInstallEnd(hard <-chan struct{}) {
	quiet := s.newInactivityMeter()
	limit := time.NewTimer(installGrace)
	defer limit.Stop()
	look := time.NewTicker(pollInterval / 4)
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
			if quiet(now) >= installQuiet && !s.remoteWork {
				return
			}
		}
	}
}
