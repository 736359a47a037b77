package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of `bench slow`.
const (
	slowP99    = 2.0   // a client's p99 under attack, × its quiet one
	slowGrowth = 128.0 // MiB that the daemon may grow by: 32 KiB for each of 4,000 connections
	// An attacker sends a byte every few seconds, and reopens a connection
	// one second after it was ended.
	slowDrip, slowPause = 5 * time.Second, time.Second
)

// slowAttack is a number of connections that stay open and send little. These clients do not have the key.
type slowAttack struct {
	name  string
	n     int
	first []string // the connections send these at once, alternately
}

const bodyOfMany = "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n{"

func slowAttacks() []slowAttack {
	foreign := func(target string, length int) string {
		return target + " HTTP/1.1\r\nHost: evil.example\r\n" + fmt.Sprintf(bodyOfMany, length)
	}
	own := func(target string, length int) string {
		return target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + fmt.Sprintf(bodyOfMany, length)
	}
	return []slowAttack{
		{"foreign host, long body", 4_000, []string{foreign("POST /mcp", 1_000_000), foreign("POST /mcp", 100_000_000),
			foreign("POST /api/v1/tools/call", 200_000), foreign("PUT /x", 250_000)}},
		{"half a head", 2_000, []string{"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", "GET /healthz HTTP/1.1\r\nX-", ""}},
		{"half a body on MCP", 200, []string{own("POST /mcp", 4_000_000), own("POST /mcp/all", 1_000)}},
		{"half a body on REST", 200, []string{own("POST /api/v1/tools/call", 200_000), own("POST /api/v1/tools/call", 1_000)}},
	}
}

// runSlowAttacks implements the process that holds the connections of some attacks. Its arguments are the
// address and the indexes of the attacks.
func runSlowAttacks(args []string) error {
	if len(args) < 2 {
		return errors.New("role-slow takes an address and numbers of attacks")
	}
	var opened, ended, open atomic.Int64
	all := slowAttacks()
	for _, text := range args[1:] {
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(all) {
			return fmt.Errorf("there is no attack %q", text)
		}
		for k := range all[i].n {
			go func() {
				for {
					holdConnection(args[0], all[i].first[k%len(all[i].first)], &opened, &open)
					ended.Add(1)
					time.Sleep(slowPause)
				}
			}()
		}
	}
	fmt.Println("attacking")
	for tick := time.NewTicker(time.Second); ; <-tick.C { // until it is stopped
		fmt.Printf("%d open, %d opened, %d ended\n", open.Load(), opened.Load(), ended.Load())
	}
}

// holdConnection keeps one connection open until the peer ends it.
func holdConnection(address, first string, opened, open *atomic.Int64) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer nc.Close()
	opened.Add(1)
	open.Add(1)
	defer open.Add(-1)
	_, err = io.WriteString(nc, first)
	go func() {
		_, _ = io.Copy(io.Discard, nc) // the answer, and the end
		_ = nc.Close()
	}()
	for err == nil {
		time.Sleep(slowDrip/2 + rand.N(slowDrip))
		_, err = nc.Write([]byte("1"))
	}
}

// benchSlow runs slow connections together with well-behaved clients, and fails if a bound is exceeded.
func benchSlow(o options, dir, binary string) error {
	good, err := startRole("role-upstream")
	if err != nil {
		return err
	}
	defer good.stop()
	address, err := freeAddress()
	if err != nil {
		return err
	}
	proxy, err := startProxy(binary, dir, address, fmt.Sprintf(`{"mcpServers":{"good":{"url":"http://%s/mcp"}}}`, good.addr))
	if err != nil {
		return err
	}
	defer proxy.stop()
	clients, err := newBehavingClients(dir, address, "http://"+good.addr+"/mcp")
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds of %v; %s\n\n%-31s %-22s %s\n", o.rounds, o.duration, machineLoadText(), "", "client", "p99 quiet → under attack, failed calls; the connections held; the daemon's memory")
	var misses []string
	all := slowAttacks()
	for i := range len(all) + 1 {
		name, numbers := "all of them", []string{"0", "1", "2", "3"}
		if i < len(all) {
			name, numbers = fmt.Sprintf("%d × %s", all[i].n, all[i].name), []string{strconv.Itoa(i)}
		}
		if o.only != "" && !strings.Contains(name, o.only) {
			continue
		}
		missed, err := measureUnderAttack(o, proxy, address, clients, name, numbers)
		if err != nil {
			return err
		}
		misses = append(misses, missed...)
	}
	if len(misses) > 0 {
		return fmt.Errorf("%d bounds are missed:\n  %s", len(misses), strings.Join(misses, "\n  "))
	}
	fmt.Println("\nevery bound is kept")
	return nil
}

// newBehavingClients returns clients that send complete requests, over kept and over new connections. One client bypasses MCPProxy:
// its delays are caused by the machine.
func newBehavingClients(dir, address, direct string) ([]*neighbourClient, error) {
	gateway := "http://" + address + "/mcp"
	session, err := openSession(gateway)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, "data", "api_key"))
	if err != nil {
		return nil, err
	}
	mcp := callTarget{url: gateway, headers: session, body: []byte(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"good:echo","args":{"text":"a short text to echo","n":7}}}}`)}
	rest := callTarget{url: "http://" + address + "/api/v1/tools/call", headers: map[string]string{"X-API-Key": strings.TrimSpace(string(key))}, body: []byte(
		`{"tool_variant":"call_tool_read","name":"good:echo","args":{"text":"a short text to echo","n":7}}`)}
	named := func(s callTarget, name string) callTarget { s.name = name; return s }
	clients := []*neighbourClient{
		{callTarget: named(mcp, "MCP")}, {callTarget: named(mcp, "MCP, new connections"), newConnections: true},
		{callTarget: named(rest, "REST")}, {callTarget: named(rest, "REST, new connections"), newConnections: true},
		{callTarget: callTarget{name: "past MCPProxy", url: direct, body: []byte(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a short text to echo","n":7}}}`)}, direct: true},
	}
	if err := awaitSuccessfulCall(mcp); err != nil {
		return nil, err
	}
	callForDuration(clients, 2*time.Second, func(*neighbourClient) *callSamples { return &callSamples{} }) // warm up
	return clients, nil
}

// callForDuration makes all clients call for the given time.
func callForDuration(clients []*neighbourClient, d time.Duration, into func(*neighbourClient) *callSamples) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.callUntilDone(ctx, into(c)) })
	}
	wg.Wait()
}

// measureUnderAttack measures the clients alternately without and with some attacks, beginning
// with the first connection of each attack.
func measureUnderAttack(o options, proxy *process, address string, clients []*neighbourClient, name string, numbers []string) (missed []string, err error) {
	for _, c := range clients {
		c.quiet, c.underLoad = callSamples{}, callSamples{}
	}
	before := proxy.residentMemory()
	proxy.resetPeakMemory()
	said := ""
	for range o.rounds {
		callForDuration(clients, o.duration, func(c *neighbourClient) *callSamples { return &c.quiet })
		attacker, err := startRole(append([]string{"role-slow", address}, numbers...)...)
		if err != nil {
			return nil, err
		}
		callForDuration(clients, o.duration, func(c *neighbourClient) *callSamples { return &c.underLoad })
		said = attacker.stopAndReadLastLine()
		time.Sleep(time.Second) // it takes the machine a while to forget thousands of connections
	}
	grown := proxy.peakMemory() - before
	for i, c := range clients {
		times := float64(c.underLoad.p99()) / float64(c.quiet.p99())
		rest := ""
		if i == 0 {
			rest = fmt.Sprintf("; %s; %+.0f MiB at most", said, grown)
		}
		fmt.Printf("%-31s %-22s %s → %s (%.1f ×), %d of %d failed%s\n", []string{name, ""}[min(i, 1)], c.name, formatMicroseconds(c.quiet.p99()), formatMicroseconds(c.underLoad.p99()), times, c.underLoad.errors, len(c.underLoad.all), rest)
		if times > slowP99 && !c.direct {
			missed = append(missed, fmt.Sprintf("%s: p99 of %s is %.1f × its quiet one", name, c.name, times))
		}
		if c.underLoad.errors+c.quiet.errors > 0 {
			missed = append(missed, fmt.Sprintf("%s: %d calls of %s failed: %v", name, c.underLoad.errors+c.quiet.errors, c.name, errors.Join(c.underLoad.err, c.quiet.err)))
		}
	}
	if grown > slowGrowth {
		missed = append(missed, fmt.Sprintf("%s: the daemon has grown by %.0f MiB", name, grown))
	}
	return missed, nil
}
