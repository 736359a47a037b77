package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"
)

// The sizes of this benchmark.
const (
	largeResult  = 10_000_000 // bytes of text in the one result
	manySessions = 1_000
)

// benchSizes measures large results and idle sessions: a result of 10 MB compared with the direct call, and the memory of open
// sessions that do nothing.
func benchSizes(o options, dir, binary string) error {
	upstream, err := startRole("role-upstream")
	if err != nil {
		return err
	}
	defer upstream.stop()
	direct := "http://" + upstream.addr + "/mcp"
	for _, through := range []string{"call_tool_read", "/mcp/servers/{server}"} {
		if err := measureLargeResult(o, binary, direct, through); err != nil {
			return fmt.Errorf("%s: %w", through, err)
		}
	}
	return measureIdleSessions(binary, direct)
}

// startFreshProxy starts a new MCPProxy with the upstream.
func startFreshProxy(binary, direct string) (proxy *process, stop func(), err error) {
	dir, err := os.MkdirTemp("", "mcpproxy-bench-")
	if err != nil {
		return nil, nil, err
	}
	listen, err := freeAddress()
	if err == nil {
		proxy, err = startProxy(binary, dir, listen, fmt.Sprintf(`{"result_limit":0,"mcpServers":{"http":{"url":%q}}}`, direct))
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	return proxy, func() { proxy.stop(); os.RemoveAll(dir) }, nil
}

// measureLargeResult compares the large result through MCPProxy with the direct call, and
// prints the memory that the first one used.
func measureLargeResult(o options, binary, direct, through string) error {
	proxy, stop, err := startFreshProxy(binary, direct)
	if err != nil {
		return err
	}
	defer stop()
	gateway := "http://" + proxy.addr + "/mcp"
	if through != "call_tool_read" {
		gateway += "/servers/http"
	}
	session, err := openSession(gateway)
	if err != nil {
		return err
	}
	call := func(bytes int) []byte {
		const plain = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large","arguments":{"bytes":%d}}}`
		const built = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"http:large","args":{"bytes":%d}}}}`
		if through == "call_tool_read" {
			return fmt.Appendf(nil, built, bytes)
		}
		return fmt.Appendf(nil, plain, bytes)
	}
	s := callTarget{name: through, url: gateway, headers: session, body: call(len("a short text to echo"))}
	if err := awaitSuccessfulCall(s); err != nil {
		return err
	}
	s.body = call(largeResult)
	d := callTarget{name: "direct", url: direct, body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large","arguments":{"bytes":%d}}}`, largeResult)}
	before := proxy.residentMemory()
	if _, err := timeCall(s); err != nil {
		return err
	}
	extra := proxy.peakMemory() - before
	var own, other []time.Duration
	for range max(5, o.rounds) {
		t, err := timeCall(d)
		if err != nil {
			return err
		}
		other = append(other, t)
		if t, err = timeCall(s); err != nil {
			return err
		}
		own = append(own, t)
	}
	slices.Sort(own)
	slices.Sort(other)
	mine, theirs := own[len(own)/2], other[len(other)/2]
	fmt.Printf("a result of %d MB through %-22s %s, direct %s: × %.2f; extra memory %.0f MiB = %.1f × its size\n",
		largeResult/1_000_000, through, formatMilliseconds(mine), formatMilliseconds(theirs), ratio(mine, theirs), extra, extra*(1<<20)/largeResult)
	return nil
}

// timeCall makes one call and returns its duration.
func timeCall(s callTarget) (time.Duration, error) {
	start := time.Now()
	err := callAndCheck(context.Background(), http.DefaultClient, s)
	return time.Since(start), err
}

// measureIdleSessions prints the memory of unused sessions, and the memory that remains after they end.
func measureIdleSessions(binary, direct string) error {
	proxy, stop, err := startFreshProxy(binary, direct)
	if err != nil {
		return err
	}
	defer stop()
	gateway := "http://" + proxy.addr + "/mcp"
	if err := openAndEndSessions(gateway, manySessions, nil); err != nil { // warm up: the garbage of the opening is not theirs
		return err
	}
	before, open := proxy.residentMemory(), 0.0
	if err := openAndEndSessions(gateway, manySessions, func() { open = proxy.residentMemory() }); err != nil {
		return err
	}
	once := proxy.residentMemory()
	for range 5 {
		if err := openAndEndSessions(gateway, manySessions, nil); err != nil {
			return err
		}
	}
	fmt.Printf("%d idle sessions on /mcp: %.1f MiB more, %.1f KiB each; when they have ended %.1f MiB, after five times as many %.1f MiB (%.1f before)\n",
		manySessions, open-before, (open-before)*1024/manySessions, once, proxy.residentMemory(), before)
	return nil
}

// openAndEndSessions opens sessions, runs then, and ends the sessions.
func openAndEndSessions(gateway string, n int, then func()) error {
	var all []map[string]string
	for range n {
		headers, err := openSession(gateway)
		if err != nil {
			return err
		}
		all = append(all, headers)
	}
	if then != nil {
		then()
	}
	for _, headers := range all {
		req, err := http.NewRequest(http.MethodDelete, gateway, nil)
		if err != nil {
			return err
		}
		for k, v := range headers {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			return fmt.Errorf("ending a session gave status %d", resp.StatusCode)
		}
	}
	return nil
}
