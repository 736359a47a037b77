package ops

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/problem"
)

// ProxyEndpoint is the address of this MCPProxy for clients.
type ProxyEndpoint struct {
	// Base is the URL without a path, such as http://127.0.0.1:8080.
	Base string
	// Command is the absolute path of the program that relays MCP over stdin and stdout, and Args its arguments. NoCommand is why there is none.
	Command   string
	Args      []string
	NoCommand error
	Profiles  []string
	// Locked reports whether every client needs a token.
	Locked bool
}

// ListenerURL returns the URL of a listener for clients on this machine.
func ListenerURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		listen = net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + listen
}

// clientAddress returns the address of a profile for a client; "" is all profiles.
func (p ProxyEndpoint) clientAddress(c clients.Client, profile string) (clients.ProxyAddress, error) {
	a := clients.ProxyAddress{URL: p.Base + "/mcp", Command: p.Command, Args: slices.Concat([]string{"stdio"}, p.Args)}
	if profile != "" {
		if !slices.Contains(p.Profiles, profile) {
			return a, problem.Newf(problem.NotFound, "The profile '%s' does not exist.", problem.ClipName(profile)).WithHint("See the profiles with `mcpproxy profile list`.")
		}
		a.URL += "/p/" + profile
		a.Args = append(a.Args, "--profile", profile)
	}
	switch {
	case c.HTTP && strings.HasSuffix(p.Base, ":0"):
		return a, problem.New(problem.DaemonNotRunning, "The address of MCPProxy is not known: it takes a free port at each start.", "Set `listen` in its configuration to an address with a port.")
	case !c.HTTP && p.NoCommand != nil:
		return a, p.NoCommand
	}
	return a, nil
}

// isOwnURL reports whether a URL is one of this MCPProxy.
func (p ProxyEndpoint) isOwnURL(text string) bool {
	base, err := url.Parse(p.Base)
	if err != nil {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != base.Scheme || u.Port() != base.Port() {
		return false
	}
	return u.Hostname() == base.Hostname() || u.Hostname() == "localhost" && net.ParseIP(base.Hostname()).IsLoopback()
}
