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

// Package managers try again for minutes, without a word, when the network is away. So the
// way to their registry is looked at meanwhile.

const (
	networkAfter = 2 * time.Second // what is in a cache has started by then
	networkTime  = 5 * time.Second // that a look may take
)

// registry is from where a runner fetches.
type registry struct {
	address   string   // unless it is told otherwise
	variables []string // that tell it otherwise
	file      string   // in the home directory, that may
}

var (
	npmRegistry = registry{"https://registry.npmjs.org", []string{"npm_config_registry", "bun_config_registry"}, ".npmrc"}
	pypi        = registry{"https://pypi.org", []string{"uv_default_index", "uv_index_url", "pip_index_url"}, ".config/uv/uv.toml"}
	registries  = map[string]registry{
		"npx": npmRegistry, "bunx": npmRegistry, "pnpx": npmRegistry, "pnpm dlx": npmRegistry, "yarn dlx": npmRegistry,
		"pipx": pypi, "uv run": pypi, "uvx": pypi,
	}
	// proxies are variables that name a proxy: then it is the proxy that looks up names.
	proxies = []string{"http_proxy", "https_proxy", "all_proxy", "npm_config_proxy", "npm_config_https_proxy"}
)

// Source is the address from which the runner fetches, with these arguments and these
// variables of its environment; "" where that is not known.
func (r Runner) Source(args []string, env map[string]string) string {
	from, ok := registries[r.Name]
	if !ok || slices.ContainsFunc(args, tellsSource) {
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
	if mayTellSource(filepath.Join(home, from.file)) {
		return ""
	}
	return from.address
}

// maxSettings is how much of a runner's settings is read.
const maxSettings = 64 << 10

// mayTellSource reports whether a file may say from where a runner fetches. Most users have
// none; one that is no plain file, such as a pipe, or is large, is not read to its end.
func mayTellSource(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSettings {
		return true
	}
	text, err := os.ReadFile(path)
	return err != nil || tellsSource(string(text))
}

// tellsSource reports whether an argument or a file may say from where a runner fetches.
func tellsSource(text string) bool {
	for _, word := range []string{"registry", "proxy", "index", "offline", "://"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// unreachable returns why an address cannot be reached, in our own words; "" when it may
// be. It looks the name up and asks this machine for a way there. Nothing is sent to the
// address, unless it is on this machine.
func unreachable(ctx context.Context, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, networkTime)
	defer cancel()
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[bool]string{true: "80", false: "443"}[u.Scheme == "http"]
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return "the host name " + host + " cannot be looked up, is there a network?"
	}
	for _, ip := range found {
		kind := "udp" // which only looks for a way
		if ip.IP.IsLoopback() {
			kind = "tcp"
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, kind, net.JoinHostPort(ip.String(), port))
		if err == nil {
			_ = conn.Close()
			return ""
		}
	}
	return host + " cannot be reached, is there a network?"
}

// watchNetwork looks for what keeps a runner from fetching, and notes it.
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
	for pause := networkAfter; ; pause = 2 * pause {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		why := unreachable(ctx, source)
		if ctx.Err() != nil {
			return
		}
		s.place.setTrouble(why)
		if why == "" {
			return
		}
	}
}
