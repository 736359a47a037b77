package cli

import (
	"slices"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, good := range []string{
		"https://as.example/authorize?client_id=a&scope=b%20c", "http://127.0.0.1:8080/authorize?x=1", "http://localhost/a", "http://[::1]:80/",
	} {
		if err := checkBrowserURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "javascript:alert(1)", "file:///etc/passwd", "http://as.example/", "HTTPS://as.example/", "https:as.example", "https://",
		"--help", "-https://as.example/", "https://as.example/$(touch x)\n", "https://as.example/`id`", "https://as.example/\"&calc", "https://a b/",
		"https://u:p@as.example/", "data:text/html,x", "vbscript:x", "ms-cxh:x", "https://as.example/|calc", "https://as.example/^&calc", "\\\\host\\share",
		"https://as.example/ä", "http://127.0.0.1.evil.example/", "http://localhost.evil.example/", "http://2130706433/",
	} {
		if checkBrowserURL(bad) == nil || openURLInBrowser(bad) == nil {
			t.Errorf("%q may be opened", bad)
		}
	}
}

func TestOpenerIsNoShell(t *testing.T) {
	const address = "https://as.example/?a=1&b=2"
	for system, want := range map[string][]string{
		"linux": {"xdg-open", address}, "freebsd": {"xdg-open", address}, "darwin": {"/usr/bin/open", address},
		"windows": {"rundll32", "url.dll,FileProtocolHandler", address},
	} {
		name, args := systemOpenerCommand(system, address)
		if got := append([]string{name}, args...); !slices.Equal(got, want) {
			t.Errorf("%s: %q", system, got)
		}
	}
}

func TestDesktop(t *testing.T) {
	env := map[string]string{"DISPLAY": ":0", "SSH_CONNECTION": "a b"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	if hasDesktop(lookup) {
		t.Error("a browser is opened in an SSH session")
	}
	delete(env, "SSH_CONNECTION")
	if !hasDesktop(lookup) {
		t.Error("no desktop is found, although DISPLAY is set")
	}
}

func TestOpenFileTakesPagesOnly(t *testing.T) {
	for _, bad := range []string{"", "page.html", "./page.html", "--help.html", "/bin/sh", "/tmp/page.desktop", "file:///tmp/page.html", "https://as.example/page.html"} {
		if openFileInBrowser(bad) == nil {
			t.Errorf("%q may be opened", bad)
		}
	}
}
