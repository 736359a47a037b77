package transport

import (
	"fmt"
	"net/http"
	"net/url"

	"mcpproxy/internal/mcp/dialpolicy"
)

// NewClient returns the client for u. It may dial the host in u, public addresses, and private networks if allowed.
func NewClient(u *url.URL, allowPrivate bool) (HTTPClient, error) {
	rule := dialpolicy.ForHost(u.Hostname(), allowPrivate)
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil {
		return nil, fmt.Errorf("read the proxy settings of the environment: %w", err)
	}
	if u.Scheme == "http" && proxy == nil && canPeek {
		return newLeanClient(u, rule), nil
	}
	return newStdClient(rule), nil
}
