package cli

import (
	"errors"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

var (
	errBrowserAddress = errors.New("the address cannot be opened in a browser: it must begin with https:// (http:// on this machine)")
	errBrowserFile    = errors.New("only an .html file with its whole path may be opened in a browser")
)

// openURLInBrowser opens the address with the system's opener.
func openURLInBrowser(address string) error {
	if err := checkBrowserURL(address); err != nil {
		return err
	}
	return startSystemOpener(address)
}

// openFileInBrowser opens an HTML file with the system's opener. The file contains the link, because other users can
// read command-line arguments.
func openFileInBrowser(path string) error {
	if !filepath.IsAbs(path) || filepath.Ext(path) != ".html" {
		return errBrowserFile
	}
	return startSystemOpener(path)
}

func startSystemOpener(what string) error {
	name, args := systemOpenerCommand(runtime.GOOS, what)
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the result is not needed, because the user sees whether the browser opened
	return nil
}

// systemOpenerCommand returns the program that opens an address or a file.
func systemOpenerCommand(system, address string) (name string, args []string) {
	switch system {
	case "darwin":
		return "/usr/bin/open", []string{address}
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	return "xdg-open", []string{address}
}

// checkBrowserURL rejects an address that must not be opened.
func checkBrowserURL(address string) error {
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`<>|^\\", r) }) {
		return errBrowserAddress
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return errBrowserAddress
	}
	if strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") && isLoopbackHost(u.Hostname()) {
		return nil
	}
	return errBrowserAddress
}

func isLoopbackHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// hasDesktop reports whether a browser would be visible to the user of this terminal.
func hasDesktop(lookup func(name string) (string, bool)) bool {
	for _, remote := range []string{"SSH_CONNECTION", "SSH_TTY"} {
		if v, _ := lookup(remote); v != "" {
			return false
		}
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return true
	}
	for _, display := range []string{"DISPLAY", "WAYLAND_DISPLAY"} {
		if v, _ := lookup(display); v != "" {
			return true
		}
	}
	return false
}
