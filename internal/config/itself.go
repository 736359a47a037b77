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

// Itself refuses a server that is this MCPProxy itself: one of the addresses at
// which it answers, or `mcpproxy stdio` for the same data directory. It would find
// and call its own tools through itself. The launch is taken as it is:
// references in it are not resolved.
func (l *Live) Itself(launch Launch) error {
	how := l.itself(l.Current(), launch)
	if how == "" {
		return nil
	}
	return problem.New(problem.InvalidParameter, "MCPProxy cannot be a server behind itself: "+how+".",
		"Add the servers that you want behind it; clients find MCPProxy itself at the addresses that `mcpproxy status` shows.")
}

// itself says how a launch leads back to this MCPProxy; "" when it does not.
func (l *Live) itself(c *Config, launch Launch) string {
	if launch.URL != "" {
		if l.answersAt(c, launch.URL) {
			return "the URL is one of its own addresses"
		}
		return ""
	}
	if l.bridgesTo(c, launch) {
		return "the command is its own `mcpproxy stdio`"
	}
	return ""
}

// answersAt reports whether a URL leads to a listener of this MCPProxy, by an address
// of this machine or by a name under which clients come to it.
func (l *Live) answersAt(c *Config, text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	listeners := []string{c.Listen}
	if l.started != nil {
		listeners = append(listeners, l.started.Listen) // a change waits for a restart
	}
	if l.options.Addresses != nil {
		listeners = append(listeners, l.options.Addresses()...)
	}
	host, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), dialpolicy.Port(u.Scheme, u.Port())
	return slices.ContainsFunc(listeners, func(listener string) bool {
		at, its, err := net.SplitHostPort(listener)
		return err == nil && its == port && (sameHost(strings.ToLower(at), host) || slices.ContainsFunc(c.TrustedHosts, func(name string) bool { return strings.EqualFold(name, host) }))
	})
}

// sameHost reports whether a host of a URL is the one that a listener has.
func sameHost(listener, host string) bool {
	everywhere := listener == "" || unspecified(listener)
	switch {
	case listener == host:
		return true
	case dialpolicy.IsLocalName(host), unspecified(host), strings.HasSuffix(host, ".localhost"):
		return everywhere || dialpolicy.IsLocalName(listener)
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

// unspecified reports whether a host stands for every address of this machine.
func unspecified(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsUnspecified()
}

// bridgesTo reports whether a command is `mcpproxy stdio` for the data directory
// of c. With another one it is another MCPProxy.
func (l *Live) bridgesTo(c *Config, launch Launch) bool {
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
		return true // of the MCPProxy of this machine: who wrote it means this one
	}
	lookup := func(name string) (string, bool) {
		if name == EnvPath || name == EnvDataDir {
			return given[name], given[name] != "" // a server does not inherit ours
		}
		return l.options.Lookup(name)
	}
	path, err := ResolvePath(given["--config"], lookup)
	if err != nil {
		return true
	}
	dir, err := ResolveDataDir(given["--data-dir"], path, lookup)
	own, ownErr := absolute(c.DataDir, l.options.Lookup)
	return err != nil || ownErr != nil || dir == own
}

// isMCPProxy reports whether a command is this program, by its name or by its file.
func isMCPProxy(command string) bool {
	name := strings.ToLower(filepath.Base(filepath.ToSlash(command)))
	if strings.TrimSuffix(name, ".exe") == "mcpproxy" {
		return true
	}
	if name == strings.ToLower(command) {
		return false // found on the PATH, under its own name
	}
	own, err := os.Executable()
	if err != nil {
		return false
	}
	a, errA := os.Stat(command)
	b, errB := os.Stat(own)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// leadingBack warns of servers of a configuration that are MCPProxy itself.
func (l *Live) leadingBack(c *Config) (out []string) {
	for _, s := range c.Servers {
		if how := l.itself(c, s.Launch); s.Enabled && how != "" {
			out = append(out, join("mcpServers", s.Name)+" is MCPProxy itself: "+how+"; take it out with `mcpproxy upstream remove "+s.Name+"`")
		}
	}
	return out
}
