package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// foreignPages are hosts and origins that a foreign web page sends, each together with an origin or host of the daemon.
// PORT is replaced by the port of the daemon.
func foreignPages() (all [][2]string) {
	for _, host := range []string{
		"evil.com", "evil.com:PORT", "localhost.evil.com:PORT", "127.0.0.1.evil.com:PORT", "127.0.0.1.nip.io:PORT", "evil.com#localhost",
		"localhost@evil.com", "evil@localhost:PORT", "localhost:PORT@evil.com", "localhost:", "localhost:x", "localhost:80:80", "localhost:999999",
		"0.0.0.0:PORT", "0:PORT", "127.1:PORT", "127.0.1:PORT", "127.0.0.2:PORT", "2130706433:PORT", "0x7f000001:PORT", "0177.0.0.1:PORT",
		"::1", "[::]:PORT", "[::ffff:127.0.0.1]:PORT", "[::1", "[::1].evil.com", "localhost.:PORT", "foo.localhost:PORT", "xlocalhost:PORT",
		"localhost/", "localhost\\", "localhost%00", "10.0.0.6:PORT", "169.254.169.254", "metadata", "null", "", "localhost,evil.com",
	} {
		all = append(all, [2]string{host, ""})
	}
	for _, origin := range []string{
		"null", "http://evil.com", "https://evil.com", "http://evil.com:PORT", "http://localhost.evil.com:PORT", "http://localhost:PORT.evil.com",
		"http://localhost@evil.com", "http://evil.com@localhost:PORT", "http://127.0.0.1:PORT/", "http://127.0.0.1", "https://127.0.0.1",
		"http://localhost:3000", "http://[::1]:1", "file://", "file://localhost:PORT", "chrome-extension://abcdef", "vscode-webview://localhost:PORT",
		"ws://localhost:PORT", "localhost:PORT", "HTTP://localhost:PORT", "http://", "http://127.0.0.1:PORT http://evil.com", "http://0.0.0.0:PORT", "about:blank",
	} {
		all = append(all, [2]string{"127.0.0.1:PORT", origin})
	}
	return all
}

// oddTargets are request lines that routing or net/http could answer before the guard runs.
var oddTargets = []string{
	"POST //mcp", "POST /mcp/", "POST /./mcp", "POST /mcp/../mcp", "POST /mcp/../api/v1/status", "POST /x/../mcp", "POST /mcp/all/", "POST /mcp//all",
	"POST /%6dcp", "POST /mcp%2Fall", "POST /mcp%2fservers%2fsrv", "POST /mcp/servers/", "POST /mcp/servers/..", "POST /mcp/servers/.", "POST /mcp/servers/a%2Fb",
	"POST /mcp/servers/..%2f..%2fall", "POST /mcp/servers/srv/", "POST /mcp/servers/srv/x", "POST /mcp?x=//y", "POST /mcp;x", "POST /MCP", "POST /mcp#x",
	"GET /api", "GET /api/v1", "GET //api/v1/status", "GET /api/v1//status", "GET /api/v1/../v1/status", "GET /api/v1/./status", "GET /api/v1/%73tatus",
	"GET /healthz/", "GET //healthz", "GET /x/../healthz", "POST /healthz", "GET /readyz?x", "GET /", "GET //", "GET /favicon.ico", "HEAD /healthz", "HEAD /mcp",
	"OPTIONS *", "OPTIONS /mcp", "OPTIONS /api/v1/status", "TRACE /mcp", "FOO /mcp", "FOO *", "PUT /mcp", "PRI *",
	"CONNECT 127.0.0.1:PORT", "CONNECT evil.com:443", "CONNECT /mcp", "CONNECT //mcp", "CONNECT /api/v1/status",
	"POST http://127.0.0.1:PORT/mcp", "GET http://127.0.0.1:PORT/healthz", "GET http://localhost:PORT/api/v1/status", "POST http://evil.com/mcp",
	"GET http://evil.com/healthz", "GET https://127.0.0.1:PORT/healthz", "GET http:///healthz", "POST HTTP://127.0.0.1:PORT/mcp",
}

// oddHeads are requests whose headers ask for an upgrade, for 100 Continue, or for another special treatment.
var oddHeads = []string{
	"GET /mcp HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
	"GET /healthz HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
	"POST /mcp HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n",
	"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
	"POST /mcp HTTP/1.1\r\nContent-Length: 99999999\r\n",
	"GET /healthz HTTP/1.1\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\nX-Original-URL: /healthz\r\n",
	"GET /healthz HTTP/1.0\r\n", "POST /mcp HTTP/1.0\r\nContent-Length: 2\r\n",
}

// TestGuardRunsFirst: on any route and for any target, a request with a wrong host or a page's origin is refused, even
// with the key or a session of the web UI.
func TestGuardRunsFirst(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers":{}}`)
	_, port, _ := net.SplitHostPort(d.address)
	heads := slices.Clone(oddHeads)
	for _, target := range slices.Concat(d.routes(), oddTargets) {
		heads = append(heads, target+" HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n")
	}
	key := "X-API-Key: " + d.key() + "\r\n"
	session := d.sessionLines()
	ask := func(head, host, origin, proof string) string {
		lines := proof + "Sec-Fetch-Site: same-origin\r\nHost: " + host + "\r\n"
		if origin != "" {
			lines += "Origin: " + origin + "\r\n"
		}
		body := "{}"
		if strings.Contains(head, "chunked") {
			body = "2\r\n{}\r\n0\r\n\r\n"
		}
		return d.rawStatus(strings.ReplaceAll(head+lines, "PORT", port) + "\r\n" + body)
	}
	work := make(chan [4]string)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for w := range work {
				if got := ask(w[0], w[1], w[2], w[3]); got != "403" && got != "400" {
					t.Errorf("host %q, origin %q, %.9s: %.100q got %s", w[1], w[2], w[3], w[0], got)
				}
			}
		})
	}
	values, every := foreignPages(), volume.FullOrQuick(1, 4) // a quick run tests each head with every fourth value
	for i, head := range heads {
		for j, v := range values {
			if (i+j)%every != 0 {
				continue
			}
			work <- [4]string{head, v[0], v[1], key}
			work <- [4]string{head, v[0], v[1], session}
		}
	}
	close(work)
	all.Wait()
	if len(values) < 60 || len(heads) < 80 {
		t.Errorf("only %d values and %d heads", len(values), len(heads))
	}
	// The daemon's own hosts and origins pass, so the refusals above come from the guard.
	for _, head := range heads {
		aPath := strings.Contains(head, " /")
		for _, proof := range []string{key, d.sessionLines()} {
			if got := ask(head, "127.0.0.1:PORT", "http://127.0.0.1:PORT", proof); got == "401" && proof != key || (got == "403") == aPath && got != "400" && !aboutCodes(head, proof) {
				t.Errorf("from its own page %.60q with %.9s is answered with %s", head, proof, got)
			}
		}
	}
	// An HTTP/2 request with prior knowledge is refused.
	if got := d.rawStatus("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); got != "403" {
		t.Errorf("HTTP/2 is answered with %s", got)
	}
}

// aboutCodes reports whether a page requests a sign-in code, which requires the API key.
func aboutCodes(head, proof string) bool {
	return strings.HasPrefix(head, "POST /api/v1/session/codes") && strings.HasPrefix(proof, "Cookie")
}

// routes returns every route of the daemon, each with a supported method.
func (d *daemon) routes() []string {
	d.t.Helper()
	all := []string{"POST /mcp", "GET /mcp", "DELETE /mcp", "POST /mcp/all", "GET /mcp/all", "POST /mcp/servers/srv", "GET /mcp/servers/srv", "POST /mcp/s/srv",
		"GET /healthz", "GET /readyz", "GET /metrics", "GET /events", "GET /ui/"}
	_, raw := d.rest("GET", "/openapi.json", "")
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		d.t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range document.Paths {
		for method := range methods {
			all = append(all, strings.ToUpper(method)+" /api/v1"+parameter.ReplaceAllString(path, "x"))
		}
	}
	slices.Sort(all)
	return all
}

// rawStatus sends bytes and returns the status of the first answer, or the error.
func (d *daemon) rawStatus(raw string) string {
	nc, err := net.Dial("tcp", d.address)
	if err != nil {
		return err.Error()
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(nc, raw); err != nil {
		return err.Error()
	}
	line, err := bufio.NewReader(nc).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	_, status, _ := strings.Cut(line, " ")
	return status[:min(len(status), 3)]
}
