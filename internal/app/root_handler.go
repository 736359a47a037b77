package app

import (
	"net/http"
	"slices"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config/auth"
)

// rootHandler checks Host and Origin of every request before routing, because the router also redirects and answers requests.
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
	rest, ok := strings.CutPrefix(path, "/mcp/")
	if !ok {
		return path == "/mcp"
	}
	kind, name, _ := strings.Cut(rest, "/")
	name = strings.TrimSuffix(name, "/mcp") // some clients append /mcp
	switch kind {
	case "all":
		return slices.Contains(allPaths, strings.TrimSuffix(rest, "/mcp"))
	case "p":
		var all string
		if name, all, ok = strings.Cut(name, "/"); ok && !slices.Contains(allPaths, all) {
			return false
		}
	case "servers", "s":
	default:
		return false
	}
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
}

// allPaths are the ends of the paths of all servers, and of their lanes.
var allPaths = []string{"all", "all/read", "all/write", "all/destructive"}
