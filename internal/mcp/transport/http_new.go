package transport

import (
	"fmt"
	"net/http"
	"net/url"

	"mcpproxy/internal/mcp/dialpolicy"
)

// NewClient returns the client for u: it reaches what u says by itself, and else
// the internet; private networks too, if that is allowed.
func NewClient(u *url.URL, allowPrivate bool) (Client, error) {
	rule := dialpolicy.For(u.Hostname(), allowPrivate)
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil {
		return nil, fmt.Errorf("read the proxy settings of the environment: %w", err)
	}
	if u.Scheme == "http" && proxy == nil && canPeek {
		return newLeanClient(u, rule), nil
	}
	return newStdClient(rule), nil
}
