package mcp

import (
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// The names of MCP Apps, the extension for user interfaces (SEP-1865).
const (
	AppsExtension = namespace + "ui"
	AppMIMEType   = "text/html;profile=mcp-app"
	AppURIScheme  = "ui://"
	// AppsCapabilities are the capabilities of a client that supports MCP Apps.
	AppsCapabilities = `{"extensions":{"` + AppsExtension + `":{"mimeTypes":["` + AppMIMEType + `"]}}}`
	// AppsServerExtension is the member of a server's capabilities that announces MCP Apps.
	AppsServerExtension = `"extensions":{"` + AppsExtension + `":{}}`
)

// SupportsApps reports whether a client declares in its capabilities that it shows MCP Apps. A client that names no MIME
// types counts, because an early version of the extension had none.
func SupportsApps(capabilities []byte) bool {
	if !wirejson.MayContain(capabilities, AppsExtension) {
		return false
	}
	declared := wirejson.Find(wirejson.Find(capabilities, "extensions"), AppsExtension)
	if wirejson.Kind(declared) != '{' {
		return false
	}
	types := wirejson.Find(declared, "mimeTypes")
	if wirejson.Kind(types) != '[' {
		return true
	}
	found := false
	_ = wirejson.EachElement(types, func(one []byte) error {
		text, _ := wirejson.String(one)
		found = found || text == AppMIMEType
		return nil
	})
	return found
}

// IsAppURI reports whether a URI is the address of a user interface.
func IsAppURI(uri string) bool { return strings.HasPrefix(uri, AppURIScheme) }
