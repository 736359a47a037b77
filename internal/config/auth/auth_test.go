package auth_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/config/auth"
)

const key = "mcpp_0123456789abcdef0123456789abcdef"

func who(a *auth.Authenticator, r *http.Request) auth.Actor {
	actor, _, _ := a.IdentifyRequest(r)
	return actor
}

func TestActor(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers [][2]string
		url     string
		want    auth.Kind
	}{
		{"nothing presented", nil, "/", auth.Agent},
		{"the key", [][2]string{{"X-API-Key", key}}, "/", auth.Admin},
		{"the key as bearer", [][2]string{{"Authorization", "Bearer " + key}}, "/", auth.Admin},
		{"the scheme in any case", [][2]string{{"authorization", "bearer  " + key + " "}}, "/", auth.Admin},
		{"both", [][2]string{{"X-API-Key", key}, {"Authorization", "Bearer " + key}}, "/", auth.Admin},
		{"a wrong key", [][2]string{{"X-API-Key", key + "0"}}, "/", auth.Nobody},
		{"a part of the key", [][2]string{{"X-API-Key", key[:20]}}, "/", auth.Nobody},
		{"an empty key", [][2]string{{"X-API-Key", ""}}, "/", auth.Nobody},
		{"a wrong bearer", [][2]string{{"Authorization", "Bearer wrong"}}, "/", auth.Nobody},
		{"an empty bearer", [][2]string{{"Authorization", "Bearer"}}, "/", auth.Nobody},
		{"one right and one wrong", [][2]string{{"X-API-Key", key}, {"Authorization", "Bearer wrong"}}, "/", auth.Nobody},
		{"one header twice, once wrong", [][2]string{{"X-API-Key", key}, {"X-API-Key", "wrong"}}, "/", auth.Nobody},
		{"another scheme", [][2]string{{"Authorization", "Basic " + key}}, "/", auth.Agent},
		{"the key without a scheme", [][2]string{{"Authorization", key}}, "/", auth.Agent},
		{"the key in the URL", nil, "/?api_key=" + key + "&apikey=" + key + "&key=" + key + "&token=" + key, auth.Agent},
		{"the key in the userinfo", nil, "http://admin:" + key + "@127.0.0.1/", auth.Agent},
		{"the key in a cookie", [][2]string{{"Cookie", "api_key=" + key}}, "/", auth.Agent},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, c.url, nil)
			for _, h := range c.headers {
				r.Header.Add(h[0], h[1])
			}
			if got := who(auth.NewAuthenticator(key, nil), r); got.Kind != c.want {
				t.Errorf("got %s, want kind %d", got, c.want)
			}
		})
	}
}

// TestNoKey checks that without a configured key no key is accepted, including the empty one.
func TestNoKey(t *testing.T) {
	for _, presented := range []string{"", " ", key} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-API-Key", presented)
		if got := who(auth.NewAuthenticator("", nil), r); got.Kind != auth.Nobody {
			t.Errorf("key %q gives %s", presented, got)
		}
		if got := who(new(auth.Authenticator), r); got.Kind != auth.Nobody {
			t.Errorf("key %q gives %s with a zero Authenticator", presented, got)
		}
	}
}

func TestActorString(t *testing.T) {
	for want, a := range map[string]auth.Actor{
		"nobody": {}, "agent": {Kind: auth.Agent}, "agent:ci": {Kind: auth.Agent, Name: "ci"}, "admin": {Kind: auth.Admin},
	} {
		if a.String() != want {
			t.Errorf("%+v is %q, want %q", a, a, want)
		}
	}
	if s := (auth.Actor{Kind: 9}).String(); s != "nobody" {
		t.Errorf("an unknown kind is %q", s)
	}
}

// TestSocket checks that only the listener decides whether a connection belongs to the user.
func TestSocket(t *testing.T) {
	a := auth.NewAuthenticator(key, nil)
	srv := &http.Server{ConnContext: auth.MarkSocketConn, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, who(a, r).String())
	})}
	t.Cleanup(func() { _ = srv.Close() })
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0"} {
		ln, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = srv.Serve(ln) }()
		want := map[string]string{"unix": "admin", "tcp": "agent"}[network]
		if got := get(t, ln.Addr()); got != want {
			t.Errorf("over %s: got %q, want %q", network, got, want)
		}
	}
	if auth.IsFromSocket(context.Background()) || !auth.IsFromSocket(auth.WithSocketMark(context.Background())) {
		t.Error("IsFromSocket does not report the mark")
	}
}

func get(t *testing.T, addr net.Addr) string {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, addr.Network(), addr.String())
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://mcpproxy/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestKeyIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	first, err := auth.LoadOrCreateKey(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != len("mcpp_")+64 || !strings.HasPrefix(first, "mcpp_") {
		t.Errorf("the key has %d characters or another prefix", len(first))
	}
	again, err := auth.LoadOrCreateKey(dir, "")
	if err != nil || again != first {
		t.Errorf("the second start returned another key (%v)", err)
	}
	info, err := os.Stat(filepath.Join(dir, auth.KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if other, err := auth.LoadOrCreateKey(t.TempDir(), ""); err != nil || other == first {
		t.Errorf("two data directories have the same key (%v)", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("leftover files: %v", files)
	}
}

func TestConfiguredKeyWins(t *testing.T) {
	dir := t.TempDir()
	got, err := auth.LoadOrCreateKey(dir, key)
	if err != nil || got != key {
		t.Errorf("got %q, %v", got, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("the configured key was written: %v", files)
	}
	for _, bad := range []string{"hunter2", strings.Repeat("x", 600), "with a space in it", "with-a-newline\n-in-it", "schlüssel-schlüssel"} {
		if _, err := auth.LoadOrCreateKey(dir, bad); err == nil {
			t.Errorf("the key %q is accepted", bad)
		} else if strings.Contains(err.Error(), bad) {
			t.Errorf("the error contains the key: %v", err)
		}
	}
}

func TestKeyFileIsClosedToOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), auth.KeyFile)
	if err := os.WriteFile(path, []byte(key+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := auth.LoadOrCreateKey(filepath.Dir(path), ""); err != nil || got != key {
		t.Errorf("got %q, %v", got, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// TestBrokenKeyFile checks that an existing file is not replaced automatically.
func TestBrokenKeyFile(t *testing.T) {
	for _, content := range []string{"", "\n", "short", "two words and more", strings.Repeat("x", 5000)} {
		path := filepath.Join(t.TempDir(), auth.KeyFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.LoadOrCreateKey(filepath.Dir(path), ""); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%.10q: got %v", content, err)
		}
		if after, _ := os.ReadFile(path); string(after) != content {
			t.Errorf("%.10q was replaced", content)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, auth.KeyFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.LoadOrCreateKey(dir, ""); err == nil {
		t.Error("a directory is accepted as the key file")
	}
	if _, err := auth.LoadOrCreateKey(filepath.Join(dir, auth.KeyFile, "file", "\x00"), ""); err == nil {
		t.Error("an impossible data directory causes no error")
	}
}

// TestKeyRace checks that processes that start at the same time agree on one key.
func TestKeyRace(t *testing.T) {
	dir := t.TempDir()
	keys := make([]string, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			k, err := auth.LoadOrCreateKey(dir, "")
			if err != nil {
				t.Error(err)
			}
			keys[i] = k
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] || k == "" {
			t.Fatalf("different keys: %q", keys)
		}
	}
}

func BenchmarkActor(b *testing.B) {
	a := auth.NewAuthenticator(key, nil)
	for name, header := range map[string]string{"no key": "", "key": key} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			if header != "" {
				r.Header.Set("X-API-Key", header)
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = a.IdentifyRequest(r)
			}
		})
	}
}
