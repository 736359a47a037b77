package app

import (
	"net/http"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config/auth"
)

// entrance is what every request meets first, over TCP and over the socket,
// whatever its method and its target: the guard stands before routing, which
// redirects and answers by itself.
type entrance struct {
	mcp     http.Handler // has the same guard, and refuses in the form of its protocol
	rest    http.Handler
	trusted func() []string
}

// ServeHTTP lets a request in that may come in.
func (e *entrance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.HasPrefix(r.RequestURI, "/")
	if plain, ok := strings.CutSuffix(r.URL.Path, "/"); ok && path && r.URL.RawPath == "" && isMCP(plain) {
		r = r.Clone(r.Context()) // some clients write a slash behind the address
		r.URL.Path = plain
	}
	if path && r.URL.RawPath == "" && isMCP(r.URL.Path) {
		e.mcp.ServeHTTP(w, r)
		return
	}
	why := auth.RefuseOrigin(r, e.trusted())
	if why == "" && !path {
		// A host in the target replaces the Host header, which then nobody has looked at.
		why = "the target of the request is not a path"
	}
	if why != "" {
		w.Header().Set("Connection", "close") // its body is not waited for
		if r.URL.Path == api.Prefix || strings.HasPrefix(r.URL.Path, api.Prefix+"/") {
			api.Forbid(w, why)
			return
		}
		http.Error(w, "Forbidden: "+why+".", http.StatusForbidden)
		return
	}
	e.rest.ServeHTTP(w, r)
}

// isMCP reports whether the path is one of MCP's, spelt as it should be.
func isMCP(path string) bool {
	if path == "/mcp" || path == "/mcp/all" || path == "/mcp/all/mcp" {
		return true
	}
	for _, door := range [...]struct{ prefix, suffix string }{{"/mcp/servers/", ""}, {"/mcp/s/", ""}, {"/mcp/p/", "/all"}} {
		if name, ok := strings.CutPrefix(path, door.prefix); ok {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "/mcp"), door.suffix) // some clients append /mcp
			return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
		}
	}
	return false
}
