package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// hostileClient is a client on one surface, and what came of its calls.
type hostileClient struct {
	*mcptest.Caller
	outcomes []mcptest.Outcome
}

// hostileHTTP bounds every exchange: what takes that long hangs.
var hostileHTTP = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

func (r *hostileRun) caller(s mcptest.Surface, server string) *mcptest.Caller {
	return &mcptest.Caller{Base: "http://" + r.base, Surface: s, Server: server, HTTP: hostileHTTP}
}

func (r *hostileRun) clients(server string) []*hostileClient {
	var clients []*hostileClient
	for _, s := range mcptest.Surfaces() {
		clients = append(clients, &hostileClient{Caller: r.caller(s, server)})
	}
	return clients
}

// report prints what the calls came to, and holds it against the bounds.
func (c *hostileClient) report(m hostileMode, r *hostileRun) {
	if len(c.outcomes) == 0 {
		return
	}
	count, slowest := map[string]int{}, time.Duration(0)
	for _, o := range c.outcomes {
		count[o.What]++
		slowest = max(slowest, o.Took)
		if o.Unclear {
			r.miss("%s, %s on %v: %s", m.name, c.Server, c.Surface, o.What)
		}
	}
	var kinds []string
	for what, n := range count {
		kinds = append(kinds, fmt.Sprintf("%s × %d", what, n))
	}
	slices.Sort(kinds)
	fmt.Printf("    %-19v %-50s slowest %s\n", c.Surface, strings.Join(kinds, ", "), micro(slowest))
	if slowest > hostileDeadline+hostileSlack {
		r.miss("%s, %s on %v: answered after %v", m.name, c.Server, c.Surface, slowest)
	}
}
