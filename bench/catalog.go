package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The size of the catalog: servers with this number of tools each.
const (
	manyServers    = 100
	toolsPerServer = 100
)

// benchStartup measures from the start of the process to its first answer.
func benchStartup(o options, dir, binary string) error {
	for _, servers := range []int{0, manyServers} {
		var times []time.Duration
		for range o.rounds * 2 {
			took, err := measureStartup(binary, dir, servers)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		slices.Sort(times)
		fmt.Printf("start to first answer on /mcp, %3d servers that hang: median %s, worst %s (%d starts; the first with an empty data directory)\n",
			servers, formatMilliseconds(times[len(times)/2]), formatMilliseconds(times[len(times)-1]), len(times))
	}
	return nil
}

func measureStartup(binary, dir string, servers int) (time.Duration, error) {
	listen, err := freeAddress()
	if err != nil {
		return 0, err
	}
	var config strings.Builder
	config.WriteString(`{"mcpServers":{`)
	for i := range servers {
		if i > 0 {
			config.WriteByte(',')
		}
		fmt.Fprintf(&config, `"hang%d":{"command":"sleep","args":["30"]}`, i)
	}
	config.WriteString("}}")
	started := time.Now()
	proxy, err := startProxy(binary, dir, listen, config.String())
	if err != nil {
		return 0, err
	}
	defer proxy.stop()
	_, err = openSession("http://" + listen + "/mcp")
	return time.Since(started), err
}

func formatMilliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

// benchCatalog measures a catalog of servers with a hundred tools each.
func benchCatalog(o options, dir, binary string) error {
	upstream, err := startRole("role-upstream", strconv.Itoa(toolsPerServer))
	if err != nil {
		return err
	}
	defer upstream.stop()
	var config strings.Builder
	config.WriteString(`{"mcpServers":{`)
	for i := range o.servers {
		if i > 0 {
			config.WriteByte(',')
		}
		fmt.Fprintf(&config, `"server%d":{"url":"http://%s/%d"}`, i, upstream.addr, i)
	}
	config.WriteString("}}")
	for _, start := range []string{"first start", "second start (last known tools)"} {
		if err := measureCatalog(o, start, binary, dir, config.String()); err != nil {
			return err
		}
	}
	return nil
}

func measureCatalog(o options, start, binary, dir, config string) error {
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	started := time.Now()
	proxy, err := startProxy(binary, dir, listen, config)
	if err != nil {
		return err
	}
	defer proxy.stop()
	gateway := "http://" + listen + "/mcp"
	session, err := openSession(gateway)
	if err != nil {
		return err
	}
	search := func(query string) callTarget {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"retrieve_tools","arguments":{"query":%q,"limit":10}}}`, query)
		return callTarget{url: gateway, body: []byte(body), headers: session}
	}
	// Every made-up tool has the word "workspace" in its schema.
	want := o.servers * toolsPerServer
	for deadline := time.Now().Add(firstAnswerTimeout); ; {
		asked := time.Now()
		_, body, err := postCall(context.Background(), http.DefaultClient, search("workspace"))
		if err == nil && parseSearchTotal(body) == want {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d of %d tools are searchable after %s", parseSearchTotal(body), want, firstAnswerTimeout)
		}
		// Such a search returns everything. Without a pause it would use a large part of the measured time.
		time.Sleep(max(5*time.Millisecond, 10*time.Since(asked)))
	}
	fmt.Printf("%s: %d tools on %d servers searchable after %s, %s of processor time\n", start, want, o.servers, formatMilliseconds(time.Since(started)), formatMilliseconds(proxy.cpuTime()))

	var times []time.Duration
	for i := range 100 * o.rounds {
		s := search(fmt.Sprintf("%s a %s in workspace %d", verbs[i%len(verbs)], nouns[i%len(nouns)], i%o.servers))
		t := time.Now()
		if status, body, err := postCall(context.Background(), http.DefaultClient, s); err != nil || status != http.StatusOK {
			return fmt.Errorf("retrieve_tools: status %d, %w: %.200s", status, err, body)
		}
		times = append(times, time.Since(t))
	}
	slices.Sort(times)
	fmt.Printf("  retrieve_tools, limit 10: p50 %s, p95 %s\n", formatMilliseconds(times[len(times)/2]), formatMilliseconds(times[len(times)*95/100]))
	used := proxy.cpuTime()
	time.Sleep(5 * time.Second)
	fmt.Printf("  memory %.0f MiB; idle processor time %.2f %% of a core\n", proxy.residentMemory(),
		100*(proxy.cpuTime()-used).Seconds()/5)
	return nil
}
