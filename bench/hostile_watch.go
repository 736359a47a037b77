package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// neighbourClient calls a healthy server, at a steady pace.
type neighbourClient struct {
	callTarget
	direct           bool // not through the daemon
	newConnections   bool // over a new connection for each call
	quiet, underLoad callSamples
}

// callSamples are the durations of calls.
type callSamples struct {
	all    []time.Duration
	errors int
	err    error // the first
}

func (s *callSamples) merge(more callSamples) {
	s.all = append(s.all, more.all...)
	s.errors += more.errors
	if s.err == nil {
		s.err = more.err
	}
}

func (s *callSamples) p99() time.Duration {
	if len(s.all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.all))
	return sorted[len(sorted)*99/100]
}

// neighbourPace is the time between two calls of a neighbor.
const neighbourPace = 3 * time.Millisecond

// callUntilDone calls until ctx ends. It finishes a running call.
func (n *neighbourClient) callUntilDone(ctx context.Context, into *callSamples) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true, DisableKeepAlives: n.newConnections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 15 * time.Second}
	if err := callAndCheck(context.Background(), client, n.callTarget); err != nil { // which connects
		into.merge(callSamples{errors: 1, err: err})
	}
	pace := time.NewTicker(neighbourPace)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		began := time.Now()
		err := callAndCheck(context.Background(), client, n.callTarget)
		into.all = append(into.all, time.Since(began))
		if err != nil {
			into.merge(callSamples{errors: 1, err: err})
		}
	}
}

// resetPeakMemory resets the value of peakMemory.
func (p *process) resetPeakMemory() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0) // then it counts from the start
}

// markVar is in the environment of every process that the daemon starts, and of their
// child processes. Its value is the PID of this process.
const markVar = "MCPPROXY_BENCH_CHILD"

// markedProcesses returns the processes with the mark, without zombies of other parents.
func markedProcesses() []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is good
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, fmt.Appendf(nil, "%s=%d\x00", markVar, os.Getpid())) {
			continue // it is another one's, or has ended
		}
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
		found = append(found, filepath.Base(filepath.Dir(path))+" "+strings.TrimSpace(string(name)))
	}
	return found
}

// countZombieChildren counts the children that the process has not waited for.
func (p *process) countZombieChildren() int {
	n := 0
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(p.cmd.Process.Pid) {
			n++
		}
	}
	return n
}

// machineLoadText returns the load that other processes cause on the machine.
func machineLoadText() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "the load of the machine is not known"
	}
	return "load of the machine before: " + strings.Join(strings.Fields(string(raw))[:2], " ")
}

// pathRouter serves each path with its own handler.
type pathRouter map[string]http.Handler

func (rs pathRouter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := rs[r.URL.Path]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}
