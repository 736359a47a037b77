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
	// Command is the absolute path of the program that relays MCP over stdin and stdout. Args are its arguments.
	// NoCommand is the reason if there is no such program.
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

// plannedEntries returns the entries of a surface for a client, with their addresses. The profile "" means all
// profiles.
func (p ProxyEndpoint) plannedEntries(c clients.Client, s clients.Surface, profile string) (all []clients.PlannedEntry, err error) {
	for _, e := range c.NewProxyEntries(s) {
		a, err := p.clientAddress(c, e, profile)
		if err != nil {
			return nil, err
		}
		all = append(all, clients.PlannedEntry{Name: e.Name, Address: a})
	}
	return all, nil
}

// clientAddress returns the address of an entry for a client. The profile "" means all profiles.
func (p ProxyEndpoint) clientAddress(c clients.Client, e clients.ProxyEntry, profile string) (clients.ProxyAddress, error) {
	a := clients.ProxyAddress{URL: p.Base + "/mcp", Command: p.Command, Args: slices.Concat([]string{"stdio"}, p.Args), Surface: e.Surface, Profile: profile}
	if profile != "" {
		if !slices.Contains(p.Profiles, profile) {
			return a, problem.Newf(problem.NotFound, "The profile '%s' does not exist.", problem.ClipName(profile)).WithHint("See the profiles with `mcpproxy profile list`.")
		}
		a.URL += "/p/" + profile
		a.Args = append(a.Args, "--profile", profile)
	}
	switch e.Surface {
	case clients.SurfaceLanes:
		a.URL += "/all/" + e.Lane
		a.Args = append(a.Args, "--lane", e.Lane)
	case clients.SurfaceAll:
		a.URL += "/all"
		a.Args = append(a.Args, "--all")
	}
	switch {
	case c.HTTP && strings.HasSuffix(p.Base, ":0"):
		return a, problem.New(problem.DaemonNotRunning, "The address of MCPProxy is not known: it takes a free port at each start.", "Set `listen` in its configuration to an address with a port.")
	case !c.HTTP && p.NoCommand != nil:
		return a, p.NoCommand
	}
	return a, nil
}

// isOwnURL reports whether a URL belongs to this MCPProxy.
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
