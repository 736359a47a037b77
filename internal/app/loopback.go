package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/problem"
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

// newListenError explains why the address cannot be listened on, and which process uses it.
func (d *daemon) newListenError(address string, err error) error {
	const hint = "choose another address with --listen 127.0.0.1:PORT."
	if !isAddressInUse(err) {
		return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: %v", address, err).
			WithHint("C" + hint[1:])
	}
	other, _ := doctor.FindPortHolder(portOf(address))
	dataDir := other.DataDir
	if dataDir == "" {
		dataDir = d.dataDirIfDefaultDaemonListens(address)
	}
	switch {
	case dataDir != "":
		return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: another MCPProxy, with the data directory %s, uses the address.", address, dataDir).
			WithHint("Use that one (see `mcpproxy status --data-dir " + dataDir + "`) or stop it; or " + hint +
				" `mcpproxy stdio` and the command line find it there by its own data directory.").Because(err)
	case other.Name != "":
		return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: process %d (%s) uses the address.", address, other.PID, other.Name).
			WithHint("Stop it, or " + hint).Because(err)
	}
	return problem.Newf(problem.InvalidConfig, "MCPProxy cannot listen on %s: another program uses the address.", address).
		WithHint("Stop it, or " + hint).Because(err)
}

// defaultDaemonTimeout limits how long the daemon of the default data directory has to answer.
const defaultDaemonTimeout = time.Second

// dataDirIfDefaultDaemonListens returns the default data directory if its daemon listens on the address.
func (d *daemon) dataDirIfDefaultDaemonListens(address string) string {
	dir, err := config.ResolveDataDir("", "", func(name string) (string, bool) {
		if name == config.EnvDataDir {
			return "", false
		}
		return os.LookupEnv(name)
	})
	if err != nil || dir == d.live.Current().DataDir || isMissing(api.SocketPath(dir)) {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), defaultDaemonTimeout)
	defer cancel()
	c := api.NewClient(api.Endpoint{Socket: api.SocketPath(dir), Version: d.opt.Version})
	defer c.Close()
	s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return ""
	}
	for _, surface := range s.Surfaces {
		if _, at, _ := strings.Cut(surface.Address, "://"); strings.HasPrefix(at+"/", address+"/") {
			return dir
		}
	}
	return ""
}

// portOf returns the port of an address, or 0 if there is none.
func portOf(address string) (port uint16) {
	if a, err := net.ResolveTCPAddr("tcp", address); err == nil {
		port = uint16(a.Port)
	}
	return port
}
