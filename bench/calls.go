package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// callTarget is one way to make the call: the URL to post to, and the request.
type callTarget struct {
	name    string
	url     string
	body    []byte
	headers map[string]string
	process *process      // its CPU time is measured; nil for the direct call
	stdio   *stdioProcess // receives the call as a line; its CPU time is measured too
}

// cpuTime returns the CPU time that the target has used.
func (s *callTarget) cpuTime() (used time.Duration) {
	if s.process != nil {
		used = s.process.cpuTime()
	}
	if s.stdio != nil {
		used += s.stdio.process.cpuTime()
	}
	return used
}

// measurement is the result of one measurement of a target.
type measurement struct {
	p50, p95 time.Duration
	rate     float64       // calls per second
	cpu      time.Duration // of the gateway, per call
}

func benchCalls(o options, dir, binary string) error {
	role, known := map[string]string{"bare": "role-upstream", "sdk": "role-sdk"}[o.upstream]
	if !known {
		return fmt.Errorf("-upstream takes bare or sdk, not %q", o.upstream)
	}
	subjects, stop, err := startCallTargets(dir, binary, role, o.beside)
	defer stop()
	if err != nil {
		return err
	}
	subjects = slices.DeleteFunc(subjects, func(s callTarget) bool {
		return s.process != nil && s.name != "floor" && !strings.Contains(s.name, o.only)
	})
	fmt.Printf("%d rounds of %s each, everything on (intent checked, arguments validated, record written first, secrets masked)\n", o.rounds, o.duration)
	for _, text := range strings.Split(o.clients, ",") {
		clients, err := strconv.Atoi(text)
		if err != nil || clients < 1 {
			return fmt.Errorf("-clients takes numbers, not %q", text)
		}
		if err := compareTargets(o, subjects, clients); err != nil {
			return err
		}
	}
	return nil
}

// besidePrefix is the prefix of the names of call targets that use the other binary.
const besidePrefix = "beside:"

// startCallTargets starts all processes, with the HTTP upstream of that role, and connects MCPProxy to its upstreams. It also
// starts the other binary, if there is one.
func startCallTargets(dir, binary, role, beside string) (subjects []callTarget, stop func(), err error) {
	var running []*process
	stop = func() {
		for _, p := range slices.Backward(running) {
			p.stop()
		}
	}
	upstream, err := startRole(role)
	if err != nil {
		return nil, stop, err
	}
	running = append(running, upstream)
	direct := "http://" + upstream.addr + "/mcp"
	floor, err := startRole("role-floor", direct)
	if err != nil {
		return nil, stop, err
	}
	running = append(running, floor)
	subjects = []callTarget{
		{name: "direct", url: direct, body: plainCall},
		{name: "floor", url: "http://" + floor.addr + "/", body: plainCall, process: floor},
	}
	for _, s := range subjects {
		if err := awaitSuccessfulCall(s); err != nil {
			return nil, stop, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	binaries := []string{binary}
	if beside != "" {
		binaries = append(binaries, beside)
	}
	for i, binary := range binaries {
		own := filepath.Join(dir, strconv.Itoa(i))
		proxy, through, err := startProxyTargets(binary, own, direct)
		if proxy != nil {
			running = append(running, proxy)
		}
		if err != nil {
			return nil, stop, err
		}
		c, err := startStdioProcess(binary, own)
		if err != nil {
			return nil, stop, err
		}
		running = append(running, c.process)
		command := through[0]
		command.name, command.stdio = "command/http", c
		through = append(through, command)
		for j, s := range through {
			if i == 0 {
				subjects = append(subjects, s)
				continue
			}
			// Directly after its counterpart, because a machine's speed drifts.
			s.name = besidePrefix + s.name
			subjects = slices.Insert(subjects, len(subjects)-len(through)+1+j, s)
		}
	}
	return subjects, stop, nil
}

// plainCall is the call in the form that the upstream expects.
var plainCall = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a short text to echo","n":7}}}`)

// startProxyTargets starts the given MCPProxy binary with its data in dir, and returns the targets that call through it
// when they are connected.
func startProxyTargets(binary, dir, direct string) (*process, []callTarget, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, err
	}
	listen, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	config := fmt.Sprintf(`{"mcpServers":{"http":{"url":%q},"stdio":{"command":%q,"args":["role-stdio"]}}}`, direct, self)
	proxy, err := startProxy(binary, dir, listen, config)
	if err != nil {
		return nil, nil, err
	}
	gateway := "http://" + listen + "/mcp"
	session, err := openSession(gateway)
	if err != nil {
		return proxy, nil, err
	}
	var subjects []callTarget
	for _, server := range []string{"http", "stdio"} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"%s:echo","args":{"text":"a short text to echo","n":7},"intent_reason":"benchmark"}}}`, server)
		s := callTarget{name: "mcpproxy/" + server, url: gateway, body: []byte(body), headers: session, process: proxy}
		if err := awaitSuccessfulCall(s); err != nil {
			return proxy, nil, fmt.Errorf("%s: %w", s.name, err)
		}
		subjects = append(subjects, s)
	}
	for _, server := range []string{"http", "stdio"} { // they are connected by now
		relay, err := newRelayTarget(gateway, server, plainCall, proxy)
		if err != nil {
			return proxy, nil, err
		}
		subjects = append(subjects, relay)
	}
	return proxy, subjects, nil
}

// newRelayTarget returns the call through the pass-through endpoint.
func newRelayTarget(gateway, server string, body []byte, proxy *process) (callTarget, error) {
	s := callTarget{name: "relay/" + server, url: gateway + "/servers/" + server, body: body, process: proxy}
	var err error
	if s.headers, err = openSession(s.url); err != nil {
		return s, fmt.Errorf("%s: %w", s.name, err)
	}
	if err := awaitSuccessfulCall(s); err != nil {
		return s, fmt.Errorf("%s: %w", s.name, err)
	}
	return s, nil
}

// compareTargets measures all targets alternately and prints the medians.
func compareTargets(o options, subjects []callTarget, clients int) error {
	figures := make([][]measurement, len(subjects))
	for _, s := range subjects {
		if _, err := measureTarget(s, clients, o.duration/4); err != nil { // warm up
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for round := range o.rounds {
		for n := range subjects {
			i := n
			if round%2 == 1 { // the order alternates, so that no target is always first or always follows the same one
				i = len(subjects) - 1 - n
			}
			s := subjects[i]
			f, err := measureTarget(s, clients, o.duration)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if o.verbose {
				fmt.Printf("  round %d %-15s p50 %v p95 %v %.0f/s cpu %v\n", round+1, s.name, f.p50, f.p95, f.rate, f.cpu)
			}
			figures[i] = append(figures[i], f)
		}
	}
	fmt.Printf("\n%d client(s)\n%-23s %10s %10s %10s %12s | %10s %10s %10s\n", clients,
		"", "p50", "p95", "calls/s", "CPU/call", "p50 ×dir", "rate ×dir", "CPU ×floor")
	direct, floor := medianMeasurement(figures[0]), medianMeasurement(figures[1])
	for i, s := range subjects {
		m := medianMeasurement(figures[i])
		fmt.Printf("%-23s %10s %10s %10.0f %12s | %10.2f %10.2f", s.name,
			formatMicroseconds(m.p50), formatMicroseconds(m.p95), m.rate, formatMicroseconds(m.cpu), ratio(m.p50, direct.p50), m.rate/direct.rate)
		if s.process != nil {
			fmt.Printf(" %10.2f", ratio(m.cpu, floor.cpu))
		}
		fmt.Println()
	}
	for i, s := range subjects {
		if other := slices.IndexFunc(subjects, func(o callTarget) bool { return o.name == besidePrefix+s.name }); other >= 0 {
			printPairedRatios(s.name, figures[i], figures[other])
		}
	}
	return nil
}

// printPairedRatios prints the median ratios of this tree's figures to those of the other binary, paired by round. The brackets
// hold a 95 % confidence interval of the median, from the ranks of the ratios.
func printPairedRatios(name string, own, other []measurement) {
	of := func(value func(measurement) float64) string {
		var all []float64
		for round := range own {
			all = append(all, value(own[round])/value(other[round]))
		}
		slices.Sort(all)
		n := float64(len(all))
		low := max(0, int(n/2-0.98*math.Sqrt(n))-1)
		return fmt.Sprintf("%.3f (%.3f–%.3f)", all[len(all)/2], all[low], all[len(all)-1-low])
	}
	fmt.Printf("%-15s × beside: p50 %s, calls/s %s, CPU/call %s\n", name,
		of(func(f measurement) float64 { return float64(f.p50) }), of(func(f measurement) float64 { return f.rate }), of(func(f measurement) float64 { return float64(f.cpu) }))
}

func ratio(a, b time.Duration) float64          { return float64(a) / float64(b) }
func formatMicroseconds(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/1e3) }

// medianMeasurement returns the median of each column.
func medianMeasurement(all []measurement) measurement {
	middle := func(less func(a, b measurement) int) measurement {
		sorted := slices.SortedFunc(slices.Values(all), less)
		return sorted[len(sorted)/2]
	}
	return measurement{
		p50:  middle(func(a, b measurement) int { return int(a.p50 - b.p50) }).p50,
		p95:  middle(func(a, b measurement) int { return int(a.p95 - b.p95) }).p95,
		rate: middle(func(a, b measurement) int { return int(a.rate - b.rate) }).rate,
		cpu:  middle(func(a, b measurement) int { return int(a.cpu - b.cpu) }).cpu,
	}
}

// measureTarget makes clients call as fast as they can for the given time.
func measureTarget(s callTarget, clients int, duration time.Duration) (measurement, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(context.Background(), duration+30*time.Second)
	defer cancel()
	if err := callAndCheck(ctx, client, s); err != nil {
		return measurement{}, err
	}
	used := s.cpuTime()
	var (
		mu   sync.Mutex
		all  []time.Duration
		errs []error
		wg   sync.WaitGroup
	)
	started := time.Now()
	for range clients {
		wg.Go(func() {
			var own []time.Duration
			var ownErr error
			for time.Since(started) < duration && ownErr == nil {
				t := time.Now()
				ownErr = callAndCheck(ctx, client, s)
				own = append(own, time.Since(t))
			}
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, own...), append(errs, ownErr)
		})
	}
	wg.Wait()
	elapsed := time.Since(started)
	if err := errors.Join(errs...); err != nil {
		return measurement{}, err
	}
	f := measurement{rate: float64(len(all)) / elapsed.Seconds()}
	f.cpu = (s.cpuTime() - used) / time.Duration(len(all))
	slices.Sort(all)
	f.p50, f.p95 = all[len(all)/2], all[len(all)*95/100]
	return f, nil
}

// callAndCheck makes one call and checks the answer.
func callAndCheck(ctx context.Context, client *http.Client, s callTarget) error {
	status, body, err := postCall(ctx, client, s)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return fmt.Errorf("status %d: %.200s", status, body)
	case !bytes.Contains(body, []byte("a short text to echo")) || bytes.Contains(body, []byte(`"isError":true`)):
		return fmt.Errorf("wrong answer: %.300s", body)
	}
	return nil
}

func postCall(ctx context.Context, client *http.Client, s callTarget) (int, []byte, error) {
	if s.stdio != nil {
		answer, err := s.stdio.call(ctx, s.body)
		return http.StatusOK, answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range s.headers {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// firstAnswerTimeout is how long a target may take for its first answer.
const firstAnswerTimeout = 20 * time.Second

// openSession initializes a client of revision 2025-06-18 as soon as the
// gateway responds, and returns the headers for its further requests.
func openSession(url string) (map[string]string, error) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	for deadline := time.Now().Add(firstAnswerTimeout); ; time.Sleep(2 * time.Millisecond) {
		req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			return map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-06-18"}, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
	}
}

// awaitSuccessfulCall repeats the call until it succeeds.
func awaitSuccessfulCall(s callTarget) error {
	for deadline := time.Now().Add(firstAnswerTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := callAndCheck(context.Background(), http.DefaultClient, s)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// freeAddress returns a loopback address with no listener.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// parseSearchTotal returns the "total" of a retrieve_tools answer.
func parseSearchTotal(body []byte) int {
	var m struct {
		Result struct {
			StructuredContent struct {
				Total int `json:"total"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	if json.Unmarshal(body, &m) != nil {
		return 0
	}
	return m.Result.StructuredContent.Total
}
