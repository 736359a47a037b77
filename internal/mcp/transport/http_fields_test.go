//go:build unix

package transport

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
)

// TestFieldsForTheClient checks that both HTTP clients return the same headers of a response, within limits, and no
// headers when the client wants none.
func TestFieldsForTheClient(t *testing.T) {
	many := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"], h["Set-Cookie"], h["Www-Authenticate"] = []string{"application/json"}, []string{"a=b"}, []string{"Basic"}
		h["Connection"], h["X-Hop"] = []string{"keep-alive, x-hop"}, []string{"1"}
		h["x-short"], h["X-Quite-A-Long-Name-Of-A-Field"] = []string{"1", "2"}, []string{"a:b"}
		h["X-"+strings.Repeat("n", maxFieldName)] = []string{"long"}
		h["Access-Control-Allow-Origin"], h["Proxy-Status"] = []string{"*"}, []string{"x"}
		for _, policy := range []string{"Accept-Ch", "Use-As-Dictionary", "Document-Policy", "Integrity-Policy-Report-Only", "Attribution-Reporting-Register-Source"} {
			h[policy] = []string{"x"}
		}
		for range many {
			h["X-Many"] = append(h["X-Many"], strings.Repeat("v", 300))
		}
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	lean, r := leanFor(t, u)
	std := newStdClient(here)
	defer std.Close()
	fields := func(c HTTPClient) []mcp.Header {
		t.Helper()
		a, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		return a.forwardableHeaders()
	}
	for name, c := range map[string]HTTPClient{"lean": lean, "std": std} {
		many = 0
		if r.KeepHeaders = false; len(fields(c)) != 0 {
			t.Errorf("%s: got headers although none were requested", name)
		}
		r.KeepHeaders = true
		var got []string
		for _, f := range fields(c) {
			got = append(got, strings.ToLower(f.Name)+": "+f.Value)
		}
		slices.Sort(got)
		if want := []string{"x-quite-a-long-name-of-a-field: a:b", "x-short: 1", "x-short: 2"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		many = 100
		if all, bytes := fields(c), 0; true {
			for _, f := range all {
				bytes += len(f.Name) + len(f.Value)
			}
			if bytes > 12<<10 || len(all) > maxPassedFields || len(all) < 40 {
				t.Errorf("%s: %d headers, %d bytes", name, len(all), bytes)
			}
		}
	}
}
