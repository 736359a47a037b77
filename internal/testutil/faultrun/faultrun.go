// Package faultrun breaks things under a running MCPProxy and holds what its
// clients were told, and what reached its server, against the activity log.
//
// A run starts the real binary with its data on a file system of its own, has
// clients call through it, breaks something at a moment that the seed says,
// kills the process, puts in order what was broken, starts it again and reads
// the log. The same seed breaks the same thing at the same moment.
//
// It guarantees that what it has mounted and started is gone when a run ends. It
// does not look at decisions, and is for tests and measurements only.
package faultrun

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/testutil/faultfs"
)

// Report is what a run has found.
type Report struct {
	Calls        int // that were asked for
	Acknowledged int // answered with the server's result
	Refused      int // answered with AUDIT_UNAVAILABLE
	Reached      int // that the server got
	Recorded     int
	Interrupted  int

	Lost    int // acknowledged, or reached the server, and not in the log
	Doubled int // in the log more than once
	Wrong   int // acknowledged and not a success in the log, or refused and yet made
	Damaged int // records that tell of damage

	// Noticed is how long after the fault the first call was refused, Back how
	// long after its end the daemon was well again; 0 where that is not asked.
	Noticed, Back time.Duration
	Problems      []string
	Said          string // what the daemon had said until the kill, when there are problems
}

// Good reports whether nothing was lost, doubled or wrong.
func (r *Report) Good() bool { return r.Lost+r.Doubled+r.Wrong+r.Damaged == 0 && len(r.Problems) == 0 }

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < 10 {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Scenario is one way to break things.
type Scenario struct {
	Name string
	// disk mounts what the data is on; nil: nothing special.
	disk func(dir string, rnd *rand.Rand) (*faultfs.Mount, error)
	// fault breaks something, and returns how that ends.
	fault func(x *run) (end func() error, err error)
	// small says that the disk has no room for what many calls leave.
	small  bool
	config string // more of it, with a comma behind
	// live says that the fault ends, and has to be got over, before the kill;
	// else the process is killed while it lasts.
	live bool
	// refuses says that calls have to be refused while the fault lasts.
	refuses bool
	// linger bounds how long the fault lasts; 0: not longer than it takes to begin.
	linger time.Duration
}

// run is a scenario under way.
type run struct {
	opt    Options
	rnd    *rand.Rand
	disk   *faultfs.Mount
	memory *faultfs.Mount // where the daemon keeps what outlives it
	data   string
	daemon *daemon
	said   string
	load   *load
	report *Report
}

// How long it may take until a fault is noticed, and until it is got over.
const (
	noticeTime  = 3 * time.Second
	recoverTime = 5 * time.Second
)

// Run plays a scenario.
func Run(ctx context.Context, s Scenario, opt Options) (report *Report, err error) {
	x := &run{opt: opt, rnd: rand.New(rand.NewPCG(opt.Seed, 17)), report: &Report{}}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if x.daemon != nil {
			x.daemon.kill()
		}
		for _, m := range []*faultfs.Mount{x.disk, x.memory} {
			if m != nil {
				_ = m.Close() // the run is over
			}
		}
		_ = os.RemoveAll(opt.Dir)
	}()
	disk, memory := filepath.Join(opt.Dir, "disk"), filepath.Join(opt.Dir, "memory")
	if x.memory, err = faultfs.Tmpfs(memory, 32<<20); err != nil {
		return nil, err
	}
	if s.disk != nil {
		if x.disk, err = s.disk(disk, x.rnd); err != nil {
			return nil, err
		}
	}
	x.data = filepath.Join(disk, "data")
	x.load = newLoad(opt.Clients)
	if s.small {
		x.load.clients, x.load.gentle = 2, true
	}
	defer x.load.close()
	if x.daemon, err = startDaemon(opt, x.data, x.load.config(s.config)); err != nil {
		return nil, err
	}
	if err := x.load.begin(ctx, x.daemon.address); err != nil {
		return nil, err
	}
	if err := x.play(ctx, s); err != nil {
		return x.report, err
	}
	err = x.check(ctx)
	if err != nil || !x.report.Good() {
		x.report.Said = x.said
	}
	return x.report, err
}

// play breaks things, and kills the process.
func (x *run) play(ctx context.Context, s Scenario) error {
	x.pause(ctx, 200*time.Millisecond, time.Second)
	end := func() error { return nil }
	if s.fault != nil {
		var err error
		began := time.Now()
		if end, err = s.fault(x); err != nil {
			return fmt.Errorf("make the fault: %w", err)
		}
		if s.refuses {
			x.report.Noticed = x.await(ctx, "calls are refused", began, noticeTime, x.load.refused)
		}
		x.pause(ctx, 0, s.linger)
	}
	if s.live {
		if err := end(); err != nil {
			return fmt.Errorf("end the fault: %w", err)
		}
		x.report.Back = x.await(ctx, "the daemon is well again", time.Now(), recoverTime, x.daemon.ready)
		x.pause(ctx, 0, 300*time.Millisecond)
	}
	x.daemon.kill()
	x.load.stop()
	x.said = x.daemon.stderr.String()
	if !s.live {
		if err := end(); err != nil {
			return fmt.Errorf("end the fault: %w", err)
		}
	}
	return x.daemon.start()
}

func (x *run) pause(ctx context.Context, least, most time.Duration) {
	d := least
	if most > least {
		d += time.Duration(x.rnd.Int64N(int64(most - least)))
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// await waits until something is so, and returns how long that took; when it
// takes too long that is a problem of the run.
func (x *run) await(ctx context.Context, what string, since time.Time, most time.Duration, is func() error) time.Duration {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := is()
		took := time.Since(since)
		if err == nil {
			return took
		}
		if took > most || ctx.Err() != nil {
			x.report.problem("%s: not within %s: %v", what, most, err)
			return took
		}
		<-tick.C
	}
}

// Add adds up what runs have found; of times the longest counts.
func (r *Report) Add(o *Report) {
	r.Calls += o.Calls
	r.Acknowledged += o.Acknowledged
	r.Refused += o.Refused
	r.Reached += o.Reached
	r.Recorded += o.Recorded
	r.Interrupted += o.Interrupted
	r.Lost += o.Lost
	r.Doubled += o.Doubled
	r.Wrong += o.Wrong
	r.Damaged += o.Damaged
	r.Noticed, r.Back = max(r.Noticed, o.Noticed), max(r.Back, o.Back)
	r.Problems = append(r.Problems, o.Problems...)
}
