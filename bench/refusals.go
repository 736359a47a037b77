package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of `bench refusals`.
const (
	refusalsGrowth  = 10.0   // MiB that the log may grow by the whole flood
	refusalsP99     = 2.0    // the p99 of others next to a client in a loop, × their quiet p99
	refusalsCalls   = 2_000  // that reach a server before the flood
	refusalsRecords = 50_000 // activity_max_records: far fewer than there are refusals
	loopCalls       = 10_000 // of the client in a loop
	refusalClients  = 256
	pruneTime       = 12 * time.Second // by then the log has pruned what is past its bounds
)

// refusalsRun is one run of the benchmark.
type refusalsRun struct {
	proxy  *process
	dir    string
	base   string
	key    string
	misses []string
}

// benchRefusals makes very many calls that are refused, with varying client data. It fails if the record of a call that
// reached a server is missing, if the log grew too much, or if a client in a loop slows down other clients.
func benchRefusals(o options, dir, binary string) error {
	r := &refusalsRun{dir: dir}
	upstream, err := startRole("role-upstream")
	if err != nil {
		return err
	}
	defer upstream.stop()
	if r.base, err = freeAddress(); err != nil {
		return err
	}
	config := fmt.Sprintf(`{"activity_max_records":%d,"mcpServers":{"http":{"url":"http://%s/mcp"}}}`, refusalsRecords, upstream.addr)
	start := func() error {
		r.proxy, err = startProxy(binary, dir, r.base, config)
		return err
	}
	if err := start(); err != nil {
		return err
	}
	defer func() { r.proxy.stop() }()
	session, err := openSession("http://" + r.base + "/mcp")
	if err != nil {
		return err
	}
	call := callTarget{name: "neighbour", url: "http://" + r.base + "/mcp", headers: session, body: []byte(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"http:echo","args":{"text":"a short text to echo","n":7}}}}`)}
	fmt.Println(machineLoadText())
	if err := awaitSuccessfulCall(call); err != nil {
		return err
	}
	r.measureNextToLoopingClient(call, session)
	if err := r.floodWithRefusedCalls(call, o.refused); err != nil {
		return err
	}
	if len(r.misses) > 0 {
		return errors.New(strings.Join(r.misses, "; "))
	}
	return nil
}

func (r *refusalsRun) addMissedBound(format string, args ...any) {
	r.misses = append(r.misses, fmt.Sprintf(format, args...))
}

// measureNextToLoopingClient measures other clients while one client calls in a loop.
func (r *refusalsRun) measureNextToLoopingClient(call callTarget, session map[string]string) {
	n := &neighbourClient{callTarget: call}
	during := func(into *callSamples, do func()) time.Duration {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { n.callUntilDone(ctx, into) })
		began := time.Now()
		do()
		took := time.Since(began)
		cancel()
		wg.Wait()
		return took
	}
	for range 3 {
		during(&n.quiet, func() { time.Sleep(3 * time.Second) })
	}
	took := during(&n.underLoad, func() {
		client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
		defer client.CloseIdleConnections()
		looping := callTarget{url: call.url, headers: session, body: []byte(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"http:ecco","args":{}}}}`)}
		for range loopCalls {
			_, _, _ = postCall(context.Background(), client, looping)
		}
	})
	quiet, loud := n.quiet.p99(), n.underLoad.p99()
	fmt.Printf("a client in a loop: %d refused calls took %s; p99 of another's calls %s, beside the loop %s, errors %d\n",
		loopCalls, took.Round(100*time.Millisecond), formatMicroseconds(quiet), formatMicroseconds(loud), n.underLoad.errors)
	if loud > time.Duration(refusalsP99*float64(quiet)) || n.underLoad.errors > 0 {
		r.addMissedBound("others notice a client in a loop: p99 %v instead of %v, %d errors", loud, quiet, n.underLoad.errors)
	}
	if took < 30*time.Second {
		r.addMissedBound("a loop of %d refused calls took only %v", loopCalls, took)
	}
}

// floodWithRefusedCalls makes refused calls of many clients, and measures the effect on the log.
func (r *refusalsRun) floodWithRefusedCalls(call callTarget, refused int) error {
	key, err := os.ReadFile(filepath.Join(r.dir, "data", "api_key"))
	if err != nil {
		return err
	}
	r.key = strings.TrimSpace(string(key))
	for range refusalsCalls {
		if err := callAndCheck(context.Background(), http.DefaultClient, call); err != nil {
			return err
		}
	}
	calls, err := r.countRecords("type=tool_call")
	if err != nil {
		return err
	}
	before, peak, stop := r.logSize(), &atomic.Int64{}, make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		look := time.NewTicker(500 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-stop:
				return
			case <-look.C:
				peak.Store(max(peak.Load(), r.logSize()))
			}
		}
	})
	used, began := r.proxy.cpuTime(), time.Now()
	answered := r.sendRefusedCalls(refused)
	took := time.Since(began)
	used = r.proxy.cpuTime() - used
	close(stop)
	watch.Wait()
	fmt.Printf("%d of %d calls refused in %s, %.0f/s, %s of processor time each, %d connections at a time\n", answered, refused,
		took.Round(time.Second), float64(answered)/took.Seconds(), formatMicroseconds(used/time.Duration(max(1, answered))), refusalClients)
	time.Sleep(pruneTime)
	return r.checkLogBounds(calls, before, peak.Load(), answered, refused)
}

// checkLogBounds compares the log with the bounds, before and after a stop.
func (r *refusalsRun) checkLogBounds(calls, before, peak int64, answered, refused int) error {
	left, err := r.countRecords("type=tool_call")
	if err != nil {
		return err
	}
	records, err := r.countRecords("type=policy_decision")
	if err != nil {
		return err
	}
	times, err := r.totalRefusals()
	if err != nil {
		return err
	}
	running := r.logSize()
	r.proxy.stop()
	stopped := r.logSize()
	mib := func(n int64) float64 { return float64(n-before) / (1 << 20) }
	fmt.Printf("calls that reached a server: %d of %d are in the log (activity_max_records %d)\n", left, calls, refusalsRecords)
	fmt.Printf("refusals: %d records stand for %d\n", records, times)
	fmt.Printf("spool and database grew by %.1f MiB (at most %.1f meanwhile, %.1f after a stop)\n", mib(running), mib(peak), mib(stopped))
	if left != calls {
		r.addMissedBound("%d calls that reached a server are gone", calls-left)
	}
	if answered != refused || times < int64(refused) {
		r.addMissedBound("%d calls were sent, %d refused, %d are counted", refused, answered, times)
	}
	if most := max(mib(running), mib(stopped), mib(peak)); most > refusalsGrowth {
		r.addMissedBound("the log grew by %.1f MiB", most)
	}
	return nil
}

// sendRefusedCalls makes calls that are refused, over many connections, and returns their
// number.
func (r *refusalsRun) sendRefusedCalls(n int) int {
	var next, answered atomic.Int64
	var wg sync.WaitGroup
	for c := range refusalClients {
		wg.Go(func() {
			transport := &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				status, body, err := postCall(context.Background(), client, r.newRefusedCall(c, i))
				if err == nil && status/100 != 5 && (bytes.Contains(body, []byte(`"isError":true`)) || bytes.Contains(body, []byte(`"error":`))) {
					answered.Add(1)
				}
				if c%4 == 3 && i%100 == 0 {
					transport.CloseIdleConnections() // another connection
				}
			}
		})
	}
	wg.Wait()
	return int(answered.Load())
}

// newRefusedCall returns a refused call of client c: the same call each time, or a different one
// each time, on all surfaces.
func (r *refusalsRun) newRefusedCall(c int, i int64) callTarget {
	path, name, arguments, client := "/mcp", "call_tool_read", `{"name":"http:ecco","args":{}}`, "bench"
	switch c % 4 {
	case 1: // other names
		arguments = fmt.Sprintf(`{"name":"s%d:t%d","args":{},"intent_reason":"because %d"}`, i%5000, i, i)
	case 2: // other clients and arguments, and large ones
		client = fmt.Sprint("client ", i)
		arguments = fmt.Sprintf(`{"name":"http:echo","args":{"text":%d,"more":%q}}`, i, strings.Repeat(fmt.Sprint("w", i, " "), 300))
	case 3: // other surfaces, tools and connections
		path, name = fmt.Sprint("/mcp/servers/none", i%3), fmt.Sprint("tool-", i)
	}
	return callTarget{url: "http://" + r.base + path, headers: map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name,
	}, body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`+
		`"io.modelcontextprotocol/clientInfo":{"name":%q,"version":"1"}}}}`, i, name, arguments, client)}
}

// fetchActivity returns a page of the log.
func (r *refusalsRun) fetchActivity(query string, to any) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+r.base+"/api/v1/activity?"+query, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-API-Key", r.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the log answers %d, %w: %.200s", resp.StatusCode, err, body)
	}
	return json.Unmarshal(body, to)
}

func (r *refusalsRun) countRecords(query string) (int64, error) {
	var page struct{ Total int64 }
	err := r.fetchActivity("limit=1&"+query, &page)
	return page.Total, err
}

// totalRefusals returns the sum of the refusals in the records.
func (r *refusalsRun) totalRefusals() (times int64, err error) {
	for cursor := ""; ; {
		var page struct {
			Activities []struct{ Repeated int64 }
			Next       string `json:"next_cursor"`
		}
		if err := r.fetchActivity("type=policy_decision&limit=1000&cursor="+cursor, &page); err != nil {
			return 0, err
		}
		for _, a := range page.Activities {
			times += max(1, a.Repeated)
		}
		if cursor = page.Next; cursor == "" {
			return times, nil
		}
	}
}

// logSize returns the size of the spool and the database.
func (r *refusalsRun) logSize() (size int64) {
	for _, pattern := range []string{"spool/*", "*.db*"} {
		files, _ := filepath.Glob(filepath.Join(r.dir, "data", pattern)) // the patterns are good
		for _, f := range files {
			if info, err := os.Stat(f); err == nil { // else it has gone
				size += info.Size()
			}
		}
	}
	return size
}
