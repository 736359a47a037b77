//go:build unix

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// selfSigned creates a certificate for a host, which is its own authority.
func selfSigned(t *testing.T, serial int64, host string) (certificate, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour), DNSNames: []string{host}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// replaceFile replaces a file as certificate managers do.
func replaceFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// transportTo returns a transport whose connections all lead to an address, and counts them.
func transportTo(address string, trusted []byte) (*http.Transport, *atomic.Int64) {
	roots, dialled := x509.NewCertPool(), &atomic.Int64{}
	roots.AppendCertsFromPEM(trusted)
	return &http.Transport{MaxIdleConnsPerHost: 64, TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		dialled.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}, dialled
}

// TestTLSListener: a client calls over TLS. A new certificate serves new connections and does not end the old one; a
// broken one changes nothing and is reported.
func TestTLSListener(t *testing.T) {
	t.Parallel()
	dir, up := t.TempDir(), startUpstream(t, noteTool)
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	first, firstKey := selfSigned(t, 1, "mcp.test")
	second, secondKey := selfSigned(t, 2, "mcp.test")
	replaceFile(t, certificate, first)
	replaceFile(t, key, firstKey)
	d := startDaemon(t, fmt.Sprintf(`{"tls":{"certificate_file":%q,"key_file":%q},"public_url":"https://mcp.test","require_mcp_auth":true,"mcpServers":{"m":{"url":%q}}}`, certificate, key, up.URL))
	transport, dialled := transportTo(d.address, first)
	client := &http.Client{Timeout: patience, Transport: withKey{transport, d.key()}}
	call := func(mark string) {
		t.Helper()
		if err := callModern(client, "https://mcp.test", mark); err != nil {
			t.Errorf("%s: %v", mark, err)
		}
	}
	eventually(t, "the tool can be called", func() error { return callModern(client, "https://mcp.test", "first") })
	dialled.Store(0)
	call("before")
	replaceFile(t, certificate, second)
	replaceFile(t, key, secondKey)
	serves := func() (int64, error) {
		nc, err := tls.Dial("tcp", d.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0, err
		}
		defer nc.Close()
		return nc.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
	}
	eventually(t, "the new certificate is served", func() error {
		if serial, err := serves(); err != nil || serial != 2 {
			return fmt.Errorf("certificate %d, %v", serial, err)
		}
		return nil
	})
	call("after")
	if n := dialled.Load(); n != 0 {
		t.Errorf("the client has made %d new connections", n)
	}
	replaceFile(t, key, []byte("broken"))
	eventually(t, "the broken file is reported", func() error {
		_, out, _ := d.cli("doctor")
		if !strings.Contains(out, "cannot be used, the previous one stays") {
			return errors.New(out)
		}
		return nil
	})
	if serial, err := serves(); err != nil || serial != 2 {
		t.Errorf("with a broken file: certificate %d, %v", serial, err)
	}
	call("with a broken file")
	resp, err := http.Get("http://" + d.address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !bytes.Contains(text, []byte("requires TLS")) {
		t.Errorf("clear text: %s %s", resp.Status, text)
	}
}

// withKey sends a key with each request.
type withKey struct {
	http.RoundTripper
	key string
}

func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.key)
	return w.RoundTripper.RoundTrip(r)
}

// TestPublicURL: what MCPProxy writes has the public URL, and requests through a trusted proxy are accepted with its
// host and path.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"public_url":"https://mcp.example.com/proxy","trusted_proxies":["127.0.0.1"],"require_mcp_auth":true}`)
	_, out, _ := d.cli("status")
	for _, want := range []string{"https://mcp.example.com/proxy/mcp/all", "https://mcp.example.com/proxy/ui/", "http://" + d.address} {
		if !strings.Contains(out, want) {
			t.Errorf("status has no %s:\n%s", want, out)
		}
	}
	if code, out, note := d.cli("connect", "cursor", "--yes"); code != 0 {
		t.Errorf("%s %s", out, note)
	}
	entry, err := os.ReadFile(filepath.Join(d.dir, ".cursor", "mcp.json"))
	if err != nil || !strings.Contains(string(entry), `"https://mcp.example.com/proxy/mcp`) {
		t.Errorf("%s %v", entry, err)
	}
	if _, out, _ := d.cli("clients", "list"); !strings.Contains(out, "ursor") || strings.Contains(out, "another") {
		t.Errorf("%s", out)
	}
	signIn := `{"key":"` + d.key() + `"}`
	page := []string{"Sec-Fetch-Site: same-origin", "Content-Type: application/json"}
	for name, c := range map[string]struct {
		method, path, body, host string
		headers                  []string
		status                   int
		cookie                   string
	}{
		"public host":                 {host: "mcp.example.com", path: "/proxy/healthz", status: 200},
		"public host, path removed":   {host: "mcp.example.com", path: "/healthz", status: 200},
		"public host, other port":     {host: "mcp.example.com:8443", path: "/healthz", status: 200},
		"other host":                  {host: "evil.example", path: "/healthz", status: 403},
		"host that the proxy reports": {host: "10.0.0.1", path: "/healthz", headers: []string{"X-Forwarded-Host: mcp.example.com"}, status: 200},
		"other host of the proxy":     {host: "mcp.example.com", path: "/healthz", headers: []string{"X-Forwarded-Host: evil.example"}, status: 403},
		"both kinds of headers":       {host: "mcp.example.com", path: "/healthz", headers: []string{"X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4"}, status: 403},
		"both kinds of headers, MCP":  {method: "POST", host: "mcp.example.com", path: "/proxy/mcp", headers: []string{"X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4"}, status: 403},
		"MCP without a key":           {method: "POST", host: "mcp.example.com", path: "/proxy/mcp", headers: []string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, status: 401},
		"sign-in over TLS":            {method: "POST", host: "mcp.example.com", path: "/proxy/api/v1/session", body: signIn, headers: append(page, "X-Forwarded-Proto: https", "Origin: https://mcp.example.com"), status: 200, cookie: "Path=/proxy/api/v1; HttpOnly; Secure"},
		"sign-in from another page":   {method: "POST", host: "mcp.example.com", path: "/proxy/api/v1/session", body: signIn, headers: append(page, "X-Forwarded-Proto: https", "Origin: https://evil.example"), status: 403},
		"a login that does not wait":  {host: "mcp.example.com", path: "/proxy/oauth/callback?state=x&code=y", status: 400},
		"a login at a forged host":    {host: "evil.example", path: "/proxy/oauth/callback?state=x&code=y", status: 403},
	} {
		method := c.method
		if method == "" {
			method = http.MethodGet
		}
		req, err := http.NewRequest(method, "http://"+d.address+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		for _, line := range c.headers {
			key, value, _ := strings.Cut(line, ": ")
			req.Header.Set(key, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(resp.Header.Get("Set-Cookie"), c.cookie) {
			t.Errorf("%s: %s %v %.300s", name, resp.Status, resp.Header, text)
		}
	}
}
