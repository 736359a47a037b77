package mcpserver

import (
	"context"
	"mime"
	"net/http"
	"strings"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/jsonrpc"
)

// admit lets a request in that may come in, and finds out whose it is. It
// looks at the header only, so that nothing is read for those who stay out.
func (x *exchange) admit() bool {
	socket := auth.FromSocket(x.r.Context()) // no web page can reach a socket
	switch {
	case !socket && !hostAllowed(x.r.Host, x.cfg.TrustedHosts):
		x.forbid("the Host header is not a loopback name (127.0.0.1, localhost, [::1]) and not in trusted_hosts")
		return false
	case !originsAllowed(x.r.Header["Origin"], x.r.Host, x.cfg.TrustedHosts):
		x.forbid("the Origin header is neither that of this address nor in trusted_hosts")
		return false
	}
	r := x.r
	if socket {
		// The socket is the person's, but who speaks MCP over it is an agent,
		// and stands in the record as one, unless a key says otherwise.
		r = r.WithContext(context.Background())
	}
	x.actor = x.s.Auth.Actor(r)
	unproven := x.actor == auth.Actor{Kind: auth.Agent}
	switch {
	case x.actor.Kind == auth.Nobody:
		x.unauthorized("The API key is wrong." + howToProve)
		return false
	case unproven && x.cfg.RequireMCPAuth && !socket:
		x.unauthorized("An API key is required (require_mcp_auth is on)." + howToProve)
		return false
	}
	return true
}

const howToProve = ` Send the key from the file api_key of the data directory as "Authorization: Bearer KEY" or "X-API-Key: KEY".`

func (x *exchange) forbid(why string) {
	x.fail(http.StatusForbidden, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Forbidden: " + why + "."})
}

func (x *exchange) unauthorized(message string) {
	x.w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
	x.fail(http.StatusUnauthorized, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message})
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
	switch len(origins) {
	case 0:
		return true
	case 1:
		return originAllowed(origins[0], host, trusted)
	}
	return false
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
	return loopback(name) && orDefault(port, scheme) == orDefault(hostPort, scheme) ||
		listed(authority, name, trusted)
}

func orDefault(port, scheme string) string {
	switch {
	case port != "":
		return port
	case scheme == "https":
		return "443"
	}
	return "80"
}

func loopback(name string) bool {
	return name == "127.0.0.1" || name == "[::1]" || strings.EqualFold(name, "localhost")
}

// listed looks for a host in trusted_hosts, whose entries are a name (any
// port) or a name with a port.
func listed(authority, name string, trusted []string) bool {
	for _, t := range trusted {
		if strings.EqualFold(t, name) || strings.EqualFold(t, authority) {
			return true
		}
	}
	return false
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
		if port == "" || !digits(port) {
			return "", "", false
		}
	}
	if name == "" || strings.ContainsAny(name, "/@\\?#% ") {
		return "", "", false
	}
	return name, port, true
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) <= 5
}

// jsonBody says whether the body is announced as plain JSON. A page can send
// anything else across origins without asking first.
func jsonBody(h http.Header) bool {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return false
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(types[0])
	return err == nil && kind == "application/json"
}

// accepts says what of the two forms of an answer the client takes. A client
// that says nothing useful is taken to want plain JSON.
func accepts(h http.Header) (plain, stream bool) {
	values := h["Accept"]
	for _, v := range values {
		all := strings.Contains(v, "*/*")
		plain = plain || all || strings.Contains(v, "application/json") || strings.Contains(v, "application/*")
		stream = stream || strings.Contains(v, "text/event-stream") || strings.Contains(v, "text/*")
	}
	return plain || !stream, stream
}
