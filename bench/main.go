// Command bench compares MCPProxy with the direct call and with the floor (a relay of 60 lines on net/http that decodes the
// envelope and forwards the bytes), alternately in one run on one machine.
//
//	go run ./bench calls     calls through /mcp, everything on: latency, throughput, CPU
//	go run ./bench start     from the start of the process to the first answer
//	go run ./bench catalog   10,000 tools on 100 servers (-servers 400: 40,000): until all are searchable; search; memory
//	go run ./bench sizes     a result of 10 MB, and idle sessions: time, memory
//	go run ./bench hostile   servers that crash, hang, flood and lie, next to a healthy one: exit code 1 if a bound is exceeded
//	go run ./bench refusals  1,000,000 refused calls: latency of the other calls, growth of the log; exit code 1 if a bound is exceeded
//	go run ./bench firstday  30 servers from npm, with an empty npm cache and again: until all are ready; exit code 1 if one is not
//	go run ./bench faults    disks that die, fill up or are cleared, and kill -9: exit code 1 if a call was lost
//	go run ./bench slow      clients that behave, next to 6,200 slow connections that send little: exit code 1 if a bound is exceeded
//	go run ./bench events    500 calls a second with none, one and twenty event streams, and with twenty that no one reads: CPU, memory
//	go run ./bench bill      what the tools of 25 real servers cost a model on each surface, in tokens
//	go run ./bench soak      500 calls a second for -duration: heap, goroutines and descriptors in its first quarter and its last
//	go run ./bench across    findings across tools: in simulated installations and in the labelled corpora
//	go run ./bench scan      findings in the labelled corpora, wrong verdicts, scan time
//
// Every role (upstream, floor, MCPProxy) is a separate process, so that its CPU time is measured separately from the load.
// The command prints figures. Only hostile, refusals, firstday, faults and slow have bounds to pass.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "time of one measurement")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each is measured; the median counts")
	flag.StringVar(&o.clients, "clients", "1,8,64", "numbers of concurrent clients")
	flag.StringVar(&o.upstream, "upstream", "bare", "the HTTP upstream of calls: bare (a handler on net/http) or sdk (the official Go SDK's server)")
	flag.StringVar(&o.beside, "beside", "", "another binary of MCPProxy: calls measures it in turn with this tree's, slow and catalog in its place")
	flag.BoolVar(&o.verbose, "v", false, "print each round")
	flag.StringVar(&o.shared, "shared", os.Getenv("MCPPROXY_SHARED"), "bill, scan, across: the directory with shared test data")
	flag.IntVar(&o.calls, "calls", 4, "hostile: calls of each client in a round")
	flag.StringVar(&o.only, "only", "", "calls, hostile, slow, firstday, faults: only what has this in its name")
	flag.IntVar(&o.refused, "refused", 1_000_000, "refusals: how many calls are refused")
	flag.DurationVar(&o.limit, "limit", 45*time.Minute, "firstday: the longest wait until all are ready")
	flag.StringVar(&o.cache, "cache", "", "firstday: the npm cache, which is kept; one that is there makes it the second day only")
	flag.StringVar(&o.binary, "binary", "", "faults: the binary to break things under; empty: it is built")
	flag.Uint64Var(&o.seed, "seed", 0, "faults: what decides about the moments; 0: another one each time")
	flag.IntVar(&o.servers, "servers", manyServers, "catalog: servers, of a hundred tools each")
	flag.Usage = printUsage
	mcptest.RunIfChild(hostileServers())
	if len(os.Args) < 2 {
		printUsage()
		os.Exit(2)
	}
	command := os.Args[1]
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		os.Exit(2)
	}
	run := map[string]func(options) error{
		"calls": withBinary("", benchCalls), "start": withBinary("", benchStartup), "catalog": withBinary(o.beside, benchCatalog), "sizes": withBinary("", benchSizes),
		"hostile": withBinary("", benchHostile), "refusals": withBinary("", benchRefusals), "firstday": withBinary("", benchFirstDay),
		"slow": withBinary(o.beside, benchSlow), "events": withBinary("", benchEvents), "soak": withBinary("", benchSoak), "bill": withBinary("", benchSurfaceCosts), "scan": benchScan, "across": benchCrossToolFindings, "faults": benchFaults,
		// The roles in which bench starts itself.
		"role-upstream": func(options) error { return serveUpstreamHTTP(flag.Args()) },
		"role-sdk":      func(options) error { return serveUpstreamSDK() },
		"role-stdio":    func(options) error { return serveUpstreamStdio() },
		"role-hostile":  func(options) error { return serveHostileHTTP() },
		"role-slow":     func(options) error { return runSlowAttacks(flag.Args()) },
		"role-floor":    func(options) error { return serveMinimalRelay(flag.Args()) },
	}[command]
	if run == nil {
		printUsage()
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func printUsage() {
	fmt.Fprintln(os.Stderr, "usage: go run ./bench calls|start|catalog|sizes|bill|scan|across|hostile|refusals|firstday|faults|slow|events|soak [flags]")
	flag.PrintDefaults()
}
