package auth

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/dialpolicy"
)

// RefuseOrigin returns why a request must not come in, or "" when it may. trusted are
// names (any port) or names with a port.
func RefuseOrigin(r *http.Request, trusted []string) string {
	switch {
	// No web page can reach a socket.
	case !FromSocket(r.Context()) && !hostAllowed(r.Host, trusted):
		return "the Host header is not a loopback name (127.0.0.1, localhost, [::1]) and not in trusted_hosts"
	case !originsAllowed(r.Header["Origin"], r.Host, trusted):
		return "the Origin header is neither that of this address nor in trusted_hosts"
	}
	return ""
}

// hostAllowed is the guard against DNS rebinding: a page that an attacker
// serves under a name of his own sends that name. The port tells nothing, and
// differs behind a forwarded port.
func hostAllowed(host string, trusted []string) bool {
	name, _, ok := splitHost(host)
	return ok && (loopback(name) || listed(host, name, trusted))
}

// originsAllowed is the guard against other web pages, on this machine too: an
// origin must be the one that the request is sent to (up to the spelling of
// the loopback name) or be trusted.
func originsAllowed(origins []string, host string, trusted []string) bool {
	return len(origins) == 0 || len(origins) == 1 && originAllowed(origins[0], host, trusted)
}

func originAllowed(origin, host string, trusted []string) bool {
	scheme, authority, ok := strings.Cut(origin, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return false
	}
	name, port, ok := splitHost(authority)
	if !ok {
		return false
	}
	_, hostPort, _ := splitHost(host)
	return loopback(name) && dialpolicy.Port(scheme, port) == dialpolicy.Port(scheme, hostPort) ||
		listed(authority, name, trusted)
}

func loopback(name string) bool {
	return name == "127.0.0.1" || name == "[::1]" || strings.EqualFold(name, "localhost")
}

// listed looks for a host in trusted_hosts, whose entries are a name (any
// port) or a name with a port.
func listed(authority, name string, trusted []string) bool {
	return slices.ContainsFunc(trusted, func(t string) bool {
		return strings.EqualFold(t, name) || strings.EqualFold(t, authority)
	})
}

// splitHost splits name[:port]. The name of an IPv6 address keeps its
// brackets. Whatever is not exactly of that form is not ok.
func splitHost(authority string) (name, port string, ok bool) {
	name = authority
	end := strings.IndexByte(authority, ']') // -1 when there is none
	if end < 0 && strings.Count(authority, ":") > 1 {
		return "", "", false
	}
	if colon := strings.LastIndexByte(authority, ':'); colon > end {
		name, port = authority[:colon], authority[colon+1:]
		if _, err := strconv.ParseUint(port, 10, 32); err != nil || len(port) > 5 {
			return "", "", false
		}
	}
	if name == "" || strings.ContainsAny(name, "/@\\?#% ") {
		return "", "", false
	}
	return name, port, true
}
