package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcptest"
)

// What a client proves itself with to MCPProxy never reaches a server, and what
// MCPProxy proves itself with to one server never reaches another one, or
// another place of the same: through every surface, in both eras, also when the
// server redirects.
func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	var mu sync.Mutex
	leaks, seen := map[string]int{}, 0
	watch := func(server string, next http.Handler, tokens bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen++
			for name, values := range r.Header {
				text := strings.Join(values, ",")
				own := tokens && name == "Authorization" && strings.HasPrefix(text, "Bearer access-")
				if strings.Contains(text, "mcpp_") || strings.Contains(text, "sesame") || name == "Authorization" && !own || name == "Cookie" {
					leaks[server+" "+name]++
				}
			}
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	}
	definition := `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	login := mcptest.ServeLogin(t, watch("login", startUpstream(t, definition), true))
	plain := mcptest.Serve(t, watch("plain", startUpstream(t, definition), false))
	moved := mcptest.Serve(t, watch("moved", http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect), false))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {"login": {"url": %q}, "plain": {"url": %q}, "moved": {"url": %q}}}`, login.URL, plain.URL, moved.URL))
	d.awaitTools("plain:echo")
	d.awaitState("login", "needs_login")
	if code, stderr := d.logIn("login"); code != 0 {
		t.Fatal(stderr)
	}
	d.awaitTools("login:echo")

	post := func(path, body string, headers map[string]string) (session string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, "http://"+d.address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range headers {
			req.Header.Set(name, value)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+d.key())
		req.Header.Set("X-API-Key", d.key())
		req.Header.Set("Cookie", "open=sesame")
		req.Header.Set("Proxy-Authorization", "Basic sesame")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK && !strings.Contains(path+body, "moved") {
			t.Fatalf("%s: status %d", path, resp.StatusCode)
		}
		return resp.Header.Get("Mcp-Session-Id")
	}
	sessions := map[string]string{}
	for _, server := range []string{"login", "plain", "moved"} {
		sessions[server] = post("/mcp/servers/"+server, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for range 250 {
		for _, server := range []string{"login", "plain", "moved"} {
			call := fmt.Sprintf(`{"name":"%s:echo","args":{"a":1}}`, server)
			post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":`+call+`,`+meta+`}}`,
				map[string]string{"Mcp-Protocol-Version": modernRevision, "Mcp-Method": "tools/call", "Mcp-Name": "call_tool_read"})
			if server != "moved" {
				post("/mcp/servers/"+server, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`,
					map[string]string{"Mcp-Session-Id": sessions[server], "Mcp-Protocol-Version": legacyRevision})
				post("/api/v1/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_read","name":"%s:echo","args":{}}`, server), nil)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if seen < 1500 || len(leaks) > 0 {
		t.Errorf("of %d requests, these carried what does not belong there: %v", seen, leaks)
	}
}
