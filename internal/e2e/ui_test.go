package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/config/auth"
)

// browserTab is a signed-in page of the web UI.
type browserTab struct {
	d             *daemon
	cookie, value string
}

// fetch sends a request with a JSON body and these headers.
func (d *daemon) fetch(method, path, body string, header map[string]string) (*http.Response, string) {
	d.t.Helper()
	req, err := http.NewRequest(method, "http://"+d.address+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp, string(answer)
}

// ownPage returns the headers that a browser sends for a page of the daemon.
func (d *daemon) ownPage() map[string]string {
	return map[string]string{"Origin": "http://" + d.address, "Sec-Fetch-Site": "same-origin"}
}

// signIn signs a page in with a code, as the page does.
func (d *daemon) signIn(code string) *browserTab {
	d.t.Helper()
	resp, body := d.fetch("POST", "/api/v1/session", `{"code":"`+code+`"}`, d.ownPage())
	var session struct{ Value string }
	if err := json.Unmarshal([]byte(body), &session); err != nil || resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		d.t.Fatalf("%d %s %v", resp.StatusCode, body, err)
	}
	return &browserTab{d, resp.Cookies()[0].Value, session.Value}
}

// newCode requests a code with the API key, as `mcpproxy ui` does over the socket.
func (d *daemon) newCode() string {
	d.t.Helper()
	var made struct{ Code string }
	status, body := d.rest("POST", "/session/codes", "")
	if err := json.Unmarshal(body, &made); err != nil || status != http.StatusOK {
		d.t.Fatalf("%d %s %v", status, body, err)
	}
	return made.Code
}

// headers returns the headers of the page, with replacements.
func (p *browserTab) headers(but map[string]string) map[string]string {
	h := p.d.ownPage()
	h["Cookie"], h["X-MCPProxy-Session"] = "mcpproxy_session="+p.cookie, p.value
	for name, value := range but {
		h[name] = value
	}
	return h
}

// A page signs in with a code on the port of the daemon and uses its rights. A restart does not end its session.
func TestWebUI(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	resp, body := d.fetch("GET", "/ui/activity", "", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
	if resp.StatusCode != 200 || !strings.Contains(body, "<title>MCPProxy") || !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	for _, path := range []string{"/", "/ui"} {
		if resp, _ := d.fetch("GET", path, "", nil); resp.StatusCode != 302 || resp.Header.Get("Location") != "ui/" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
	code := d.newCode()
	page := d.signIn(code)
	if resp, body := d.fetch("POST", "/api/v1/session", `{"code":"`+code+`"}`, d.ownPage()); resp.StatusCode != 401 || resp.Header["Set-Cookie"] != nil {
		t.Errorf("a code for the second time: %d %s", resp.StatusCode, body)
	}
	if resp, body := d.fetch("POST", "/api/v1/session/codes", "", page.headers(nil)); resp.StatusCode != 403 {
		t.Errorf("a page makes a code: %d %s", resp.StatusCode, body)
	}
	if resp, body := d.fetch("PATCH", "/api/v1/servers/none", `{"enabled":true}`, page.headers(nil)); resp.StatusCode != 404 {
		t.Errorf("a page makes a decision: %d %s", resp.StatusCode, body)
	}
	secrets := []string{code, page.cookie, page.value, d.key()}
	_, log := d.rest("GET", "/activity?limit=100", "")
	if !strings.Contains(string(log), "The code is invalid") {
		t.Errorf("a wrong code is not recorded:\n%s", log)
	}
	d.stop()
	for _, secret := range secrets {
		if strings.Contains(d.stderr.String()+string(log), secret) {
			t.Error("a secret is in the logs")
		}
	}
	d.start()
	if resp, body := d.fetch("GET", "/api/v1/status", "", page.headers(nil)); resp.StatusCode != 200 {
		t.Errorf("a session from before a restart: %d %s", resp.StatusCode, body)
	}
}

// Ended sessions stay ended after a restart. The file of the other sessions contains no secret, and only its owner can
// read it. A new API key ends all sessions.
func TestSessionsOverARestart(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	stays, out := d.signIn(d.newCode()), d.signIn(d.newCode())
	if resp, body := d.fetch("DELETE", "/api/v1/session", "", out.headers(nil)); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	path := filepath.Join(d.dataDir(), auth.SessionsFile)
	look := func(when string, want map[*browserTab]int) {
		t.Helper()
		for page, status := range want {
			if resp, _ := d.fetch("GET", "/api/v1/session", "", page.headers(nil)); resp.StatusCode != status {
				t.Errorf("%s: %d, want %d", when, resp.StatusCode, status)
			}
		}
		text, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v %v %v", when, err, statErr, info)
		}
		for _, secret := range []string{stays.cookie, stays.value, out.cookie, out.value, d.key()} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s: a secret is in the file", when)
			}
		}
	}
	d.kill()
	d.start()
	look("after a kill", map[*browserTab]int{stays: 200, out: 401})
	d.stop()
	d.start()
	look("after a stop", map[*browserTab]int{stays: 200, out: 401})
	if resp, body := d.fetch("DELETE", "/api/v1/session?everywhere=true", "", stays.headers(nil)); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	d.kill()
	d.start()
	look("after Sign out everywhere", map[*browserTab]int{stays: 401, out: 401})
	again := d.signIn(d.newCode())
	d.stop()
	if err := os.Remove(filepath.Join(d.dataDir(), auth.KeyFile)); err != nil {
		t.Fatal(err)
	}
	d.start()
	look("with another key", map[*browserTab]int{again: 401})
}

// Another server on this machine gets the cookie, because cookies ignore ports. Neither it nor its pages can use the
// cookie or the code of another page.
func TestAnotherLocalServerGetsNothing(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	var stolen atomic.Value
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("mcpproxy_session"); err == nil {
			stolen.Store(c.Value)
		}
	}))
	t.Cleanup(evil.Close)
	page := d.signIn(d.newCode())

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(&url.URL{Scheme: "http", Host: d.address, Path: "/api/v1/session"}, []*http.Cookie{{Name: "mcpproxy_session", Value: page.cookie, Path: "/api/v1"}})
	visit := &http.Client{Jar: jar}
	for _, path := range []string{"/", "/api/v1/x"} {
		resp, err := visit.Get(evil.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := stolen.Load() == page.cookie; got != (path != "/") {
			t.Errorf("%s of another server gets the cookie: %v", path, got)
		}
	}

	none := map[string]string{"X-MCPProxy-Session": ""}
	with := func(h map[string]string, more map[string]string) map[string]string {
		all := map[string]string{}
		for _, one := range []map[string]string{h, more} {
			for name, value := range one {
				all[name] = value
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		but  map[string]string
		want int
	}{
		"the server itself, with what it got":     {with(none, map[string]string{"Origin": "", "Sec-Fetch-Site": ""}), 401},
		"the server, as if it were the page":      {none, 401},
		"the server, with a value of its own":     {map[string]string{"X-MCPProxy-Session": page.cookie}, 401},
		"its page, by fetch":                      {with(none, map[string]string{"Origin": evil.URL, "Sec-Fetch-Site": "same-site"}), 403},
		"its page, whose origin is not sent":      {with(none, map[string]string{"Origin": "", "Sec-Fetch-Site": "same-site"}), 401},
		"its page, knowing the value":             {map[string]string{"Origin": evil.URL, "Sec-Fetch-Site": "same-site"}, 403},
		"its page, knowing the value, no origin":  {map[string]string{"Origin": "", "Sec-Fetch-Site": "same-site"}, 403},
		"a page elsewhere, knowing the value":     {map[string]string{"Origin": "", "Sec-Fetch-Site": "cross-site"}, 403},
		"a page under localhost, knowing it":      {map[string]string{"Origin": strings.Replace("http://"+d.address, "127.0.0.1", "localhost", 1)}, 403},
		"an address typed in, knowing the value":  {map[string]string{"Origin": "", "Sec-Fetch-Site": "none"}, 403},
		"an old browser, which says not who asks": {map[string]string{"Sec-Fetch-Site": ""}, 403},
		"the page": {nil, 200},
	} {
		resp, body := d.fetch("GET", "/api/v1/status", "", page.headers(c.but))
		if resp.StatusCode != c.want || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
		resp, body = d.fetch("POST", "/api/v1/servers/none/restart", "", page.headers(c.but))
		if refused := resp.StatusCode == 401 || resp.StatusCode == 403; refused != (c.want != 200) {
			t.Errorf("%s, changing something: %d %s", name, resp.StatusCode, body)
		}
	}
	// A page of the other server cannot sign in, not even with a code.
	for _, header := range []map[string]string{{"Origin": evil.URL, "Sec-Fetch-Site": "same-site"}, {"Origin": evil.URL}, {"Sec-Fetch-Site": "same-site"}, {}} {
		if resp, body := d.fetch("POST", "/api/v1/session", `{"code":"`+d.newCode()+`"}`, header); resp.StatusCode != 403 || resp.Header["Set-Cookie"] != nil {
			t.Errorf("%v signs in: %d %s", header, resp.StatusCode, body)
		}
	}
	for _, path := range []string{"/api/v1/session?code=" + d.newCode(), "/api/v1/session?key=" + d.key()} {
		if resp, _ := d.fetch("POST", path, `{}`, d.ownPage()); resp.StatusCode != 400 {
			t.Errorf("a secret in a URL: %d", resp.StatusCode)
		}
		if resp, _ := d.fetch("GET", path, "", nil); resp.StatusCode != 401 {
			t.Errorf("a secret in a URL: %d", resp.StatusCode)
		}
	}
}

// No session of the web UI is valid for MCP.
func TestSessionIsInvalidForMCP(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}, "require_mcp_auth": true}`)
	page := d.signIn(d.newCode())
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, path := range []string{"/mcp", "/mcp/all", "/mcp/servers/x", "/mcp/s/x"} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			h := page.headers(map[string]string{"Accept": "application/json, text/event-stream"})
			if resp, body := d.fetch(method, path, initialize, h); resp.StatusCode != 401 {
				t.Errorf("%s %s with a session: %d %s", method, path, resp.StatusCode, body)
			}
		}
	}
	h := page.headers(map[string]string{"Accept": "application/json, text/event-stream", "X-API-Key": d.key()})
	if resp, body := d.fetch("POST", "/mcp", initialize, h); resp.StatusCode != 200 {
		t.Errorf("with the key: %d %s", resp.StatusCode, body)
	}
}

// sessionLines returns the headers of a newly signed-in page, as header lines.
func (d *daemon) sessionLines() string {
	p := d.signIn(d.newCode())
	return fmt.Sprintf("Cookie: mcpproxy_session=%s\r\nX-MCPProxy-Session: %s\r\n", p.cookie, p.value)
}
