package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// spill is part of every client credential in TestCredentialsStayWhereTheyBelong, except the API key.
const spill = "sesame"

// leaky reports whether a text contains a client's credential.
func leaky(text string) bool { return strings.Contains(text, "mcpp_") || strings.Contains(text, spill) }

// witness records the requests that servers get, and the credentials in them.
type witness struct {
	mu    sync.Mutex // guards leaks
	leaks map[string]int
	seen  atomic.Int64
}

func (w *witness) leak(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaks[what]++
}

// watch records the credentials in each request to a server. Only a server with tokens may get an access token.
func (w *witness) watch(server string, tokens bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.seen.Add(1)
		for name, values := range r.Header {
			text := strings.Join(values, ",")
			own := tokens && name == "Authorization" && strings.HasPrefix(text, "Bearer access-")
			switch {
			case own:
			case leaky(name + text), strings.Contains(text, "access-"), name == "Authorization", name == "Cookie", name == "Proxy-Authorization", name == "X-Api-Key":
				w.leak(server + " header " + name)
			}
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && leaky(string(body)) {
			w.leak(server + " body")
		}
		if leaky(r.URL.String()) {
			w.leak(server + " address")
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(rw, r)
	})
}

// spy is a server that reports whether its environment or a request contains a credential.
func spy() *mcptest.Server {
	return mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			leak := leaky(strings.Join(os.Environ(), "\n")) || leaky(string(c.Params))
			return fmt.Appendf(nil, `{"content":[],"isError":%t}`, leak), nil
		}})
}

// A client's credentials for MCPProxy never reach a server. MCPProxy's credentials for one server never reach another
// server or another path of the same server. The test covers every surface, both protocols, HTTP and stdio, and servers
// that redirect on startup or during a call.
func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	w := &witness{leaks: map[string]int{}}
	serve := func(name string, next http.Handler) string {
		return mcptest.Serve(t, w.watch(name, false, next)).URL
	}
	definition := `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	login := mcptest.StartLoginServer(t, w.watch("login", true, startUpstream(t, definition)))
	plain := serve("plain", startUpstream(t, definition))
	newer := serve("newer", mcptest.New(mcptest.Options{Modern: true}, mcptest.Tool{Definition: definition}))
	moved := serve("moved", http.RedirectHandler(plain, http.StatusTemporaryRedirect))
	moves := func(next http.Handler) http.Handler { // redirects calls
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil && bytes.Contains(body, []byte(`"tools/call"`)) {
				http.Redirect(rw, r, plain, http.StatusTemporaryRedirect)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(rw, r)
		})
	}
	moving := mcptest.StartLoginServer(t, w.watch("moving", true, moves(startUpstream(t, definition))))
	command, env := mcptest.ChildCommand(t, "spy")
	variables, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers": {"login": {"url": %q}, "plain": {"url": %q}, "newer": {"url": %q}, "moved": {"url": %q}, "moving": {"url": %q},
		"pipe": {"command": %q, "env": %s}}}`, login.URL, plain, newer, moved, moving.URL, command, variables), noKeyring, "OPEN_TOKEN="+spill)
	d.awaitTools("plain:echo", "newer:echo", "pipe:echo")
	for _, name := range []string{"login", "moving"} {
		d.awaitState(name, "needs_login")
		if code, stderr := d.logIn(name); code != 0 {
			t.Fatal(stderr)
		}
		d.awaitTools(name + ":echo")
	}

	credentials := map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + d.key(), "X-API-Key": d.key(), "Cookie": "open=" + spill,
		"Proxy-Authorization": "Basic " + spill, "X-Forwarded-Access-Token": spill, "Mcp-Session": spill}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(client.CloseIdleConnections)
	post := func(path, body string, headers map[string]string) (session string) {
		address := "http://" + d.address + path
		if strings.HasPrefix(path, "/mcp") { // the other paths take no parameters
			address += "?token=" + spill
		}
		req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		for _, set := range []map[string]string{credentials, headers} {
			for name, value := range set {
				req.Header.Set(name, value)
			}
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if away := strings.Contains(path+body, "mov"); err != nil || !away && (resp.StatusCode != http.StatusOK || strings.Contains(string(answer), `"isError":true`)) {
			t.Errorf("%s %s: %d %s %v", path, body, resp.StatusCode, answer, err)
		}
		return resp.Header.Get("Mcp-Session-Id")
	}

	// Each entry is a call of one server on one surface in one protocol.
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	var calls []func()
	call := func(path, name, arguments string) {
		session := post(path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
		params := fmt.Sprintf(`{"name":%q,"arguments":%s`, name, arguments)
		older := map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": legacyRevision}
		newer := map[string]string{"Mcp-Protocol-Version": modernRevision, "Mcp-Method": "tools/call", "Mcp-Name": name}
		if session != "" { // an unreachable server has none
			calls = append(calls, func() { post(path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}}`, older) })
		}
		calls = append(calls, func() {
			post(path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`,`+meta+`}}`, newer)
		})
	}
	for _, server := range []string{"login", "plain", "newer", "pipe", "moving", "moved"} {
		call("/mcp", "call_tool_read", fmt.Sprintf(`{"name":"%s:echo","args":{"a":1}}`, server))
		call("/mcp/servers/"+server, "echo", "{}")
		call("/mcp/all", server+"__echo", "{}")
		rest := fmt.Sprintf(`{"tool_variant":"call_tool_read","name":"%s:echo","args":{}}`, server)
		calls = append(calls, func() { post("/api/v1/tools/call", rest, nil) })
	}
	const atOnce = 16
	wanted := volume.FullOrQuick(10_000, 1_000)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(wanted) && !t.Failed(); n = next.Add(1) {
				calls[int(n)%len(calls)]()
			}
		})
	}
	wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	// The witness does not see requests to the stdio process or to an address without a server.
	if seen := w.seen.Load(); seen < int64(wanted/2) || len(w.leaks) > 0 {
		t.Errorf("of %d requests, these contained a wrong credential: %v", seen, w.leaks)
	}
	t.Logf("%d calls in %d ways, %d requests to servers", wanted, len(calls), w.seen.Load())
}
