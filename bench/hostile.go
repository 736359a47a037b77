package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// hostileServers are the stdio servers that this program can run as.
func hostileServers() map[string]func() *mcptest.Server {
	server := func(opt mcptest.Options) func() *mcptest.Server {
		return func() *mcptest.Server { return mcptest.New(opt, mcptest.SampleTools()...) }
	}
	return map[string]func() *mcptest.Server{
		"bad":   server(mcptest.Options{}),
		"pages": server(mcptest.Options{EndlessPages: true, PageText: 200_000}),
		"deaf":  server(mcptest.Options{IgnoreTerm: true}),
	}
}

// serveHostileHTTP serves the HTTP servers: on /json and /events a faulty server that responds
// with JSON or events, on /pages a server whose list never ends.
func serveHostileHTTP() error {
	handler := func(opt mcptest.Options) *mcptest.Server { return mcptest.New(opt, mcptest.SampleTools()...) }
	return listenAndServe(pathRouter{
		"/json": handler(mcptest.Options{}), "/events": handler(mcptest.Options{Events: true}),
		"/pages": handler(mcptest.Options{EndlessPages: true, PageText: 200_000}),
	})
}

// benchHostile runs every kind of hostile server together with a healthy one, and fails if a bound is exceeded.
func benchHostile(o options, dir, binary string) error {
	r := &hostileRun{o: o, dir: dir}
	stop, err := r.startProcesses(binary)
	defer stop()
	if err != nil {
		return err
	}
	fmt.Printf("a call may take %v and be late by %v; %s\n\n", hostileDeadline, hostileSlack, machineLoadText())
	fmt.Printf("%-29s %-31s %s\n", "", "neighbour: p99, errors, direct", "the daemon's memory")
	for _, m := range hostileModes() {
		if o.only != "" && !strings.Contains(m.name, o.only) {
			continue
		}
		for _, transport := range []string{"stdio", "json", "events"} {
			if m.over != "" && !strings.Contains(m.over, transport) || m.server == "pages" && transport == "events" {
				continue
			}
			if err := r.measureMode(m, transport); err != nil {
				return fmt.Errorf("%s over %s: %w", m.name, transport, err)
			}
		}
	}
	return r.stopAndCheckLeftovers()
}

// startProcesses starts the hostile servers, the neighbours and the daemon.
func (r *hostileRun) startProcesses(binary string) (stop func(), err error) {
	var running []*process
	stop = func() {
		for _, p := range slices.Backward(running) {
			p.stop()
		}
	}
	bad, err := startRole("role-hostile")
	if err != nil {
		return stop, err
	}
	running = append(running, bad)
	good, err := startRole("role-upstream")
	if err != nil {
		return stop, err
	}
	running = append(running, good)
	self, err := os.Executable()
	if err != nil {
		return stop, err
	}
	if r.base, err = freeAddress(); err != nil {
		return stop, err
	}
	r.config = func(enabled string) string {
		config := fmt.Sprintf(`{"mcpServers":{"good":{"url":"http://%s/mcp"},"near":{"command":%q,"args":["role-stdio"],"env":{%q:"%d"}}`,
			good.addr, self, markVar, os.Getpid())
		entry := func(name, format string, args ...any) {
			config += fmt.Sprintf(`,%q:{"trust":"auto","enabled":%t,"call_timeout":%q,`, name, name == enabled || !strings.HasPrefix(name, "pages"), hostileDeadline) +
				fmt.Sprintf(format, args...) + "}"
		}
		for path, server := range map[string]string{"json": "bad-json", "events": "bad-events", "pages": "pages-json"} {
			entry(server, `"url":"http://%s/%s"`, bad.addr, path)
		}
		for name := range hostileServers() {
			// It has its own child process, which must end with it.
			entry(name+"-stdio", `"command":"sh","args":["-c","sleep 100000 & exec \"$0\"",%q],"env":{%q:"%d","MCPTEST_SERVER":%q}`, self, markVar, os.Getpid(), name)
		}
		return config + "}}"
	}
	if r.proxy, err = startProxy(binary, r.dir, r.base, r.config("")); err != nil {
		return stop, err
	}
	running = append(running, r.proxy)
	return stop, r.awaitConnected("http://" + good.addr + "/mcp")
}

// awaitConnected waits until all servers are connected, and measures the idle daemon.
func (r *hostileRun) awaitConnected(direct string) error {
	plain := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a short text to echo","n":7}}}`)
	gateway := "http://" + r.base + "/mcp"
	session, err := openSession(gateway)
	if err != nil {
		return err
	}
	call := callTarget{name: "neighbour", url: gateway, headers: session, body: []byte(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"good:echo","args":{"text":"a short text to echo","n":7}}}}`)}
	if err := awaitSuccessfulCall(call); err != nil {
		return err
	}
	near, err := newRelayTarget(gateway, "near", plain, r.proxy)
	if err != nil {
		return err
	}
	r.neighbours = []*neighbourClient{{callTarget: call}, {callTarget: near}, {callTarget: callTarget{name: "direct", url: direct, body: plain}, direct: true}}
	for _, server := range []string{"bad-stdio", "bad-json", "bad-events", "deaf-stdio"} {
		if err := r.awaitEcho(server, firstAnswerTimeout); err != nil {
			return err
		}
	}
	r.measureQuiet(2 * time.Second) // warm up
	r.memoryAtRest = r.proxy.residentMemory()
	return nil
}

// awaitEcho waits until a hostile server responds to a harmless call.
func (r *hostileRun) awaitEcho(server string, limit time.Duration) error {
	c := r.newCaller(mcptest.Surface{Path: "/mcp", Modern: true}, server)
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		o := c.Call("echo", `{"well":1}`, `"well":1`)
		if o.What == "ok" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer: %s", server, o.What)
		}
	}
}

// enableServer enables the server and waits until it accepts calls. Until then, MCPProxy rejects calls without contacting the
// server.
func (r *hostileRun) enableServer(server string) error {
	if err := writeConfig(r.dir, r.config(server)); err != nil {
		return err
	}
	c := r.newCaller(mcptest.Surface{Path: "/mcp", Modern: true}, server)
	for deadline := time.Now().Add(firstAnswerTimeout); c.Call("echo", "{}", "").What == "TOOL_LOCKED"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is still disabled", server)
		}
	}
	return nil
}

// measureQuiet makes the neighbors call for a while without a hostile server.
func (r *hostileRun) measureQuiet(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	r.callNeighbours(ctx, func(n *neighbourClient) *callSamples { return &n.quiet })
}

// callNeighbours makes all neighbors call until ctx ends.
func (r *hostileRun) callNeighbours(ctx context.Context, into func(*neighbourClient) *callSamples) {
	var wg sync.WaitGroup
	for _, n := range r.neighbours {
		wg.Go(func() { n.callUntilDone(ctx, into(n)) })
	}
	wg.Wait()
}

// measureMode measures one kind of hostile server over one transport.
func (r *hostileRun) measureMode(m hostileMode, transport string) error {
	server := m.server
	if server == "" {
		server = "bad"
	}
	server += "-" + transport
	clients := r.newClients(server)
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	for _, n := range r.neighbours {
		n.quiet, n.underLoad = callSamples{}, callSamples{}
	}
	before := r.proxy.residentMemory()
	r.proxy.resetPeakMemory()
	for range r.o.rounds {
		r.measureQuiet(r.o.duration)
		if m.server == "pages" {
			if err := r.enableServer(server); err != nil {
				return err
			}
		}
		r.callHostileServer(m, clients)
		if m.server == "pages" {
			if err := writeConfig(r.dir, r.config("")); err != nil {
				return err
			}
		}
	}
	r.reportMode(m, transport, before, clients)
	if m.goesOn {
		r.newCaller(mcptest.Surface{Path: "/mcp", Modern: true}, server).Call("crash", "{}", "")
	}
	if m.server == "" { // it must be as good as new
		began := time.Now()
		if err := r.awaitEcho(server, firstAnswerTimeout); err != nil {
			return err
		}
		if took := time.Since(began); took > hostileRestart {
			r.addMissedBound("%s over %s: it took %v until the server answered again", m.name, transport, took)
		}
	}
	if n := r.proxy.countZombieChildren(); n > 0 {
		r.addMissedBound("%s over %s: %d zombies", m.name, transport, n)
	}
	return nil
}

// callHostileServer makes the clients call the hostile server at the same time as the
// neighbors, for at least as long as measureQuiet.
func (r *hostileRun) callHostileServer(m hostileMode, clients []*hostileServerClient) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calling sync.WaitGroup
	calls := r.o.calls
	if m.calls > 0 {
		calls = m.calls
	}
	args := m.args
	if args == "" {
		args = "{}"
	}
	for i, c := range clients {
		if m.tool == "stderr" && i > 0 {
			break // one gigabyte at a time
		}
		calling.Go(func() {
			for range calls {
				c.outcomes = append(c.outcomes, c.Call(m.tool, args, m.right))
			}
		})
	}
	go func() {
		defer cancel()
		least := time.After(r.o.duration)
		calling.Wait()
		<-least
	}()
	r.callNeighbours(ctx, func(n *neighbourClient) *callSamples { return &n.underLoad })
}

// reportMode prints the result of a mode and compares it with the bounds.
func (r *hostileRun) reportMode(m hostileMode, transport string, before float64, clients []*hostileServerClient) {
	where := m.name + " over " + transport
	peak := r.proxy.peakMemory()
	r.peakMemory = max(r.peakMemory, peak)
	var quiet, loud, quietDirect, loudDirect callSamples
	for _, n := range r.neighbours {
		if n.direct {
			quietDirect, loudDirect = n.quiet, n.underLoad
			continue
		}
		quiet.merge(n.quiet)
		loud.merge(n.underLoad)
	}
	times := float64(loud.p99()) / float64(quiet.p99())
	fmt.Printf("%-29s %s → %s (%.1f ×), %d errors, direct %.1f ×   %+.0f MiB at most, %+.0f left\n", where,
		formatMicroseconds(quiet.p99()), formatMicroseconds(loud.p99()), times, loud.errors, float64(loudDirect.p99())/float64(quietDirect.p99()), peak-before, r.proxy.residentMemory()-before)
	if times > hostileP99 {
		r.addMissedBound("%s: the neighbour's p99 is %.1f × its quiet one", where, times)
	}
	if loud.errors+quiet.errors > 0 {
		r.addMissedBound("%s: %d calls of the neighbour failed: %v", where, loud.errors+quiet.errors, errors.Join(loud.err, quiet.err))
	}
	if peak-before > hostileGrowth {
		r.addMissedBound("%s: the daemon has grown by %.0f MiB", where, peak-before)
	}
	for _, c := range clients {
		c.reportOutcomes(m, r)
	}
}

func (r *hostileRun) addMissedBound(format string, args ...any) {
	r.misses = append(r.misses, fmt.Sprintf(format, args...))
}

// stopAndCheckLeftovers stops the daemon and checks that no process remains.
func (r *hostileRun) stopAndCheckLeftovers() error {
	began := time.Now()
	r.proxy.stop()
	took := time.Since(began)
	left := markedProcesses()
	fmt.Printf("\nmemory %.0f MiB at rest, %.0f at most; stopped in %.1f s; processes left: %d\n", r.memoryAtRest, r.peakMemory, took.Seconds(), len(left))
	if len(left) > 0 {
		r.addMissedBound("processes are left: %v", left)
	}
	if len(r.misses) == 0 {
		fmt.Println("every bound is kept")
		return nil
	}
	return fmt.Errorf("%d bounds are missed:\n  %s", len(r.misses), strings.Join(r.misses, "\n  "))
}
