package auth_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"mcpproxy/internal/config/auth"
)

// TestFront checks what a request from each kind of peer becomes. A header line is "Name: value".
func TestFront(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	const peer, client = "10.0.0.1:4000", "203.0.113.9:0"
	for name, c := range map[string]struct {
		front            auth.Front
		from, path       string
		headers          []string
		remote, host     string // "" means as sent
		wantPath, refuse string
		secure           bool
	}{
		"no keys, other machine":            {from: "192.0.2.1:5", headers: []string{"X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example"}},
		"tls":                               {front: auth.Front{TLS: true}, from: "192.0.2.1:5", secure: true},
		"clear text, other machine":         {front: auth.Front{Proxies: proxies}, from: "192.0.2.1:5", refuse: "clear text"},
		"clear text, other machine, health": {front: auth.Front{Proxies: proxies}, from: "192.0.2.1:5", path: "/readyz"},
		"clear text, this machine":          {front: auth.Front{Proxies: proxies}, from: "127.0.0.1:5", headers: []string{"X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example"}},
		"tls, other machine":                {front: auth.Front{TLS: true, Proxies: proxies}, from: "192.0.2.1:5", headers: []string{"X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4"}, secure: true},
		"proxy":                             {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example"}, remote: client, host: "a.example", secure: true},
		"proxy of clear text":               {front: auth.Front{TLS: true, Proxies: proxies}, from: peer, headers: []string{"X-Forwarded-Proto: http"}},
		"proxy without headers":             {front: auth.Front{Proxies: proxies}, from: peer},
		"client's own value is first":       {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{"X-Forwarded-For: 127.0.0.1, 203.0.113.9", "X-Forwarded-Proto: http, https", "X-Forwarded-Host: evil.example, a.example"}, remote: client, host: "a.example", secure: true},
		"two lines":                         {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{"X-Forwarded-For: 127.0.0.1", "X-Forwarded-For: 203.0.113.9"}, remote: client},
		"two proxies":                       {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{"X-Forwarded-For: 8.8.8.8, 203.0.113.9, 10.1.1.1"}, remote: client},
		"no address":                        {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{"X-Forwarded-For: 203.0.113.9, unknown"}},
		"mapped peer":                       {front: auth.Front{Proxies: proxies}, from: "[::ffff:10.0.0.1]:4000", headers: []string{"X-Forwarded-For: 203.0.113.9:17"}, remote: client},
		"forwarded":                         {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{`Forwarded: for=127.0.0.1;host=evil.example, For="203.0.113.9:17";proto=HTTPS;host="a.example"`}, remote: client, host: "a.example", secure: true},
		"forwarded, IPv6 client":            {front: auth.Front{Proxies: proxies}, from: "[2001:db8::1]:9", headers: []string{`Forwarded: for="[2606:4700::1]:4711";by="_a"`}, remote: "[2606:4700::1]:0"},
		"forwarded, a client's open quote":  {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{`Forwarded: for=127.0.0.1;proto=https;x=", for=203.0.113.9;proto=http`}, remote: client},
		"both kinds":                        {front: auth.Front{Proxies: proxies}, from: peer, headers: []string{"Forwarded: for=1.2.3.4", "X-Forwarded-For: 203.0.113.9"}, refuse: "both"},
		"path":                              {front: auth.Front{Path: "/a/b"}, from: "127.0.0.1:5", path: "/a/b/mcp/all", wantPath: "/mcp/all"},
		"path, escaped":                     {front: auth.Front{Path: "/a"}, from: "127.0.0.1:5", path: "/a/api/v1/x%2Fy", wantPath: "/api/v1/x/y"},
		"path that a proxy removed":         {front: auth.Front{Path: "/a"}, from: "127.0.0.1:5", path: "/mcp"},
		"path that only begins like it":     {front: auth.Front{Path: "/a"}, from: "127.0.0.1:5", path: "/ab/mcp"},
	} {
		path := c.path
		if path == "" {
			path = "/mcp"
		}
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.RemoteAddr, r.Host = c.from, "sent.example"
		for _, line := range c.headers {
			key, value, _ := strings.Cut(line, ": ")
			r.Header.Add(key, value)
		}
		why := c.front.Apply(r)
		if (c.refuse == "") != (why == "") || !strings.Contains(why, c.refuse) {
			t.Errorf("%s: refused for %q", name, why)
		}
		for _, v := range [][3]string{{"address", r.RemoteAddr, or(c.remote, c.from)}, {"host", r.Host, or(c.host, "sent.example")}, {"path", r.URL.Path, or(c.wantPath, path)}} {
			if v[1] != v[2] {
				t.Errorf("%s: %s %q, want %q", name, v[0], v[1], v[2])
			}
		}
		if auth.IsSecure(r) != c.secure {
			t.Errorf("%s: secure %t", name, !c.secure)
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
