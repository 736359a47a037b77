package web

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func never() bool { return false }

// built is an example of the files that a build creates.
var built = fstest.MapFS{
	"index.html":          {Data: []byte("<!doctype html><title>index</title>" + strings.Repeat("<p>text</p>", 200))},
	"favicon.svg":         {Data: []byte("<svg/>")},
	"assets/app-1a2b.js":  {Data: []byte(strings.Repeat("export const a = 1;\n", 500))},
	"assets/app-1a2b.css": {Data: []byte("a{}")},
}

func serve(t *testing.T, files fs.FS) *httptest.Server {
	t.Helper()
	return serveBy(t, files, false)
}

func serveBy(t *testing.T, files fs.FS, byName bool) *httptest.Server {
	t.Helper()
	h, err := newHandler(files, never)
	h.usesPasskeys = func() bool { return byName }
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// ask sends a request. It decompresses nothing and follows no redirect.
func ask(t *testing.T, s *httptest.Server, method, target string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestServedFiles(t *testing.T) {
	t.Parallel()
	s := serve(t, built)
	page, forGood := string(built["index.html"].Data), "public, max-age=31536000, immutable"
	for _, c := range []struct {
		method, target string
		status         int
		body, kind     string
		cache          string
	}{
		{"GET", "/ui/", 200, page, "text/html; charset=utf-8", "no-cache"},
		{"HEAD", "/ui/", 200, "", "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/index.html", 200, page, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/activity", 200, page, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/tools/github:read.file?x=1", 200, page, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/favicon.svg", 200, "<svg/>", "image/svg+xml", "no-cache"},
		{"GET", "/ui/assets/app-1a2b.js", 200, string(built["assets/app-1a2b.js"].Data), "text/javascript; charset=utf-8", forGood},
		{"GET", "/ui/assets/app-1a2b.css", 200, "a{}", "text/css; charset=utf-8", forGood},
		{"GET", "/ui/assets/app-old.js", 404, "The web UI has no such file. Reload the page.\n", "text/plain; charset=utf-8", ""},
		{"GET", "/ui/assets/", 404, "The web UI has no such file. Reload the page.\n", "text/plain; charset=utf-8", ""},
		{"GET", "/ui/assets/../index.html", 404, "The web UI has no such file. Reload the page.\n", "text/plain; charset=utf-8", ""},
		{"GET", "/ui/../../etc/passwd", 200, page, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/%2e%2e/%2e%2e/etc/passwd", 200, page, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/", 302, "", "", "no-cache"},
		{"GET", "/ui", 302, "", "", "no-cache"},
		{"GET", "/ui?code=secret", 302, "", "", "no-cache"},
		{"POST", "/ui/", 405, "The web UI is read with GET.\n", "text/plain; charset=utf-8", ""},
		{"OPTIONS", "/ui/assets/app-1a2b.js", 405, "The web UI is read with GET.\n", "text/plain; charset=utf-8", ""},
	} {
		resp, body := ask(t, s, c.method, c.target)
		if resp.StatusCode != c.status || body != c.body || resp.Header.Get("Content-Type") != c.kind || resp.Header.Get("Cache-Control") != c.cache && c.status != 404 && c.status != 405 {
			t.Errorf("%s %s: %d %v %.60q", c.method, c.target, resp.StatusCode, resp.Header, body)
		}
		if c.status == 302 && resp.Header.Get("Location") != "ui/" {
			t.Errorf("%s redirects to %q", c.target, resp.Header.Get("Location"))
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
				"frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Access-Control-Allow-Origin": "", "Set-Cookie": "",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s %s: header %s = %q", c.method, c.target, name, got)
			}
		}
	}
}

// TestForms checks that each encoding of a file has its own ETag, and that a client that has the current file gets 304.
func TestForms(t *testing.T) {
	t.Parallel()
	s := serve(t, built)
	const script = "/ui/assets/app-1a2b.js"
	tags := map[string]bool{}
	for accept, zipped := range map[string]bool{
		"": false, "gzip": true, "deflate, gzip;q=0.5, br": true, "br;q=1,GZIP ; q=1": true, "gzip;q=0": false, "gzip; q=0.00": false, "br": false, "xgzip": false,
	} {
		resp, body := ask(t, s, "GET", script, "Accept-Encoding", accept)
		tag := resp.Header.Get("Etag")
		tags[tag] = true
		if (resp.Header.Get("Content-Encoding") == "gzip") != zipped || resp.Header.Get("Vary") != "Accept-Encoding" || tag == "" || strings.HasPrefix(tag, "W/") {
			t.Errorf("Accept-Encoding %q: %v", accept, resp.Header)
		}
		if zipped {
			z, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			body = string(raw)
		}
		if body != string(built["assets/app-1a2b.js"].Data) {
			t.Errorf("Accept-Encoding %q: the content differs from the file", accept)
		}
		if resp, body = ask(t, s, "GET", script, "Accept-Encoding", accept, "If-None-Match", `"x", `+tag); resp.StatusCode != 304 || body != "" {
			t.Errorf("Accept-Encoding %q: the status for a client that has the file is %d, want 304", accept, resp.StatusCode)
		}
	}
	if len(tags) != 2 {
		t.Errorf("got the ETags %v, want 2", tags)
	}
	if resp, _ := ask(t, s, "GET", "/ui/favicon.svg", "Accept-Encoding", "gzip"); resp.Header.Get("Content-Encoding") != "" {
		t.Error("a small file is compressed")
	}
}

func TestNoIndexIsNoUI(t *testing.T) {
	t.Parallel()
	if _, err := newHandler(fstest.MapFS{"assets/a.js": {}}, never); err == nil {
		t.Error("newHandler accepted files without index.html")
	}
}

var withSource = regexp.MustCompile(`<script[^>]* src=`)

// TestBuiltFiles checks that the built files can be served unchanged: one page, files of known types, and nothing that
// the Content-Security-Policy forbids.
func TestBuiltFiles(t *testing.T) {
	t.Parallel()
	h, err := New(never)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range h.files {
		if mediaType(name) == "application/octet-stream" {
			t.Errorf("%s has an unknown media type", name)
		}
		if path.Ext(name) != ".html" {
			continue
		}
		made, err := f.forms()
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(made.plain), "<script"); n != len(withSource.FindAll(made.plain, -1)) {
			t.Errorf("%s contains an inline script", name)
		}
		for _, bad := range []string{" style=", "<style", " onload=", " onclick=", "javascript:", `src="http`, `href="http`, "<base", "<iframe", "<form"} {
			if strings.Contains(string(made.plain), bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for listens, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/ui/", "[::1]:80": "http://[::1]:80/ui/", "0.0.0.0:8080": "http://127.0.0.1:8080/ui/",
		"[::]:8080": "http://127.0.0.1:8080/ui/", "192.0.2.7:8080": "http://192.0.2.7:8080/ui/",
	} {
		at, err := net.ResolveTCPAddr("tcp", listens)
		if err != nil {
			t.Fatal(err)
		}
		if got := UIAddress(at, false); got != want {
			t.Errorf("UIAddress for %s = %s", listens, got)
		}
		name := "http://localhost:8080/ui/"
		if at.Port == 80 {
			name = "http://localhost/ui/"
		}
		if got := UIAddress(at, true); got != name {
			t.Errorf("UIAddress by name for %s = %s", listens, got)
		}
	}
}

// TestRedirectToLocalhost checks that a page at a loopback address is redirected to the host name, because passkeys
// require one. Other pages are not redirected.
func TestRedirectToLocalhost(t *testing.T) {
	t.Parallel()
	s := serveBy(t, built, true)
	port := s.Listener.Addr().(*net.TCPAddr).Port
	for host, name := range map[string]string{
		"127.0.0.1:8080": "http://localhost:8080", "[::1]:8080": "http://localhost:8080", "127.0.0.1": "http://localhost", "[::1]": "http://localhost", "127.0.0.1:80": "http://localhost",
		fmt.Sprintf("127.0.0.1:%d", port): fmt.Sprintf("http://localhost:%d", port),
		"localhost:8080":                  "", "proxy.example": "", "192.0.2.7:8080": "", "127.0.0.1:": "", "127.0.0.1.example": "",
	} {
		resp, _ := ask(t, s, "GET", "/ui/settings?part=presence", "Host", host)
		if want := name + "/ui/settings?part=presence"; name != "" && (resp.StatusCode != http.StatusTemporaryRedirect || resp.Header.Get("Location") != want) {
			t.Errorf("%s: got status %s and Location %q, want a redirect to %q", host, resp.Status, resp.Header.Get("Location"), want)
		}
		if name == "" && resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status = %s", host, resp.Status)
		}
		if resp, _ := ask(t, s, "GET", "/ui/assets/app-1a2b.js", "Host", host); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status of an asset = %s", host, resp.Status)
		}
	}
	if resp, _ := ask(t, serve(t, built), "GET", "/ui/", "Host", "127.0.0.1:8080"); resp.StatusCode != http.StatusOK {
		t.Errorf("without passkeys: status = %s", resp.Status)
	}
}

// TestRelativeAddresses: the addresses in the page lead to the files from every path, also behind a proxy that has
// removed a path in front.
func TestRelativeAddresses(t *testing.T) {
	t.Parallel()
	s := serve(t, fstest.MapFS{"index.html": {Data: []byte(`<script src="./assets/app-1a2b.js"></script>`)}})
	tags := map[string]bool{}
	for target, want := range map[string]string{"/ui/": "./", "/ui/tools": "./", "/ui/tools/a": "../", "/ui/tools/a%2Fb": "../", "/ui/tools/a/b": "../../"} {
		resp, body := ask(t, s, "GET", target, "Accept-Encoding", "identity")
		if body != `<script src="`+want+`assets/app-1a2b.js"></script>` {
			t.Errorf("%s: %s", target, body)
		}
		tags[resp.Header.Get("Etag")] = true
	}
	if len(tags) != 3 {
		t.Errorf("the tags are %v", tags)
	}
}
