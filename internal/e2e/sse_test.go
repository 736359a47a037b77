package e2e

import (
	"fmt"
	"testing"
)

// The reference server "everything" works over the HTTP+SSE transport of MCP 2024-11-05.
func TestEverythingServerOverSSE(t *testing.T) {
	t.Parallel()
	url := serveEverything(t, "sse") + "/sse"
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {"said": {"url": %q, "protocol": "sse"}, "found": {"url": %q}}}`, url, url))
	for _, server := range []string{"said", "found"} {
		d.awaitTools(server + ":echo")
		r := d.legacy().call("call_tool_read", fmt.Sprintf(`{"name":"%s:echo","args":{"message":"ping"}}`, server))
		if r.IsError || r.text() != "Echo: ping" {
			t.Errorf("%s: %+v", server, r)
		}
	}
}
