// Command bench measures MCPProxy beside the direct call and beside the floor
// (a relay of 60 lines on net/http that decodes the envelope and forwards the
// bytes), alternately in one run on one machine.
//
//	go run ./bench calls     calls through /mcp, everything on: latency, throughput, CPU
//	go run ./bench start     from the start of the process to the first answer
//	go run ./bench catalog   10,000 tools on 100 servers: until all are searchable; search; memory
//	go run ./bench sizes     a result of 10 MB, and idle sessions: time, memory
//	go run ./bench hostile   servers that crash, hang, flood and lie beside a healthy one: ends with 1 when a bound is missed
//	go run ./bench scan      what the scanner finds in the labelled corpora, where it is wrong, its time
//
// Every role (upstream, floor, MCPProxy) is a process of its own, so that its
// processor time can be told from that of the load. It is no test: it prints
// figures and, but for hostile, judges nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"mcpproxy/internal/mcptest"
)

// options are what can be set from the command line.
type options struct {
	duration time.Duration
	rounds   int
	clients  string
	upstream string
	verbose  bool
	shared   string
	calls    int
	only     string
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "time of one measurement")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each is measured; the median counts")
	flag.StringVar(&o.clients, "clients", "1,8,64", "numbers of concurrent clients")
	flag.StringVar(&o.upstream, "upstream", "bare", "the HTTP upstream of calls: bare (a handler on net/http) or sdk (the official Go SDK's server)")
	flag.BoolVar(&o.verbose, "v", false, "print each round")
	flag.StringVar(&o.shared, "shared", os.Getenv("MCPPROXY_SHARED"), "scan: where the labelled corpora are")
	flag.IntVar(&o.calls, "calls", 4, "hostile: calls of each client in a round")
	flag.StringVar(&o.only, "only", "", "hostile: only what has this in its name")
	flag.Usage = usage
	mcptest.Child(hostileServers())
	if len(os.Args) < 2 {
		usage()
		os.Exit(2)
	}
	command := os.Args[1]
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		os.Exit(2)
	}
	run := map[string]func(options) error{
		"calls": benchCalls, "start": benchStart, "catalog": benchCatalog, "sizes": benchSizes, "scan": benchScan, "hostile": benchHostile,
		// The roles that bench starts itself with.
		"role-upstream": func(options) error { return serveUpstream(flag.Args()) },
		"role-sdk":      func(options) error { return serveSDK() },
		"role-stdio":    func(options) error { return serveStdio() },
		"role-hostile":  func(options) error { return serveHostile() },
		"role-floor":    func(options) error { return serveFloor(flag.Args()) },
	}[command]
	if run == nil {
		usage()
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: go run ./bench calls|start|catalog|sizes|scan|hostile [flags]")
	flag.PrintDefaults()
}
