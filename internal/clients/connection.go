package clients

import (
	"net/url"
	"strings"

	"mcpproxy/internal/config/auth"
)

// ProxyConnection is how a client's entry reaches MCPProxy.
type ProxyConnection struct {
	// Path is the path of the URL: /mcp, /mcp/p/research, /mcp/all. A command entry has
	// one of the first two.
	Path    string
	Profile string // in the path
	HTTP    bool   // the entry has a URL
	Token   string // in the entry, or ""
}

// ParseProxyConnection parses an entry that points to MCPProxy.
func ParseProxyConnection(entry ParsedValue) ProxyConnection {
	u := ProxyConnection{Path: "/mcp", Token: findToken(entry)}
	if address, err := url.Parse(EntryURL(entry)); err == nil && address.Host != "" {
		u.HTTP, u.Path = true, strings.TrimRight(address.Path, "/")
		if rest, ok := strings.CutPrefix(u.Path, "/mcp/p/"); ok {
			u.Profile, _, _ = strings.Cut(rest, "/")
		}
		return u
	}
	_, args := EntryCommand(entry)
	for i, arg := range args {
		if name, ok := strings.CutPrefix(arg, "--profile="); ok {
			u.Profile = name
		} else if arg == "--profile" && i+1 < len(args) {
			u.Profile = args[i+1]
		}
	}
	if u.Profile != "" {
		u.Path += "/p/" + u.Profile
	}
	return u
}

// findToken returns the first agent token in a tree.
func findToken(t ParsedValue) string {
	if token := auth.FindTokenText(t.Text()); token != "" {
		return token
	}
	for _, item := range t.Items() {
		if token := findToken(item); token != "" {
			return token
		}
	}
	for _, member := range t.Members() {
		if token := findToken(member); token != "" {
			return token
		}
	}
	return ""
}
