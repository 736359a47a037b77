package auth

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// The credentials of a web UI session: a cookie that scripts cannot read, and a header value that the page stores.
// Cookies ignore ports, so any server on this machine can read and set the cookie, but not the header value.
const (
	SessionCookie = "mcpproxy_session"
	SessionHeader = "X-MCPProxy-Session"
)

// IsFromWebUIPage reports whether a request has the session header, valid or not. A cookie alone
// is not a credential.
func IsFromWebUIPage(r *http.Request) bool { return len(r.Header.Values(SessionHeader)) > 0 }

// SessionCredentials returns the session credentials of a request.
func SessionCredentials(r *http.Request) (value string, cookies []string) {
	if values := r.Header.Values(SessionHeader); len(values) == 1 {
		value = values[0]
	}
	for _, c := range r.CookiesNamed(SessionCookie) {
		cookies = append(cookies, c.Value)
	}
	return value, cookies
}

// BindRequestToWebUISession returns the actor of a request with a session: the admin, or no one. The
// returned context ends with the session; done ends the request.
func (a *Authenticator) BindRequestToWebUISession(r *http.Request) (who Actor, ctx context.Context, done func()) {
	value, cookies := SessionCredentials(r)
	ctx, done, ok := a.SignIns.BindRequestToSession(r.Context(), value, cookies)
	if !ok {
		return Actor{}, ctx, done
	}
	return Actor{Kind: Admin, FromWebUI: true}, ctx, done
}

// ForeignPageRefusal returns the reason why a request is not from a page of this exact address, or "". Unlike the
// guard, but like browsers, it distinguishes spellings of the loopback address.
func ForeignPageRefusal(r *http.Request) string {
	if site := r.Header["Sec-Fetch-Site"]; len(site) != 1 || site[0] != "same-origin" {
		return "the Sec-Fetch-Site header is not same-origin"
	}
	origins := r.Header["Origin"]
	switch {
	case len(origins) == 0 && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return "" // browsers send none
	case len(origins) == 1 && (origins[0] == "http://"+r.Host || origins[0] == "https://"+r.Host && (IsSecure(r) || !isPlainLoopbackHost(r.Host))):
		return ""
	}
	return "the Origin header does not match this address"
}

// isPlainLoopbackHost reports whether a Host is a loopback address, so that no TLS proxy is in front.
func isPlainLoopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
