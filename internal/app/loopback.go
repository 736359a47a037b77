package app

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// loopbackListeners listens on the loopback addresses that the TCP listener does not cover, once passkeys are used. A passkey belongs to a name, and a
// browser connects to the first address of localhost that answers. Another program on such an address could ask for MCPProxy's passkey.
type loopbackListeners struct {
	usesPasskeys func() bool // whether passkeys are used
	serve        func(net.Listener)
	logger       *slog.Logger

	mu      sync.Mutex // guards the fields below
	addrs   []netip.Addr
	warning string
}

// openMissing listens on the addresses that are not open yet, in addition to tcp.
func (b *loopbackListeners) openMissing(tcp net.Addr) {
	at, err := netip.ParseAddrPort(tcp.String())
	if err != nil || !b.usesPasskeys() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.warning = ""
	for _, addr := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if coversAddress(at.Addr(), addr) || slices.Contains(b.addrs, addr) {
			continue
		}
		own := netip.AddrPortFrom(addr, at.Port()).String()
		l, err := net.Listen("tcp", own)
		switch {
		case err == nil:
			b.addrs = append(b.addrs, addr)
			b.serve(l)
		case isAddressInUse(err):
			b.warning = "Another program listens on " + own + ": a browser that opens localhost may reach that one, which could ask for your passkey. Stop it and restart MCPProxy, or choose another port."
			b.logger.Warn(b.warning)
		}
		// Otherwise the machine has no such address, so no program can be reached there.
	}
}

// coversAddress reports whether a listener on one address receives connections to a loopback address.
func coversAddress(listens, loopback netip.Addr) bool {
	return listens == loopback || listens.IsUnspecified() && (listens.Is6() || loopback.Is4())
}

// isAddressInUse reports whether another program uses an address.
func isAddressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// withWarning adds its warning to others.
func (b *loopbackListeners) withWarning(others []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.warning == "" {
		return others
	}
	return append(others[:len(others):len(others)], b.warning)
}
