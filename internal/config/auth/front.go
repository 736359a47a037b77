package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Front is how requests reach the TCP listener.
type Front struct {
	TLS     bool           // the listener requires TLS
	Proxies []netip.Prefix // trusted proxies; empty: there are none
	Path    string         // path of the public URL, which a proxy may or may not remove
}

// IsSecure reports whether the client sent the request over TLS, to MCPProxy or to a trusted proxy.
func IsSecure(r *http.Request) bool { return r.URL.Scheme == "https" }

// Apply replaces the address, host and scheme of a request by those that a trusted proxy reports, and removes the path
// of the public URL. It returns the reason why the request must be rejected, or "".
func (f Front) Apply(r *http.Request) (refusal string) {
	r.URL.Scheme = ""
	if f.TLS {
		r.URL.Scheme = "https"
	}
	f.removePath(r)
	if len(f.Proxies) == 0 {
		return ""
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // net/http writes both
	switch {
	case f.isProxy(peer.Addr()):
		return f.applyProxyHeaders(r)
	case f.TLS, peer.Addr().Unmap().IsLoopback(), r.URL.Path == "/healthz", r.URL.Path == "/readyz":
		return ""
	}
	return "clear text is accepted only from this machine and from trusted_proxies"
}

// removePath removes the path of the public URL, unless the client has escaped it in another way.
func (f Front) removePath(r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, f.Path)
	raw, rawOK := strings.CutPrefix(r.URL.RawPath, f.Path)
	if f.Path != "" && ok && strings.HasPrefix(rest, "/") && (rawOK || r.URL.RawPath == "") {
		r.URL.Path, r.URL.RawPath = rest, raw
	}
}

func (f Front) isProxy(addr netip.Addr) bool {
	addr = addr.Unmap()
	return slices.ContainsFunc(f.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// applyProxyHeaders applies the headers of a trusted proxy. Each proxy adds its value at the end, so only the last value
// comes from the trusted one. A proxy that sets one kind of headers passes on a client's headers of the other kind, so
// both together are refused.
func (f Front) applyProxyHeaders(r *http.Request) (refusal string) {
	clients, schemes, hosts := listValues(r.Header["X-Forwarded-For"]), listValues(r.Header["X-Forwarded-Proto"]), listValues(r.Header["X-Forwarded-Host"])
	if standard := r.Header["Forwarded"]; len(standard) > 0 {
		if len(clients)+len(schemes)+len(hosts) > 0 {
			return "it has both Forwarded and X-Forwarded headers: configure the proxy to remove one kind"
		}
		clients, schemes, hosts = parseForwarded(standard)
	}
	for _, client := range slices.Backward(clients) {
		addr, ok := parseClientAddress(client)
		if !ok {
			break
		}
		r.RemoteAddr = net.JoinHostPort(addr.String(), "0")
		if !f.isProxy(addr) {
			break
		}
	}
	if len(schemes) > 0 {
		r.URL.Scheme = strings.ToLower(schemes[len(schemes)-1])
	}
	if len(hosts) > 0 {
		r.Host = hosts[len(hosts)-1] // its check follows
	}
	return ""
}

// listValues splits the values of a header at commas, also in quotes: a client's open quote must not hide what the proxy
// appends.
func listValues(lines []string) (all []string) {
	for _, line := range lines {
		for value := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(value))
		}
	}
	return all
}

// parseForwarded returns the clients of all elements of a Forwarded header (RFC 7239), and the scheme and host of the
// last one.
func parseForwarded(lines []string) (clients, schemes, hosts []string) {
	for _, element := range listValues(lines) {
		client := "unknown"
		schemes, hosts = nil, nil
		for pair := range strings.SplitSeq(element, ";") {
			name, value, _ := strings.Cut(pair, "=")
			value = strings.Trim(value, ` "`)
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "for":
				client = value
			case "proto":
				schemes = []string{value}
			case "host":
				hosts = []string{value}
			}
		}
		clients = append(clients, client)
	}
	return clients, schemes, hosts
}

// parseClientAddress parses an address with or without a port, as proxies write it.
func parseClientAddress(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr.Unmap().WithZone(""), err == nil
}
