package auth

import "testing"

func TestHostAllowed(t *testing.T) {
	trusted := []string{"proxy.example", "other.example:9000", "10.0.0.5"}
	yes := []string{"127.0.0.1", "127.0.0.1:8080", "localhost", "localhost:1", "LOCALHOST:8080", "[::1]", "[::1]:8080",
		"proxy.example", "proxy.example:1", "PROXY.example", "other.example:9000", "10.0.0.5:8080"}
	no := []string{"", ":8080", "evil.com", "evil.com:8080", "localhost.evil.com", "127.0.0.1.evil.com", "127.0.0.1.nip.io:8080",
		"evil.com#localhost", "localhost@evil.com", "evil@localhost", "localhost:8080@evil.com", "localhost:", "localhost:x", "localhost:+80", "localhost:8_0",
		"localhost:80:80", "localhost:999999", "0.0.0.0", "0.0.0.0:8080", "0", "127.1", "127.0.1", "127.0.0.2", "2130706433",
		"0x7f000001", "0177.0.0.1", "::1", "[::]", "[::ffff:127.0.0.1]", "[::1", "::1]", "[::1]x", "[::1].evil.com", "localhost.",
		"foo.localhost", "xlocalhost", "local host", "localhost/", "localhost\\", "localhost?", "localhost%00", "10.0.0.6",
		"other.example", "other.example:9001", "proxy.example.evil", "xn--localhost", "ⓛocalhost", "127。0。0。1", "null"}
	for _, host := range yes {
		if !isHostAllowed(host, trusted) {
			t.Errorf("host %q is rejected", host)
		}
	}
	for _, host := range no {
		if isHostAllowed(host, trusted) {
			t.Errorf("host %q is allowed", host)
		}
	}
}

func TestOriginAllowed(t *testing.T) {
	trusted := []string{"proxy.example", "other.example:9000"}
	for _, tt := range []struct {
		origin, host string
		want         bool
	}{
		{"http://127.0.0.1:8080", "127.0.0.1:8080", true},
		{"http://localhost:8080", "127.0.0.1:8080", true},
		{"http://[::1]:8080", "localhost:8080", true},
		{"https://localhost:8080", "localhost:8080", true},
		{"http://localhost", "localhost", true},
		{"http://localhost:80", "localhost", true},
		{"https://localhost", "localhost:443", true},
		{"https://proxy.example", "127.0.0.1:8080", true},
		{"http://other.example:9000", "127.0.0.1:8080", true},
		{"http://other.example", "127.0.0.1:8080", false},
		{"http://localhost:3000", "localhost:8080", false}, // another page on this machine
		{"http://localhost", "localhost:8080", false},
		{"null", "localhost:8080", false},
		{"", "localhost:8080", false},
		{"http://evil.com", "localhost:8080", false},
		{"http://evil.com:8080", "localhost:8080", false},
		{"http://localhost.evil.com:8080", "localhost:8080", false},
		{"http://localhost:8080.evil.com", "localhost:8080", false},
		{"http://localhost@evil.com:8080", "localhost:8080", false},
		{"http://127.0.0.1:8080/", "localhost:8080", false}, // no browser sends a path
		{"file://", "localhost:8080", false},
		{"file://localhost:8080", "localhost:8080", false},
		{"chrome-extension://abcdef", "localhost:8080", false},
		{"vscode-webview://localhost:8080", "localhost:8080", false},
		{"ws://localhost:8080", "localhost:8080", false},
		{"localhost:8080", "localhost:8080", false},
		{"HTTP://localhost:8080", "localhost:8080", false},
		{"http://", "localhost:8080", false},
	} {
		if got := isOriginAllowed(tt.origin, tt.host, trusted); got != tt.want {
			t.Errorf("origin %q at %q: %v", tt.origin, tt.host, got)
		}
	}
	if areOriginsAllowed([]string{"http://localhost:1", "http://localhost:1"}, "localhost:1", nil) {
		t.Error("two Origin headers are allowed")
	}
}
