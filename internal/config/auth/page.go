package auth

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// What a page of the web UI proves its session with: a cookie that no script can
// read, and the value that the page keeps. Cookies do not know ports, so that
// every server of this machine gets, and can set, the first; the second none of
// them gets.
const (
	SessionCookie = "mcpproxy_session"
	SessionHeader = "X-MCPProxy-Session"
)

// FromPage reports whether a request presents the session of a page: whether it
// has the header, whatever is in it. A cookie alone presents nothing.
func FromPage(r *http.Request) bool { return len(r.Header.Values(SessionHeader)) > 0 }

// Presented returns what a request presents of a session.
func Presented(r *http.Request) (value string, cookies []string) {
	if values := r.Header.Values(SessionHeader); len(values) == 1 {
		value = values[0]
	}
	for _, c := range r.CookiesNamed(SessionCookie) {
		cookies = append(cookies, c.Value)
	}
	return value, cookies
}

// Page returns who makes a request that presents a session: the admin at a page,
// or nobody. The context that it returns ends with the session; done ends the
// request.
func (a *Authenticator) Page(r *http.Request) (who Actor, ctx context.Context, done func()) {
	value, cookies := Presented(r)
	ctx, done, ok := a.SignIns.Enter(r.Context(), value, cookies)
	if !ok {
		return Actor{}, ctx, done
	}
	return Actor{Kind: Admin, Page: true}, ctx, done
}

// OwnPage returns why a request is not one that a script of a page of this very
// address has made, or "" when it is. The guard, which has let it in, takes the
// spellings of the loopback address for one; they are several to a browser, and
// here.
func OwnPage(r *http.Request) string {
	if site := r.Header["Sec-Fetch-Site"]; len(site) != 1 || site[0] != "same-origin" {
		return "the Sec-Fetch-Site header is not same-origin"
	}
	origins := r.Header["Origin"]
	switch {
	case len(origins) == 0 && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return "" // browsers send none
	case len(origins) == 1 && (origins[0] == "http://"+r.Host || origins[0] == "https://"+r.Host && !loopbackHost(r.Host)):
		return ""
	}
	return "the Origin header is not that of this very address"
}

// loopbackHost reports whether a Host is this machine, where no proxy with TLS
// stands before us.
func loopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
