package process

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Package managers retry for minutes without output when the network is down. So the way
// to their registry is checked during the start.

const (
	networkCheckDelay   = 2 * time.Second // cached packages have started by then
	networkCheckTimeout = 5 * time.Second // limit of a check
)

// packageRegistry is where a runner fetches packages.
type packageRegistry struct {
	address   string   // the default
	variables []string // variables that override it
	file      string   // in the home directory; may override it
}

var (
	npmRegistry       = packageRegistry{"https://registry.npmjs.org", []string{"npm_config_registry", "bun_config_registry"}, ".npmrc"}
	pypi              = packageRegistry{"https://pypi.org", []string{"uv_default_index", "uv_index_url", "pip_index_url"}, ".config/uv/uv.toml"}
	packageRegistries = map[string]packageRegistry{
		"npx": npmRegistry, "bunx": npmRegistry, "pnpx": npmRegistry, "pnpm dlx": npmRegistry, "yarn dlx": npmRegistry,
		"pipx": pypi, "uv run": pypi, "uvx": pypi,
	}
	// proxies are variables that set a proxy, which then resolves names.
	proxies = []string{"http_proxy", "https_proxy", "all_proxy", "npm_config_proxy", "npm_config_https_proxy"}
)

// RegistryURL returns the registry of the runner with these arguments and environment; ""
// if unknown.
func (r PackageRunner) RegistryURL(args []string, env map[string]string) string {
	from, ok := packageRegistries[r.Name]
	if !ok || slices.ContainsFunc(args, textMaySetRegistry) {
		return ""
	}
	home, _ := os.UserHomeDir()
	set := map[string]string{}
	for name, value := range env {
		if name == "HOME" {
			home = value
		}
		set[strings.ToLower(name)] = value
	}
	for _, name := range proxies {
		if set[name] != "" {
			return ""
		}
	}
	for _, name := range from.variables {
		if set[name] != "" {
			return set[name]
		}
	}
	if fileMaySetRegistry(filepath.Join(home, from.file)) {
		return ""
	}
	return from.address
}

// maxSettings bounds what is read of a runner's settings.
const maxSettings = 64 << 10

// fileMaySetRegistry reports whether a settings file may set the registry. Most users
// have none. Special files, such as pipes, and large files are not read.
func fileMaySetRegistry(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSettings {
		return true
	}
	text, err := os.ReadFile(path)
	return err != nil || textMaySetRegistry(string(text))
}

// textMaySetRegistry reports whether an argument or file may set the registry.
func textMaySetRegistry(text string) bool {
	for _, word := range []string{"registry", "proxy", "index", "offline", "://"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// unreachableReason returns why an address cannot be reached; "" if it may be. It
// resolves the name and checks for a route. It sends nothing, unless the address is on
// this machine.
func unreachableReason(ctx context.Context, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, networkCheckTimeout)
	defer cancel()
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[bool]string{true: "80", false: "443"}[u.Scheme == "http"]
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "the host name " + host + " cannot be resolved, is the network down?"
	}
	for _, ip := range found {
		kind := "udp" // only looks up a route
		if ip.IP.IsLoopback() {
			kind = "tcp"
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, kind, net.JoinHostPort(ip.String(), port))
		if err == nil {
			_ = conn.Close()
			return ""
		}
	}
	return host + " cannot be reached, is the network down?"
}

// watchNetwork checks what keeps a runner from fetching, and records it.
func (s *StartWatch) watchNetwork(done <-chan struct{}, source string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() { // ends with this function, or before
		select {
		case <-s.ready:
		case <-done:
		case <-ended:
		}
		cancel()
	}()
	for pause := networkCheckDelay; ; pause = 2 * pause {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		why := unreachableReason(ctx, source)
		if ctx.Err() != nil {
			return
		}
		s.slot.setDownloadProblem(why)
		if why == "" {
			return
		}
	}
}
