// Package dialpolicy decides which addresses may be dialled for somebody else: for a
// server whose name, or whose documents, may lead anywhere.
//
// It guarantees that an address is judged as it is dialled, so that a name which
// leads elsewhere the second time gains nothing, that addresses which stand for
// another one are judged as that one, and that link-local addresses, where
// clouds keep the secrets of their machines, are never dialled. What comes after
// the connection is the caller's.
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

// Rule says what may be dialled besides the internet. The zero value: nothing.
type Rule struct {
	Loopback bool // this machine
	Private  bool // private networks, and this machine
}

// For returns the rule for the host of a URL that a person has written: what it says
// by itself, an address or localhost, is meant; where a name leads is not.
func For(host string, allowPrivate bool) Rule {
	r := Rule{Loopback: Here(host), Private: allowPrivate}
	if addr, err := netip.ParseAddr(host); err == nil && r.Address(addr) != nil {
		r.Private = true
	}
	return r
}

// Here reports whether a host is this machine by its name alone.
func Here(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

const dialTime = 15 * time.Second

// control judges the address that a name has led to, as it is dialled.
func (r Rule) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.New("the address cannot be judged")
	}
	return r.Address(at.Addr())
}

// Dial connects to an address that the rule allows, or to the proxy that the
// environment names. Through a proxy names are resolved elsewhere: what can be
// judged then is the URL alone.
func (r Rule) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second, Control: r.control}
	if isProxy(address) {
		d.Control = nil
	}
	return d.DialContext(ctx, network, address)
}

func isProxy(address string) bool {
	for _, scheme := range []string{"http", "https"} {
		probe := &http.Request{URL: &url.URL{Scheme: scheme, Host: "mcpproxy.invalid"}}
		if p, err := http.ProxyFromEnvironment(probe); err == nil && p != nil && HostPort(p) == address {
			return true
		}
	}
	return false
}

// HostPort returns what is dialled for a URL, or for that of a proxy.
func HostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), Port(u.Scheme, u.Port())) }

// Port returns the written port, or that of the scheme when none is written.
func Port(scheme, written string) string {
	if written != "" {
		return written
	}
	return map[string]string{"https": "443", "http": "80", "socks5": "1080", "socks5h": "1080"}[scheme]
}

// The networks that are not the internet, besides those that netip knows.
func special() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
		netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("64:ff9b:1::/48"),
	}
}

// Address judges an address. What is link-local is never asked: there the
// clouds keep the secrets of machines.
func (r Rule) Address(addr netip.Addr) error {
	if addr.Zone() != "" {
		return refusedAddress(addr, "it has a zone")
	}
	addr = embedded(addr.Unmap())
	switch {
	case addr.IsLoopback() && (r.Loopback || r.Private):
		return nil
	case addr.IsLoopback():
		return refusedAddress(addr, "it is this machine, which was not meant by the URL of the server; allow_private allows it")
	case addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return refusedAddress(addr, "it is no address of a host on the internet")
	case addr.IsPrivate() && r.Private:
		return nil
	case addr.IsPrivate():
		return refusedAddress(addr, "it is private; allow_private allows it")
	}
	for _, p := range special() {
		if p.Contains(addr) && !r.Private {
			return refusedAddress(addr, "it is not on the internet; allow_private allows it")
		}
	}
	return nil
}

// Error is an address that may not be dialled.
type Error struct {
	Addr netip.Addr
	Why  string
}

func (e *Error) Error() string { return fmt.Sprintf("the address %s is not asked: %s", e.Addr, e.Why) }

func refusedAddress(addr netip.Addr, why string) error { return &Error{addr, why} }

// embedded returns the IPv4 address that an IPv6 address stands for (NAT64, 6to4),
// or the address itself.
func embedded(addr netip.Addr) netip.Addr {
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
