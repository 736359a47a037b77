package auth

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/dialpolicy"
)

// HostOrOriginRefusal returns the reason why a request must be rejected, or "". Each entry of trusted is a host name
// (any port) or a name with a port.
func HostOrOriginRefusal(r *http.Request, trusted []string) string {
	switch {
	// Web pages cannot reach a socket.
	case !IsFromSocket(r.Context()) && !isHostAllowed(r.Host, trusted):
		return "the Host header is not a loopback name (127.0.0.1, localhost, [::1]) and not in trusted_hosts"
	case !areOriginsAllowed(r.Header["Origin"], r.Host, trusted):
		return "the Origin header is neither that of this address nor in trusted_hosts"
	}
	return ""
}

// isHostAllowed protects from DNS rebinding: a web page served under an attacker's name sends that name as the Host.
// The port is ignored, because it differs behind port forwarding.
func isHostAllowed(host string, trusted []string) bool {
	name, _, ok := splitHost(host)
	return ok && (isLoopbackName(name) || isTrustedHost(host, name, trusted))
}

// areOriginsAllowed protects from other web pages, also from those on this machine. An origin must be trusted or the
// requested host, in any spelling of the loopback name.
func areOriginsAllowed(origins []string, host string, trusted []string) bool {
	return len(origins) == 0 || len(origins) == 1 && isOriginAllowed(origins[0], host, trusted)
}

func isOriginAllowed(origin, host string, trusted []string) bool {
	scheme, authority, ok := strings.Cut(origin, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return false
	}
	name, port, ok := splitHost(authority)
	if !ok {
		return false
	}
	_, hostPort, _ := splitHost(host)
	return isLoopbackName(name) && dialpolicy.PortOrDefault(scheme, port) == dialpolicy.PortOrDefault(scheme, hostPort) ||
		isTrustedHost(authority, name, trusted)
}

func isLoopbackName(name string) bool {
	return name == "127.0.0.1" || name == "[::1]" || strings.EqualFold(name, "localhost")
}

// isTrustedHost looks up a host in trusted_hosts, whose entries are a name (any port) or
// a name with a port.
func isTrustedHost(authority, name string, trusted []string) bool {
	return slices.ContainsFunc(trusted, func(t string) bool {
		return strings.EqualFold(t, name) || strings.EqualFold(t, authority)
	})
}

// splitHost splits name[:port]. An IPv6 address keeps its brackets. ok is false for any
// other form.
func splitHost(authority string) (name, port string, ok bool) {
	name = authority
	end := strings.IndexByte(authority, ']') // -1 if there is none
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
