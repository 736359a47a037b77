// Package dialpolicy decides which IP addresses may be dialled for URLs that MCPProxy does not control: URLs of
// servers, and URLs in documents of servers.
//
//   - It checks each address when it is dialled, so DNS rebinding has no effect.
//   - It checks an IPv4 address that is embedded in an IPv6 address like the IPv4 address itself.
//   - It never allows link-local addresses, where clouds serve the credentials of machines.
//   - It does not check the data on the connection.
package dialpolicy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Policy defines which addresses may be dialled in addition to public ones. The zero value allows no others.
type Policy struct {
	Loopback bool // this machine
	Private  bool // private networks, and this machine
}

// ForHost returns the policy for the host of a URL that a user wrote. If the host is an address or localhost, that is
// allowed. An address to which a name resolves is not.
func ForHost(host string, allowPrivate bool) Policy {
	r := Policy{Loopback: IsLoopbackHost(host), Private: allowPrivate}
	if addr, err := netip.ParseAddr(host); err == nil && r.CheckAddr(addr) != nil {
		r.Private = true
	}
	return r
}

// IsLoopbackHost reports whether a host is localhost or a loopback address. It resolves nothing.
func IsLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

const dialTime = 15 * time.Second

// checkBeforeDial checks the resolved address before the connection is made.
func (r Policy) checkBeforeDial(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.New("the address cannot be judged")
	}
	return r.CheckAddr(at.Addr())
}

// Dial connects to an address that the policy allows, or to the proxy from the environment. Because a proxy resolves
// names itself, only the URL is checked in that case.
func (r Policy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second, Control: r.checkBeforeDial}
	if isProxyAddress(address) {
		d.Control = nil
	}
	return d.DialContext(ctx, network, address)
}

func isProxyAddress(address string) bool {
	for _, scheme := range []string{"http", "https"} {
		probe := &http.Request{URL: &url.URL{Scheme: scheme, Host: "mcpproxy.invalid"}}
		if p, err := http.ProxyFromEnvironment(probe); err == nil && p != nil && HostPort(p) == address {
			return true
		}
	}
	return false
}

// HostPort returns the address to dial for a URL.
func HostPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), PortOrDefault(u.Scheme, u.Port()))
}

// PortOrDefault returns the given port, or the default port of the scheme.
func PortOrDefault(scheme, written string) string {
	if written != "" {
		return written
	}
	return map[string]string{"https": "443", "http": "80", "socks5": "1080", "socks5h": "1080"}[scheme]
}

// reservedNetworks returns the networks that are not public and that netip does not recognize.
func reservedNetworks() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
		netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("64:ff9b:1::/48"),
	}
}

// CheckAddr returns an error if an address may not be dialled. Link-local addresses are never allowed, because clouds
// serve the credentials of machines there.
func (r Policy) CheckAddr(addr netip.Addr) error {
	if addr.Zone() != "" {
		return newAddressNotAllowedError(addr, "it has a zone")
	}
	addr = toEmbeddedIPv4(addr.Unmap())
	switch {
	case addr.IsLoopback() && (r.Loopback || r.Private):
		return nil
	case addr.IsLoopback():
		return newAddressNotAllowedError(addr, "it is this machine, which was not meant by the URL of the server; allow_private allows it")
	case addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return newAddressNotAllowedError(addr, "it is not a public internet address")
	case addr.IsPrivate() && r.Private:
		return nil
	case addr.IsPrivate():
		return newAddressNotAllowedError(addr, "it is private; allow_private allows it")
	}
	for _, p := range reservedNetworks() {
		if p.Contains(addr) && !r.Private {
			return newAddressNotAllowedError(addr, "it is not on the internet; allow_private allows it")
		}
	}
	return nil
}

// AddressNotAllowedError is the error for an address that may not be dialled.
type AddressNotAllowedError struct {
	Addr netip.Addr
	Why  string
}

func (e *AddressNotAllowedError) Error() string {
	return fmt.Sprintf("the address %s is not asked: %s", e.Addr, e.Why)
}

func newAddressNotAllowedError(addr netip.Addr, why string) error {
	return &AddressNotAllowedError{addr, why}
}

// toEmbeddedIPv4 returns the IPv4 address that an IPv6 address embeds (NAT64, 6to4), or the address itself.
func toEmbeddedIPv4(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:]))
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case netip.MustParsePrefix("::/96").Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}
