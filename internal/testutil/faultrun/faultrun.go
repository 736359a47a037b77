// Package faultrun injects faults under a running MCPProxy and compares the activity log with what its
// clients and its server saw.
//
// A run starts the real binary with its data on a separate file system, starts clients, injects a fault at
// a moment determined by the seed, kills the process, repairs the fault, restarts the process and reads
// the log. The same seed injects the same fault at the same moment.
//
// Everything that a run mounts or starts is removed when it ends. It does not check decisions, and is only
// for tests and measurements.
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

// Report is the result of a run.
type Report struct {
	Calls        int // sent
	Acknowledged int // answered with the server's result
	Refused      int // answered with AUDIT_UNAVAILABLE
	Reached      int // received by the server
	Recorded     int
	Interrupted  int

	Lost    int // acknowledged, or received by the server, but not in the log
	Doubled int // in the log more than once
	Wrong   int // acknowledged but not a success in the log, or refused but executed
	Damaged int // records that report damage

	// Noticed is the time from the fault to the first refused call. Back is the time from the end of the fault until
	// the daemon was healthy. 0 means not measured.
	Noticed, Back time.Duration
	Problems      []string
	Said          string // stderr of the daemon until the kill, if there are problems
}

// IsGood reports whether nothing was lost, doubled or wrong.
func (r *Report) IsGood() bool {
	return r.Lost+r.Doubled+r.Wrong+r.Damaged == 0 && len(r.Problems) == 0
}

func (r *Report) addProblem(format string, args ...any) {
	if len(r.Problems) < 10 {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Scenario is one kind of fault.
type Scenario struct {
	Name string
	// disk mounts the file system for the data; nil means no separate one.
	disk func(dir string, rnd *rand.Rand) (*faultfs.Mount, error)
	// fault injects the fault, and returns the function that ends it.
	fault func(x *scenarioRun) (end func() error, err error)
	// small means that the disk has no space for the records of many calls.
	small  bool
	config string // additional settings, with a trailing comma
	// live means that the fault ends and the daemon recovers before the kill. Otherwise the process is killed during
	// the fault.
	live bool
	// refuses means that calls must be refused during the fault.
	refuses bool
	// linger limits the duration of the fault; 0 means that it ends immediately.
	linger time.Duration
}

// scenarioRun is a running scenario.
type scenarioRun struct {
	opt    Options
	rnd    *rand.Rand
	disk   *faultfs.Mount
	memory *faultfs.Mount // where the daemon keeps the files outside of its database
	data   string
	daemon *daemon
	said   string
	load   *clientLoad
	report *Report
}

// The limits for noticing a fault and for recovering.
const (
	noticeTime  = 3 * time.Second
	recoverTime = 5 * time.Second
)

// RunScenario runs a scenario.
func RunScenario(ctx context.Context, s Scenario, opt Options) (report *Report, err error) {
	x := &scenarioRun{opt: opt, rnd: rand.New(rand.NewPCG(opt.Seed, 17)), report: &Report{}}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if x.daemon != nil {
			x.daemon.kill()
		}
		for _, m := range []*faultfs.Mount{x.disk, x.memory} {
			if m != nil {
				_ = m.Close() // the run has ended
			}
		}
		_ = os.RemoveAll(opt.Dir)
	}()
	disk, memory := filepath.Join(opt.Dir, "disk"), filepath.Join(opt.Dir, "memory")
	if x.memory, err = faultfs.MountTmpfs(memory, 32<<20); err != nil {
		return nil, err
	}
	if s.disk != nil {
		if x.disk, err = s.disk(disk, x.rnd); err != nil {
			return nil, err
		}
	}
	x.data = filepath.Join(disk, "data")
	x.load = newClientLoad(opt.Clients)
	if s.small {
		x.load.clients, x.load.gentle = 2, true
	}
	defer x.load.close()
	if x.daemon, err = startDaemon(opt, x.data, x.load.formatConfig(s.config)); err != nil {
		return nil, err
	}
	if err := x.load.startClients(ctx, x.daemon.address); err != nil {
		return nil, err
	}
	if err := x.injectAndKill(ctx, s); err != nil {
		return x.report, err
	}
	err = x.compareLogWithCalls(ctx)
	if err != nil || !x.report.IsGood() {
		x.report.Said = x.said
	}
	return x.report, err
}

// injectAndKill injects the fault and kills the process.
func (x *scenarioRun) injectAndKill(ctx context.Context, s Scenario) error {
	x.randomPause(ctx, 200*time.Millisecond, time.Second)
	end := func() error { return nil }
	if s.fault != nil {
		var err error
		began := time.Now()
		if end, err = s.fault(x); err != nil {
			return fmt.Errorf("make the fault: %w", err)
		}
		if s.refuses {
			x.report.Noticed = x.awaitCondition(ctx, "calls are refused", began, noticeTime, x.load.checkLastRefused)
		}
		x.randomPause(ctx, 0, s.linger)
	}
	if s.live {
		if err := end(); err != nil {
			return fmt.Errorf("end the fault: %w", err)
		}
		x.report.Back = x.awaitCondition(ctx, "the daemon is well again", time.Now(), recoverTime, x.daemon.checkReady)
		x.randomPause(ctx, 0, 300*time.Millisecond)
	}
	x.daemon.kill()
	x.load.stopClients()
	x.said = x.daemon.stderr.String()
	if !s.live {
		if err := end(); err != nil {
			return fmt.Errorf("end the fault: %w", err)
		}
	}
	return x.daemon.start()
}

func (x *scenarioRun) randomPause(ctx context.Context, least, most time.Duration) {
	d := least
	if most > least {
		d += time.Duration(x.rnd.Int64N(int64(most - least)))
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// awaitCondition waits for a condition and returns how long that took; a timeout is a problem of the run.
func (x *scenarioRun) awaitCondition(ctx context.Context, what string, since time.Time, most time.Duration, is func() error) time.Duration {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := is()
		took := time.Since(since)
		if err == nil {
			return took
		}
		if took > most || ctx.Err() != nil {
			x.report.addProblem("%s: not within %s: %v", what, most, err)
			return took
		}
		<-tick.C
	}
}

// Add adds another report. It keeps the longest durations.
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
