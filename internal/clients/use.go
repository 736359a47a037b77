package clients

import (
	"net/url"
	"strings"

	"mcpproxy/internal/config/auth"
)

// Connection is how a client reaches MCPProxy by an entry of its files.
type Connection struct {
	// Path is that of the address: /mcp, /mcp/p/research, /mcp/all. What the client
	// starts carries one of the first two.
	Path    string
	Profile string // that the path names
	HTTP    bool   // it has the address itself
	Token   string // that the entry holds, "" for none
}

// ConnectionOf reads an entry that leads to MCPProxy.
func ConnectionOf(entry Tree) Connection {
	u := Connection{Path: "/mcp", Token: findToken(entry)}
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

// findToken returns the first agent token in the texts of a tree.
func findToken(t Tree) string {
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
