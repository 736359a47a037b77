package oauth

import (
	"context"
	"strings"
	"testing"
)

// hostile returns endpoints that a metadata document must not cause requests to, even for a server on this machine.
func hostile() []string {
	return []string{
		"", "/authorize", "//as.example/authorize", "authorize", "javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", "data:text/html,<script>",
		"vbscript:msgbox", "file:///etc/passwd", "file://host/share", "ftp://as.example/", "gopher://as.example/", "ssh://as.example/", "ms-msdt:/id", "calculator:",
		"http://as.example/authorize", "http://10.0.0.1/", "https://10.0.0.1/", "https://192.168.1.1/admin", "https://172.20.0.1/", "https://[fd00::1]/", "https://100.64.0.1/",
		"https://169.254.169.254/latest/meta-data/", "http://169.254.169.254/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/", "https://0.0.0.0/", "https://[::]/",
		"https://224.0.0.1/", "https://255.255.255.255/", "https://[::ffff:169.254.169.254]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:a9fe:a9fe::]/",
		"https://user:password@as.example/", "https://as.example@evil.example/", "https:///path", "https://", "https://as.example/#fragment",
		"https://as.example/$(touch /tmp/x)", "https://as.example/\r\nX-Evil: 1", "https://as.example/ü", "https://as example/", "https://as.example/\x00", "--help", "-x https://as.example/",
		"https://%31%30.0.0.1/",
	}
}

// TestHostileEndpoints: for any metadata document, no request goes to a forbidden address, and the user gets only addresses
// of web pages.
func TestHostileEndpoints(t *testing.T) {
	const asm = "/.well-known/oauth-authorization-server/as"
	tried := 0
	for _, field := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"} {
		for _, address := range hostile() {
			if address == "" && strings.HasPrefix(field, "re") {
				continue // these may be left out
			}
			w := newWorld(t, Settings{})
			w.server.ChangeMetadata(asm, map[string]any{field: address})
			tried++
			if p, err := w.account.BeginLogin(t.Context(), false, func(context.Context) {}); err == nil {
				t.Errorf("%s %q: a login begins at %s", field, address, p.URL)
			} else if w.times("/authorize")+w.times("/token")+w.times("/register") != 0 {
				t.Errorf("%s %q: a request was sent to the authorization server", field, address)
			}
			w.account.cancelLogin()
		}
	}
	if tried < 40 {
		t.Errorf("%d documents were tried", tried)
	}
}

// TestHostileMetadata: the same for the address of the metadata.
func TestHostileMetadata(t *testing.T) {
	for _, address := range hostile() {
		w := newWorld(t, Settings{})
		w.server.ChangeMetadata("/.well-known/oauth-protected-resource/mcp", map[string]any{"authorization_servers": []string{address}})
		if p, err := w.account.BeginLogin(t.Context(), false, func(context.Context) {}); err == nil {
			t.Errorf("%q: a login begins at %s", address, p.URL)
		}
		w.account.mu.Lock()
		w.account.lastChallenge = bearerChallenge{metadata: address}
		w.account.mu.Unlock()
		w.server.ChangeMetadata("/.well-known/oauth-protected-resource/mcp", map[string]any{"authorization_servers": []string{w.server.BaseURL() + "/as"}})
		if _, err := w.account.BeginLogin(t.Context(), false, func(context.Context) {}); err == nil && address != "" {
			t.Errorf("%q: taken for the place of the metadata", address)
		}
		w.account.cancelLogin()
	}
}
