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

// hostileServers are the stdio servers that this program can be.
func hostileServers() map[string]func() *mcptest.Server {
	server := func(opt mcptest.Options) func() *mcptest.Server {
		return func() *mcptest.Server { return mcptest.New(opt, mcptest.Zoo()...) }
	}
	return map[string]func() *mcptest.Server{
		"bad":   server(mcptest.Options{}),
		"pages": server(mcptest.Options{EndlessPages: true, PageText: 200_000}),
		"deaf":  server(mcptest.Options{IgnoreTerm: true}),
	}
}

// serveHostile serves the HTTP ones: on /json and /events a bad server that
// answers so, on /pages one whose list has no end.
func serveHostile() error {
	handler := func(opt mcptest.Options) *mcptest.Server { return mcptest.New(opt, mcptest.Zoo()...) }
	return serve(routes{
		"/json": handler(mcptest.Options{}), "/events": handler(mcptest.Options{Events: true}),
		"/pages": handler(mcptest.Options{EndlessPages: true, PageText: 200_000}),
	})
}

// benchHostile puts every kind of hostile server beside a healthy one, and
// fails when a bound is missed.
func benchHostile(o options, dir, binary string) error {
	r := &hostileRun{o: o, dir: dir}
	stop, err := r.begin(binary)
	defer stop()
	if err != nil {
		return err
	}
	fmt.Printf("a call may take %v and be late by %v; %s\n\n", hostileDeadline, hostileSlack, load())
	fmt.Printf("%-29s %-31s %s\n", "", "neighbour: p99, errors, direct", "the daemon's memory")
	for _, m := range hostileModes() {
		if o.only != "" && !strings.Contains(m.name, o.only) {
			continue
		}
		for _, transport := range []string{"stdio", "json", "events"} {
			if m.over != "" && !strings.Contains(m.over, transport) || m.server == "pages" && transport == "events" {
				continue
			}
			if err := r.mode(m, transport); err != nil {
				return fmt.Errorf("%s over %s: %w", m.name, transport, err)
			}
		}
	}
	return r.end()
}

// begin starts the hostile servers, the neighbours and the daemon.
func (r *hostileRun) begin(binary string) (stop func(), err error) {
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
			// With a child of its own, which is to end with it.
			entry(name+"-stdio", `"command":"sh","args":["-c","sleep 100000 & exec \"$0\"",%q],"env":{%q:"%d","MCPTEST_SERVER":%q}`, self, markVar, os.Getpid(), name)
		}
		return config + "}}"
	}
	if r.proxy, err = startProxy(binary, r.dir, r.base, r.config("")); err != nil {
		return stop, err
	}
	running = append(running, r.proxy)
	return stop, r.meet("http://" + good.addr + "/mcp")
}

// meet waits until everything is connected, and takes the measure of the daemon
// at rest.
func (r *hostileRun) meet(direct string) error {
	plain := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a short text to echo","n":7}}}`)
	gateway := "http://" + r.base + "/mcp"
	session, err := openSession(gateway)
	if err != nil {
		return err
	}
	call := subject{name: "neighbour", url: gateway, headers: session, body: []byte(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"good:echo","args":{"text":"a short text to echo","n":7}}}}`)}
	if err := awaitCall(call); err != nil {
		return err
	}
	near, err := relayed(gateway, "near", plain, r.proxy)
	if err != nil {
		return err
	}
	r.neighbours = []*neighbour{{subject: call}, {subject: near}, {subject: subject{name: "direct", url: direct, body: plain}, direct: true}}
	for _, server := range []string{"bad-stdio", "bad-json", "bad-events", "deaf-stdio"} {
		if err := r.awaitEcho(server, patience); err != nil {
			return err
		}
	}
	r.quiet(2 * time.Second) // warm up
	r.start = r.proxy.memory()
	return nil
}

// awaitEcho waits until a server of the zoo answers a harmless call.
func (r *hostileRun) awaitEcho(server string, limit time.Duration) error {
	c := r.caller(mcptest.Surface{Path: "/mcp", Modern: true}, server)
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

// enable has the server run, and waits until it does: before, calls are
// answered without it.
func (r *hostileRun) enable(server string) error {
	if err := configure(r.dir, r.config(server)); err != nil {
		return err
	}
	c := r.caller(mcptest.Surface{Path: "/mcp", Modern: true}, server)
	for deadline := time.Now().Add(patience); c.Call("echo", "{}", "").What == "TOOL_LOCKED"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is still disabled", server)
		}
	}
	return nil
}

// quiet lets the neighbours call for a while with nothing hostile beside them.
func (r *hostileRun) quiet(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	r.beside(ctx, func(n *neighbour) *samples { return &n.quiet })
}

// beside lets all neighbours call until ctx ends.
func (r *hostileRun) beside(ctx context.Context, into func(*neighbour) *samples) {
	var wg sync.WaitGroup
	for _, n := range r.neighbours {
		wg.Go(func() { n.callUntil(ctx, into(n)) })
	}
	wg.Wait()
}

// mode measures one kind of hostile server over one transport.
func (r *hostileRun) mode(m hostileMode, transport string) error {
	server := m.server
	if server == "" {
		server = "bad"
	}
	server += "-" + transport
	clients := r.clients(server)
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	for _, n := range r.neighbours {
		n.quiet, n.loud = samples{}, samples{}
	}
	before := r.proxy.memory()
	r.proxy.forgetPeak()
	for range r.o.rounds {
		r.quiet(r.o.duration)
		if m.server == "pages" {
			if err := r.enable(server); err != nil {
				return err
			}
		}
		r.provoke(m, clients)
		if m.server == "pages" {
			if err := configure(r.dir, r.config("")); err != nil {
				return err
			}
		}
	}
	r.report(m, transport, before, clients)
	if m.goesOn {
		r.caller(mcptest.Surface{Path: "/mcp", Modern: true}, server).Call("crash", "{}", "")
	}
	if m.server == "" { // it must be as good as new
		began := time.Now()
		if err := r.awaitEcho(server, patience); err != nil {
			return err
		}
		if took := time.Since(began); took > hostileRestart {
			r.miss("%s over %s: it took %v until the server answered again", m.name, transport, took)
		}
	}
	if n := r.proxy.zombies(); n > 0 {
		r.miss("%s over %s: %d zombies", m.name, transport, n)
	}
	return nil
}

// provoke has the clients call what misbehaves, side by side with the
// neighbours, for at least as long as the quiet was.
func (r *hostileRun) provoke(m hostileMode, clients []*hostileClient) {
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
	r.beside(ctx, func(n *neighbour) *samples { return &n.loud })
}

// report prints what came of a mode and holds it against the bounds.
func (r *hostileRun) report(m hostileMode, transport string, before float64, clients []*hostileClient) {
	where := m.name + " over " + transport
	peak := r.proxy.peakMemory()
	r.peak = max(r.peak, peak)
	var quiet, loud, quietDirect, loudDirect samples
	for _, n := range r.neighbours {
		if n.direct {
			quietDirect, loudDirect = n.quiet, n.loud
			continue
		}
		quiet.add(n.quiet)
		loud.add(n.loud)
	}
	times := float64(loud.p99()) / float64(quiet.p99())
	fmt.Printf("%-29s %s → %s (%.1f ×), %d errors, direct %.1f ×   %+.0f MiB at most, %+.0f left\n", where,
		micro(quiet.p99()), micro(loud.p99()), times, loud.errors, float64(loudDirect.p99())/float64(quietDirect.p99()), peak-before, r.proxy.memory()-before)
	if times > hostileP99 {
		r.miss("%s: the neighbour's p99 is %.1f × its quiet one", where, times)
	}
	if loud.errors+quiet.errors > 0 {
		r.miss("%s: %d calls of the neighbour failed: %v", where, loud.errors+quiet.errors, errors.Join(loud.err, quiet.err))
	}
	if peak-before > hostileGrowth {
		r.miss("%s: the daemon has grown by %.0f MiB", where, peak-before)
	}
	for _, c := range clients {
		c.report(m, r)
	}
}

func (r *hostileRun) miss(format string, args ...any) {
	r.misses = append(r.misses, fmt.Sprintf(format, args...))
}

// end stops the daemon and looks for what it left.
func (r *hostileRun) end() error {
	began := time.Now()
	r.proxy.stop()
	took := time.Since(began)
	left := marked()
	fmt.Printf("\nmemory %.0f MiB at rest, %.0f at most; stopped in %.1f s; processes left: %d\n", r.start, r.peak, took.Seconds(), len(left))
	if len(left) > 0 {
		r.miss("processes are left: %v", left)
	}
	if len(r.misses) == 0 {
		fmt.Println("every bound is kept")
		return nil
	}
	return fmt.Errorf("%d bounds are missed:\n  %s", len(r.misses), strings.Join(r.misses, "\n  "))
}
