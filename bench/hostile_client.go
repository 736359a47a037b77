package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// hostileServerClient is a client on one surface, and the outcomes of its calls.
type hostileServerClient struct {
	*mcptest.GatewayClient
	outcomes []mcptest.CallOutcome
}

// hostileHTTPClient has a timeout: a longer request counts as hanging.
var hostileHTTPClient = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

func (r *hostileRun) newCaller(s mcptest.Surface, server string) *mcptest.GatewayClient {
	return &mcptest.GatewayClient{Base: "http://" + r.base, Surface: s, Server: server, HTTP: hostileHTTPClient}
}

func (r *hostileRun) newClients(server string) []*hostileServerClient {
	var clients []*hostileServerClient
	for _, s := range mcptest.AllSurfaces() {
		clients = append(clients, &hostileServerClient{GatewayClient: r.newCaller(s, server)})
	}
	return clients
}

// reportOutcomes prints the outcomes of the calls, and compares them with the bounds.
func (c *hostileServerClient) reportOutcomes(m hostileMode, r *hostileRun) {
	if len(c.outcomes) == 0 {
		return
	}
	count, slowest := map[string]int{}, time.Duration(0)
	for _, o := range c.outcomes {
		count[o.What]++
		slowest = max(slowest, o.Took)
		if o.Unclear {
			r.addMissedBound("%s, %s on %v: %s", m.name, c.Server, c.Surface, o.What)
		}
	}
	var kinds []string
	for what, n := range count {
		kinds = append(kinds, fmt.Sprintf("%s × %d", what, n))
	}
	slices.Sort(kinds)
	fmt.Printf("    %-19v %-50s slowest %s\n", c.Surface, strings.Join(kinds, ", "), formatMicroseconds(slowest))
	if slowest > hostileDeadline+hostileSlack {
		r.addMissedBound("%s, %s on %v: answered after %v", m.name, c.Server, c.Surface, slowest)
	}
}
