package app

import (
	"net/http"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config/auth"
)

// rootHandler checks Host and Origin of every request before routing, because the router redirects and answers by itself.
type rootHandler struct {
	mcp     http.Handler // has the same check, and rejects in the form of MCP
	rest    http.Handler
	trusted func() []string
}

// ServeHTTP routes a request that passes the check.
func (e *rootHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.HasPrefix(r.RequestURI, "/")
	if plain, ok := strings.CutSuffix(r.URL.Path, "/"); ok && path && r.URL.RawPath == "" && isMCPPath(plain) {
		r = r.Clone(r.Context()) // some clients append a slash
		r.URL.Path = plain
	}
	if path && r.URL.RawPath == "" && isMCPPath(r.URL.Path) {
		e.mcp.ServeHTTP(w, r)
		return
	}
	why := auth.HostOrOriginRefusal(r, e.trusted())
	if why == "" && !path {
		// A host in the target replaces the Host header, which then was not checked.
		why = "the target of the request is not a path"
	}
	if why != "" {
		w.Header().Set("Connection", "close") // do not wait for the body
		if r.URL.Path == api.Prefix || strings.HasPrefix(r.URL.Path, api.Prefix+"/") {
			api.WriteForbidden(w, why)
			return
		}
		http.Error(w, "Forbidden: "+why+".", http.StatusForbidden)
		return
	}
	e.rest.ServeHTTP(w, r)
}

// isMCPPath reports whether the path is an MCP endpoint in its canonical form.
func isMCPPath(path string) bool {
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
