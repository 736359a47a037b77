package config

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/problem"
)

// CheckNotSelfReference rejects a server that is this MCPProxy: one of its addresses, or `mcpproxy stdio` for the
// same data directory. Such a server would find and call its own tools. References in the launch are not resolved.
func (l *LiveConfig) CheckNotSelfReference(launch Launch) error {
	how := l.selfReferenceReason(l.Current(), launch)
	if how == "" {
		return nil
	}
	return problem.New(problem.InvalidParameter, "MCPProxy cannot be its own server: "+how+".",
		"Add other servers. Clients connect to MCPProxy at the addresses that `mcpproxy status` shows.")
}

// selfReferenceReason describes how a launch leads to this MCPProxy; "" if it does not.
func (l *LiveConfig) selfReferenceReason(c *Config, launch Launch) string {
	if launch.URL != "" {
		if l.servesURL(c, launch.URL) {
			return "the URL is one of its own addresses"
		}
		return ""
	}
	if l.isOwnStdioRelay(c, launch) {
		return "the command is its own `mcpproxy stdio`"
	}
	return ""
}

// servesURL reports whether a URL leads to a listener of this MCPProxy, by a local
// address or a trusted host name.
func (l *LiveConfig) servesURL(c *Config, text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	if own := c.exposure.public; own != nil && u.Scheme == own.Scheme && strings.EqualFold(u.Host, own.Host) && strings.HasPrefix(u.Path+"/", own.Path+"/") {
		return true
	}
	listeners := []string{c.Listen}
	if l.started != nil {
		listeners = append(listeners, l.started.Listen) // a change needs a restart
	}
	if l.options.Addresses != nil {
		listeners = append(listeners, l.options.Addresses()...)
	}
	host, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), dialpolicy.PortOrDefault(u.Scheme, u.Port())
	return slices.ContainsFunc(listeners, func(listener string) bool {
		at, its, err := net.SplitHostPort(listener)
		return err == nil && its == port && (isListenerHost(strings.ToLower(at), host) || slices.ContainsFunc(c.TrustedHosts, func(name string) bool { return strings.EqualFold(name, host) }))
	})
}

// isListenerHost reports whether a URL's host is the host of a listener.
func isListenerHost(listener, host string) bool {
	everywhere := listener == "" || isUnspecifiedAddress(listener)
	switch {
	case listener == host:
		return true
	case dialpolicy.IsLoopbackHost(host), isUnspecifiedAddress(host), strings.HasSuffix(host, ".localhost"):
		return everywhere || dialpolicy.IsLoopbackHost(listener)
	case !everywhere:
		return false
	}
	if name, err := os.Hostname(); err == nil && strings.EqualFold(name, host) {
		return true
	}
	own, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap().String() == host
	})
}

// isUnspecifiedAddress reports whether a host means every local address.
func isUnspecifiedAddress(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsUnspecified()
}

// isOwnStdioRelay reports whether a command is `mcpproxy stdio` for the data directory of c. With another data
// directory it is another MCPProxy.
func (l *LiveConfig) isOwnStdioRelay(c *Config, launch Launch) bool {
	if !slices.Contains(launch.Args, "stdio") || !isMCPProxy(launch.Command) {
		return false
	}
	given, words := map[string]string{EnvPath: launch.Env[EnvPath], EnvDataDir: launch.Env[EnvDataDir]}, []string{}
	for i := 0; i < len(launch.Args); i++ {
		name, value, found := strings.Cut(launch.Args[i], "=")
		switch name {
		case "--config", "--data-dir", "--output", "-o":
			if !found && i+1 < len(launch.Args) {
				i++
				value = launch.Args[i]
			}
			given[name] = value
		default:
			words = append(words, name)
		}
	}
	if first := slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") }); first < 0 || words[first] != "stdio" {
		return false
	}
	if given["--config"]+given["--data-dir"]+given[EnvPath]+given[EnvDataDir] == "" {
		return true // the default data directory is the one of this MCPProxy
	}
	lookup := func(name string) (string, bool) {
		if name == EnvPath || name == EnvDataDir {
			return given[name], given[name] != "" // a server does not inherit these variables
		}
		return l.options.Lookup(name)
	}
	path, err := ResolvePath(given["--config"], lookup)
	if err != nil {
		return true
	}
	dir, err := ResolveDataDir(given["--data-dir"], path, lookup)
	own, ownErr := toAbsolutePath(c.DataDir, l.options.Lookup)
	return err != nil || ownErr != nil || dir == own
}

// isMCPProxy reports whether a command is this program, by name or file.
func isMCPProxy(command string) bool {
	name := strings.ToLower(filepath.Base(filepath.ToSlash(command)))
	if strings.TrimSuffix(name, ".exe") == "mcpproxy" {
		return true
	}
	if name == strings.ToLower(command) {
		return false // found on the PATH by another name
	}
	own, err := os.Executable()
	if err != nil {
		return false
	}
	a, errA := os.Stat(command)
	b, errB := os.Stat(own)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// selfReferenceWarnings returns a warning for each configured server that is this MCPProxy.
func (l *LiveConfig) selfReferenceWarnings(c *Config) (out []string) {
	for _, s := range c.Servers {
		if how := l.selfReferenceReason(c, s.Launch); s.Enabled && how != "" {
			out = append(out, joinPath("mcpServers", s.Name)+" is MCPProxy itself: "+how+"; remove it with `mcpproxy upstream remove "+s.Name+"`")
		}
	}
	return out
}
