package clients

import (
	"net/url"
	"slices"
	"strings"

	"mcpproxy/internal/config/auth"
)

// ProxyConnection describes how a client's entry reaches MCPProxy.
type ProxyConnection struct {
	// Path is the path of the URL, or of the address that the command connects to: /mcp, /mcp/p/research,
	// /mcp/all/read.
	Path    string
	Profile string // the profile in the path
	HTTP    bool   // the entry has a URL
	Token   string // the token in the entry, or ""
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
	if u.Profile = flagValue(args, "--profile"); u.Profile != "" {
		u.Path += "/p/" + u.Profile
	}
	lane, server := flagValue(args, "--lane"), flagValue(args, "--server")
	switch {
	case lane != "":
		u.Path += "/all/" + lane
	case server != "":
		u.Path += "/servers/" + server
	case slices.Contains(args, "--all"):
		u.Path += "/all"
	}
	return u
}

// flagValue returns the value of a flag among arguments, or "" if it is missing.
func flagValue(args []string, name string) (value string) {
	for i, arg := range args {
		if text, ok := strings.CutPrefix(arg, name+"="); ok {
			value = text
		} else if arg == name && i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value
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
