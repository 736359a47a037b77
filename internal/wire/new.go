package wire

import (
	"fmt"
	"net/http"
	"net/url"

	"mcpproxy/internal/reach"
)

// NewClient returns the client for u, which dials what rule allows.
func NewClient(u *url.URL, rule reach.Rule) (Client, error) {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil {
		return nil, fmt.Errorf("read the proxy settings of the environment: %w", err)
	}
	if u.Scheme == "http" && proxy == nil && canPeek {
		return newLeanClient(u, rule), nil
	}
	return newStdClient(rule), nil
}
