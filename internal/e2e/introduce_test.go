package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client of /mcp gets the list of servers, and is notified of a new one, in both protocols.
func TestServersAreListedInInstructions(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, `{"name":"look","inputSchema":{"type":"object"}}`)
	d := startDaemon(t, `{"mcpServers":{}}`)
	heard := make(chan string, 100)
	hears := func(who string) *mcp.ClientOptions {
		return &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { heard <- who }}
	}
	const none = "No server can be used yet. The user adds one with `mcpproxy upstream add`; servers that you propose with upstream_servers wait for the user."
	for _, version := range []string{legacyRevision, modernRevision} {
		s := d.sdkAt("/mcp", version, hears(version))
		if got := s.InitializeResult().Instructions; !strings.HasSuffix(got, none) {
			t.Errorf("%s: %s", version, got)
		}
	}
	d.writeConfig(upstream.config("wiki", `"tools_limit": 10`))
	d.awaitTools("wiki:look")
	for waiting := map[string]bool{legacyRevision: true, modernRevision: true}; len(waiting) > 0; {
		select {
		case who := <-heard:
			delete(waiting, who)
		case <-within(t).Done():
			t.Fatalf("no notification: %v", waiting)
		}
	}
	for _, version := range []string{legacyRevision, modernRevision} {
		if got := d.sdkAt("/mcp", version, nil).InitializeResult().Instructions; !strings.HasSuffix(got, " The servers, with how many tools each has: wiki (1).") {
			t.Errorf("%s: %s", version, got)
		}
	}
}
