//go:build unix

package upstream

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// frontOf returns the URL of a server that forwards requests to target, unless first answers them.
func frontOf(t *testing.T, target string, first func(http.ResponseWriter, *http.Request) bool) string {
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	proxy.FlushInterval = -1
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !first(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(h.Close)
	return h.URL + to.Path
}
