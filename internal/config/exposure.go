package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/dialpolicy"
)

// TLS names the certificate of the HTTP server, in PEM. Without files, the server speaks clear text.
type TLS struct {
	CertificateFile string // the certificate, and then those of the intermediate authorities
	KeyFile         string
}

// IsOn reports whether the HTTP server requires TLS.
func (t TLS) IsOn() bool { return t.CertificateFile != "" }

// exposure is how clients on other machines reach MCPProxy, derived from the configuration.
type exposure struct {
	public  *url.URL       // public_url, without a slash at the end; nil if it is not set
	hosts   []string       // trusted_hosts and the host of public
	proxies []netip.Prefix // trusted_proxies
}

// newExposure derives the exposure from valid values.
func newExposure(c *Config) (e exposure) {
	e.hosts = c.TrustedHosts
	if c.PublicURL != "" {
		e.public, _ = url.Parse(strings.TrimRight(c.PublicURL, "/")) // checkPublicURL has parsed it
		e.hosts = append(slices.Clip(e.hosts), e.public.Host)
	}
	for _, text := range c.TrustedProxies {
		if p, err := parseProxy(text); err == nil {
			e.proxies = append(e.proxies, p)
		}
	}
	return e
}

// AllowedHosts returns the hosts that requests may name, in addition to those of the loopback address: trusted_hosts
// and the host of public_url.
func (c *Config) AllowedHosts() []string {
	if c.exposure.public == nil {
		return c.TrustedHosts
	}
	return c.exposure.hosts
}

// ProxyAddresses returns the addresses of trusted_proxies.
func (c *Config) ProxyAddresses() []netip.Prefix { return c.exposure.proxies }

// PublicPath returns the path of public_url, such as /mcpproxy, or "".
func (c *Config) PublicPath() string {
	if c.exposure.public == nil {
		return ""
	}
	return c.exposure.public.Path
}

// PublicPathAt returns the path of public_url for requests to a host, "" for another host.
func (c *Config) PublicPathAt(host string) string {
	if public := c.exposure.public; public != nil && strings.EqualFold(host, public.Host) {
		return public.Path
	}
	return ""
}

// BaseURL returns the URL of MCPProxy for clients, without a slash at the end: public_url, otherwise that of a listener
// with or without TLS.
func (c *Config) BaseURL(listen string, secure bool) string {
	if c.exposure.public != nil {
		return c.exposure.public.String()
	}
	return ListenerURL(listen, secure)
}

// ListenerURL returns the URL of a listener for clients on this machine.
func ListenerURL(listen string, secure bool) string {
	host, port, err := net.SplitHostPort(listen)
	if err == nil && (host == "" || isUnspecifiedAddress(host)) {
		listen = net.JoinHostPort("127.0.0.1", port)
	}
	if secure {
		return "https://" + listen
	}
	return "http://" + listen
}

// exposedBy returns the key that lets other machines connect, or "".
func (c *Config) exposedBy() (key, message string) {
	switch {
	case !isLoopbackAddress(c.Listen):
		return "listen", "listen is not a loopback address, so other machines can connect"
	case len(c.TrustedProxies) > 0:
		return "trusted_proxies", "other machines can connect through trusted_proxies"
	case c.PublicURL != "":
		if u, err := url.Parse(c.PublicURL); err == nil && !dialpolicy.IsLoopbackHost(u.Hostname()) {
			return "public_url", "public_url is not a loopback address, so other machines can connect"
		}
	}
	return "", ""
}

// checkFront rejects keys of TLS that contradict each other.
func (d *decoder) checkFront(g objectMembers, c *Config) {
	member, ok := g["tls"]
	if !ok {
		return
	}
	switch {
	case (c.TLS.CertificateFile == "") != (c.TLS.KeyFile == ""):
		d.addMistake(member.Value.StartOffset, "tls", "tls needs both files", `for example {"certificate_file": "/etc/mcpproxy/tls.crt", "key_file": "/etc/mcpproxy/tls.key"}`)
	case c.TLS.IsOn() && c.Presence == PresencePasskey:
		d.addMistake(member.Value.StartOffset, "tls", "a passkey belongs to http://localhost, which tls replaces", `set "presence": "passphrase"`)
	}
}

// parseProxy parses an entry of trusted_proxies: a CIDR range or an address.
func parseProxy(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

func checkProxy(s string) error {
	if p, err := parseProxy(s); err != nil || p.Addr().Is4In6() {
		return errors.New("the value is not a range of addresses; such as 10.0.0.0/8 or 192.0.2.7")
	}
	return nil
}

// ownPaths are the first path segments of MCPProxy, which public_url cannot have.
var ownPaths = []string{"mcp", "api", "ui", "oauth", "healthz", "readyz", "metrics"}

func checkPublicURL(s string) error {
	if s == "" {
		return nil
	}
	if err := checkURL(s); err != nil {
		return err
	}
	u, err := url.Parse(s)
	if err != nil {
		return err
	}
	own := slices.IndexFunc(ownPaths, func(name string) bool { return slices.Contains(strings.Split(u.Path, "/"), name) })
	switch {
	case u.Scheme != "https" && !dialpolicy.IsLoopbackHost(u.Hostname()):
		return errors.New("public_url must begin with https://; clear text is only for this machine")
	case u.User != nil || u.RawQuery != "" || u.RawPath != "" || strings.Contains(u.Path, "//"):
		return errors.New("public_url is only scheme, host and path; such as https://mcp.example.com or https://example.com/mcpproxy")
	case own >= 0:
		return errors.New("the path of public_url has a path of MCPProxy itself; remove /" + ownPaths[own] + ", which MCPProxy adds where it is needed")
	}
	return nil
}

func checkTLSFile(s string) error {
	if s == "" {
		return nil // clear text
	}
	return checkAbsolutePath(s)
}
