package main

import "time"

// The bounds of `bench hostile`.
const (
	hostileDeadline = 500 * time.Millisecond // call_timeout of the hostile servers
	hostileSlack    = 100 * time.Millisecond // what an error may be late
	hostileP99      = 2.0                    // the neighbour's p99 next to a hostile server, × its quiet p99
	hostileGrowth   = 64.0                   // MiB that the daemon may grow by one mode
	hostileRestart  = 2 * time.Second        // until a server that crashed answers again
)

// hostileMode is one kind of misbehavior: a sample tool of mcptest, or a server.
type hostileMode struct {
	name, tool, args string
	right            string // a part of the right answer; "" when none is possible
	over             string // the transports that have it; "" = all
	server           string // in the place of "bad", for the whole server that misbehaves
	calls            int    // of each client in a round; 0 = as many as the flag says
	goesOn           bool   // after its call: it is to be ended before the next one is measured
}

func hostileModes() []hostileMode {
	return []hostileMode{
		{name: "crash", tool: "crash"},
		{name: "hang", tool: "hang"},
		{name: "garbage", tool: "garbage", right: "done"},
		{name: "wrong id", tool: "wrong_id"},
		{name: "twice", tool: "duplicate", right: "first"},
		{name: "half a line", tool: "half"},
		{name: "1 byte/s", tool: "drip", args: `{"ms":1000}`},
		{name: "100k deep", tool: "deep", args: `{"n":100000}`},
		{name: "1 GB of stderr", tool: "stderr", args: `{"bytes":1000000000}`, right: "done", over: "stdio", calls: 1, goesOn: true},
		{name: "endless", tool: "endless", calls: 2},
		{name: "endless JSON", tool: "endless", args: `{"json":1}`, over: "json", calls: 2},
		{name: "list_changed 10k/s", tool: "storm", args: `{"n":4000,"rate":10000}`, right: "done"},
		{name: "endless pages", tool: "echo", server: "pages", calls: 2},
		{name: "gzip bomb", tool: "zip", args: `{"bytes":10000000000}`, over: "json events"},
		{name: "closes stdin", tool: "no_input", right: "done", over: "stdio"},
		{name: "ignores SIGTERM", tool: "crash", server: "deaf", over: "stdio"},
	}
}

// hostileRun is one run of the benchmark.
type hostileRun struct {
	o            options
	proxy        *process
	dir          string
	config       func(enabled string) string // that has no other of the servers whose list has no end
	base         string                      // address of the daemon
	neighbours   []*neighbourClient
	misses       []string
	memoryAtRest float64 // MiB of the daemon before anything hostile happened
	peakMemory   float64 // the most since then
}
