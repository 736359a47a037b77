package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The error for a wrong path names the correct endpoints.
func TestWrongPathNamesTheEndpoints(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	for _, path := range []string{"/", "/sse", "/mcp/servers/"} {
		resp, err := http.Post("http://"+d.address+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), " /mcp, ") || !strings.Contains(string(body), "/mcp/servers/NAME") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}
