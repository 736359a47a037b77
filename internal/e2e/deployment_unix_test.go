//go:build unix

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/testutil/pgtest"
	"mcpproxy/internal/testutil/volume"
)

// rotation is a reverse proxy with TLS in front of instances, as in the folder deploy. It sends the requests of a session
// to its instance, and the others to one after the other. An instance out of rotation gets no new requests. An instance
// that refuses a connection leaves the rotation, and another one gets the request.
type rotation struct {
	*httptest.Server
	turn atomic.Int64

	mu       sync.Mutex // guards what follows
	backends []*backend
}

type backend struct {
	url     *url.URL
	prefix  string // of its sessions
	out     bool
	running int
}

// take chooses an instance for a request.
func (p *rotation) take(session string) *backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := int(p.turn.Add(1))
	var chosen *backend
	for i := range p.backends {
		b := p.backends[(turn+i)%len(p.backends)]
		if !b.out && (chosen == nil || session != "" && strings.HasPrefix(session, b.prefix)) {
			chosen = b
		}
	}
	if chosen != nil {
		chosen.running++
	}
	return chosen
}

func (p *rotation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	b := p.take(r.Header.Get("Mcp-Session-Id"))
	if b == nil || err != nil {
		http.Error(w, fmt.Sprint("no instance: ", err), http.StatusBadGateway)
		return
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.running--
	}()
	r.Body = io.NopCloser(bytes.NewReader(body))
	proxy := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(b.url)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		p.mu.Lock()
		b.out = true
		p.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.ServeHTTP(w, r)
	}
	proxy.ServeHTTP(w, r)
}

// setOut takes an instance out of rotation or back.
func (p *rotation) setOut(i int, out bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backends[i].out = out
}

// awaitQuiet waits until an instance has no requests.
func (p *rotation) awaitQuiet(t *testing.T, i int) {
	t.Helper()
	eventually(t, "the requests of an instance end", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := p.backends[i].running; n > 0 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
}

// TestDeployment: the topology of the folder deploy as processes: its configuration, two instances, PostgreSQL, and a
// reverse proxy with TLS. Clients of both protocols call through the proxy while the instances are restarted one after
// the other. If an instance leaves the rotation first, no call fails. Otherwise only calls in flight do.
func TestDeployment(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Packages)
	const clients, sessions, apiKey = 8, 4, "key-of-the-deployment"
	database, up := pgtest.StartServer(t).CreateDatabase(t), startUpstream(t, noteTool)
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "mcp_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config := regexp.MustCompile(`"postgres:.*"`).ReplaceAllLiteralString(string(raw), fmt.Sprintf("%q", database))
	config = strings.NewReplacer("10.211.0.10", "127.0.0.1", `"mcpServers": {}`, fmt.Sprintf(`"mcpServers": {"m": {"url": %q}}`, up.URL)).Replace(config)
	if !strings.Contains(config, up.URL) || !strings.Contains(config, database) || !strings.Contains(config, "127.0.0.1\"]") {
		t.Fatalf("the configuration has another form: %s", config)
	}
	certificate, key := selfSigned(t, 1, "mcp.test")
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &rotation{}
	var all []*daemon
	for range 2 {
		d := startDaemon(t, config, "MCPPROXY_API_KEY="+apiKey, "MCPPROXY_PUBLIC_URL=https://mcp.test")
		if err := os.WriteFile(filepath.Join(d.dataDir(), "api_key"), []byte(apiKey+"\n"), 0o600); err != nil { // for d.rest
			t.Fatal(err)
		}
		instance, err := os.ReadFile(filepath.Join(d.dataDir(), "instance"))
		if err != nil {
			t.Fatal(err)
		}
		proxy.backends = append(proxy.backends, &backend{url: &url.URL{Scheme: "http", Host: d.address}, prefix: strings.TrimSpace(string(instance)) + "-"})
		all = append(all, d)
		awaitReady(d)
	}
	proxy.Server = httptest.NewUnstartedServer(proxy)
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	transport, _ := transportTo(proxy.Listener.Addr().String(), certificate)
	t.Cleanup(transport.CloseIdleConnections)
	through := withKey{transport, apiKey}
	calls := newMarkedCalls(t, "https://mcp.test")
	calls.client.Transport = through

	stop := make(chan struct{})
	var load sync.WaitGroup
	var sessionCalls, sessionLost atomic.Int64
	var drained atomic.Bool // the instances leave the rotation before they stop
	drained.Store(true)
	for range sessions {
		client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		s, err := client.Connect(within(t), &mcp.StreamableClientTransport{Endpoint: "https://mcp.test/mcp", DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: through}}, &mcp.ClientSessionOptions{ProtocolVersion: legacyRevision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				got, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool_read", Arguments: json.RawMessage(`{"name":"m:note","args":{"mark":"session"}}`)})
				cancel()
				switch {
				case err == nil && !got.IsError:
					sessionCalls.Add(1)
				case drained.Load():
					t.Errorf("a call of a session failed: %v %v", got, err)
					return
				case sessionLost.Add(1) > sessions*2:
					t.Errorf("too many calls of sessions failed, the last with %v %v", got, err)
					return
				}
			}
		})
	}
	load.Go(func() { calls.run(clients, 1<<30, stop) })
	progress := func() {
		t.Helper()
		before, sessionsBefore := calls.answered(), sessionCalls.Load()
		eventually(t, "the clients call", func() error {
			if calls.answered() < before+volume.FullOrQuick(500, 50) || sessionCalls.Load() < sessionsBefore+int64(volume.FullOrQuick(100, 10)) {
				return errors.New("few calls")
			}
			return nil
		})
	}
	progress()
	for i, d := range all { // as Kubernetes does
		proxy.setOut(i, true)
		proxy.awaitQuiet(t, i)
		d.stop()
		progress()
		d.start()
		awaitReady(d)
		proxy.setOut(i, false)
		progress()
	}
	calls.mu.Lock()
	lost := calls.lost
	calls.mu.Unlock()
	if len(lost) > 0 {
		t.Errorf("%d calls failed although no request was in flight at a stop: %v", len(lost), lost[0])
	}
	drained.Store(false)
	for i, d := range all { // without notice
		d.stop()
		progress()
		d.start()
		awaitReady(d)
		proxy.setOut(i, false)
		progress()
	}
	close(stop)
	load.Wait()
	if n := len(calls.lost); n > clients*len(all) {
		t.Errorf("%d calls failed, more than were in flight at the stops: %v", n, calls.lost[0])
	}
	calls.check(all[0])
	t.Logf("%d calls of sessions, %d failed at a stop without notice", sessionCalls.Load(), sessionLost.Load())
}
