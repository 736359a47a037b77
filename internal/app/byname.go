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

// byName listens at the loopback addresses that the TCP listener leaves to others, once
// passkeys are asked for: they know names alone, and a browser takes the first address of
// localhost that answers. Whoever listened at another one could ask for the passkey of ours.
type byName struct {
	asked  func() bool // for passkeys
	serve  func(net.Listener)
	logger *slog.Logger

	mu      sync.Mutex // guards what follows
	open    []netip.Addr
	warning string
}

// listen opens what is not open yet, beside who listens at tcp.
func (b *byName) listen(tcp net.Addr) {
	at, err := netip.ParseAddrPort(tcp.String())
	if err != nil || !b.asked() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.warning = ""
	for _, addr := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		if covers(at.Addr(), addr) || slices.Contains(b.open, addr) {
			continue
		}
		own := netip.AddrPortFrom(addr, at.Port()).String()
		l, err := net.Listen("tcp", own)
		switch {
		case err == nil:
			b.open = append(b.open, addr)
			b.serve(l)
		case inUse(err):
			b.warning = "Another program listens on " + own + ": a browser that opens localhost may reach that one, which could ask for your passkey. Stop it and restart MCPProxy, or choose another port."
			b.logger.Warn(b.warning)
		}
		// Else this machine has no such address, which nobody reaches then.
	}
}

// covers reports whether who listens at one address is reached at a loopback address.
func covers(listens, loopback netip.Addr) bool {
	return listens == loopback || listens.IsUnspecified() && (listens.Is6() || loopback.Is4())
}

// inUse reports whether an address is another program's.
func inUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// and returns warnings, with its own.
func (b *byName) and(others []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.warning == "" {
		return others
	}
	return append(others[:len(others):len(others)], b.warning)
}
