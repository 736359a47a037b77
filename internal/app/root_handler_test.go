package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRefusalFormat: a request with a correct MCP path is refused by its endpoint, in the form of its protocol. All other
// requests are refused by the root handler.
func TestRefusalFormat(t *testing.T) {
	const surface, routes = http.StatusTeapot, http.StatusAccepted
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	d := &rootHandler{mcp: answer(surface), rest: answer(routes), trusted: func() []string { return nil }, front: func(*http.Request) string { return "" }}
	for target, own := range map[string]int{
		"/mcp": surface, "/mcp/all": surface, "/mcp/servers/a": surface, "/mcp/s/a": surface, "/mcp?x=y": surface,
		"/mcp/all/read": surface, "/mcp/all/write/mcp": surface, "/mcp/p/x/all/destructive": surface, "/mcp/p/x/all/read/mcp": surface, "/mcp/p/all": surface, "/mcp/p/all/all": surface,
		"/mcp/all/none": routes, "/mcp/all/read/": surface, "/mcp/all/read/all": routes, "/mcp/read": routes, "/mcp/p/x/read": routes, "/mcp/p/x/all/none": routes, "/mcp/p//all": routes, "/mcp/p/x/all/all": routes,
		"/mcp/all/mcp": surface, "/mcp/servers/a/mcp": surface, "/mcp/s/a/mcp": surface, "/mcp/servers/mcp": surface, "/mcp/servers/mcp/mcp": surface,
		"/mcp/mcp": routes, "/mcp/servers//mcp": routes, "/mcp/servers/../mcp": routes, "/mcp/servers/a/mcp/mcp": routes,
		"/mcp/": surface, "/mcp/all/": surface, "/mcp/servers/a/": surface, "/mcp//": routes, "/%6dcp": routes, "//mcp": routes, "/mcp/servers/": routes, "/mcp/servers/a/b": routes, "/mcp/servers/a%2Fb": routes, "/mcp/servers/..": routes,
		"/mcp/servers/.": routes, "/MCP": routes, "/": routes, "/api/v1/status": routes, "/api/v1": routes, "http://127.0.0.1/api/v1/status": http.StatusForbidden, "/x/../mcp": routes,
		"http://127.0.0.1/mcp": http.StatusForbidden, "http://127.0.0.1/": http.StatusForbidden,
	} {
		for _, host := range []string{"127.0.0.1", "evil.example"} {
			r := httptest.NewRequest(http.MethodPost, target, nil)
			if r.Host = host; target[0] != '/' {
				r.Host = "127.0.0.1" // as net/http takes it from the target
			}
			want := own
			if host != "127.0.0.1" && own == routes {
				want = http.StatusForbidden
			}
			w := httptest.NewRecorder()
			d.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s at %s: %d, want %d", target, host, w.Code, want)
			}
			if w.Code == http.StatusForbidden && (w.Header().Get("Content-Type") == "application/problem+json") != strings.Contains(target, "/api/v1") {
				t.Errorf("%s at %s is refused in the form %s: %s", target, host, w.Header().Get("Content-Type"), w.Body)
			}
			if w.Code == http.StatusForbidden && w.Header().Get("Connection") != "close" {
				t.Errorf("%s at %s keeps the connection", target, host)
			}
		}
	}
}
