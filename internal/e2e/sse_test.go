package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
)

// The server that everybody has tried, over the transport of MCP 2024-11-05.
func TestEverythingOverSSE(t *testing.T) {
	modules, node := peers(t)
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), "sse")
	cmd.Env = append(cmd.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	eventually(t, "the server answers", func() error {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return err
		}
		return c.Close()
	})
	url := "http://127.0.0.1:" + port + "/sse"
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {"said": {"url": %q, "protocol": "sse"}, "found": {"url": %q}}}`, url, url))
	for _, server := range []string{"said", "found"} {
		d.awaitTools(server + ":echo")
		r := d.legacy().call("call_tool_read", fmt.Sprintf(`{"name":"%s:echo","args":{"message":"ping"}}`, server))
		if r.IsError || r.text() != "Echo: ping" {
			t.Errorf("%s: %+v", server, r)
		}
	}
}
