//go:build unix

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// slowFiles is the limit of open files for the daemon of TestSlowConnections. It allows half as many connections.
const slowFiles = 400

// slowly are the first bytes that the attackers send. After that they send a byte now and then. None of them has an API
// key.
var slowly = []string{
	"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{",
	"POST /api/v1/tools/call HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{",
	"PUT /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 250000\r\n\r\n{",
	"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n",
	"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-",
	"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: 1000000\r\n\r\n{",
	"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n{",
	"POST /api/v1/tools/call HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{",
	"",
}

// slowPause is the time before an attacker reconnects.
const slowPause = 2 * time.Second

// TestSlowConnections: local processes without credentials hold and reopen more connections than the daemon has slots.
// Clients that send complete requests are not affected, on open connections, on new ones and over REST. The test does
// not run in parallel, because it compares the duration of calls.
func TestSlowConnections(t *testing.T) {
	upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.SampleTools()...))
	limited := []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, slowFiles), "sh"}
	d := startDaemonUnder(t, limited, `{"mcpServers":{"srv":{"url":"`+upstream.URL+`","trust":"auto"}}}`)
	d.awaitTools("srv:echo")
	clients := d.behaving()
	quiet := clients.callFor(time.Second)
	quiet.check(t, "quiet")

	ctx, cancel := context.WithCancel(context.Background())
	var attack sync.WaitGroup
	var open, ended atomic.Int64
	for i := range 3 * slowFiles / 4 {
		attack.Go(func() { d.slow(ctx, slowly[i%len(slowly)], &open, &ended) })
	}
	loud := clients.callFor(4 * time.Second)
	loud.check(t, "under attack")
	t.Logf("%d slow connections at the end, %d were closed; p99 %v, without attackers %v", open.Load(), ended.Load(), loud.p99(), quiet.p99())
	// This bound is lenient because other tests may run at the same time. `go run ./bench slow` checks the real
	// listener.
	if loud.p99() > 2*quiet.p99()+250*time.Millisecond {
		t.Errorf("p99 %v, without attackers %v", loud.p99(), quiet.p99())
	}
	cancel()
	attack.Wait()
}

// TestSlowSocket: slow connections on the socket do not block the command line.
func TestSlowSocket(t *testing.T) {
	t.Parallel()
	limited := []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, slowFiles), "sh"}
	d := startDaemonUnder(t, limited, `{"mcpServers":{}}`)
	for i := range slowFiles {
		nc, err := net.Dial("unix", filepath.Join(d.dataDir(), "mcpproxy.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		_, _ = io.WriteString(nc, slowly[i%len(slowly)]) // the daemon may have closed it
	}
	if code, _, stderr := d.cli("status"); code != 0 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// slow holds a connection by sending little, and reopens it when the daemon closes it.
func (d *daemon) slow(ctx context.Context, raw string, open, ended *atomic.Int64) {
	for ctx.Err() == nil {
		nc, err := net.Dial("tcp", d.address)
		if err != nil {
			continue
		}
		open.Add(1)
		stop := context.AfterFunc(ctx, func() { nc.Close() })
		_, err = io.WriteString(nc, raw)
		tick := time.NewTicker(50 * time.Millisecond)
		for err == nil && ctx.Err() == nil {
			<-tick.C
			_, err = io.WriteString(nc, "1")
		}
		tick.Stop()
		stop()
		nc.Close()
		open.Add(-1)
		ended.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(slowPause):
		}
	}
}

// behaving are clients that send complete requests.
type behaving []func() error

func (d *daemon) behaving() behaving {
	call := func(client *http.Client, url, body string, header ...string) func() error {
		return func() error {
			req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(header); i += 2 {
				req.Header.Set(header[i], header[i+1])
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err == nil && (resp.StatusCode != http.StatusOK || !strings.Contains(string(answer), "well")) {
				err = fmt.Errorf("status %d: %.200s", resp.StatusCode, answer)
			}
			return err
		}
	}
	client := func(keep bool) *http.Client {
		return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: !keep}}
	}
	agent := d.legacy()
	mcp, rest := "http://"+d.address+"/mcp", "http://"+d.address+"/api/v1/tools/call"
	session := []string{"Mcp-Session-Id", agent.session, "Mcp-Protocol-Version", legacyRevision}
	message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":{"name":"srv:echo","args":{"well":1}}}}`
	operation := `{"tool_variant":"call_tool_read","name":"srv:echo","args":{"well":1}}`
	return behaving{
		call(client(true), mcp, message, session...), call(client(false), mcp, message, session...),
		call(client(true), rest, operation, "X-API-Key", d.key()), call(client(false), rest, operation, "X-API-Key", d.key()),
	}
}

// calls contains the durations of calls and their errors.
type calls struct {
	took []time.Duration
	errs []error
}

// callFor lets all clients call concurrently, each at a steady pace.
func (b behaving) callFor(long time.Duration) calls {
	var mu sync.Mutex
	var all calls
	var wg sync.WaitGroup
	for _, call := range b {
		wg.Go(func() {
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			for end := time.Now().Add(long); time.Now().Before(end); <-pace.C {
				began := time.Now()
				err := call()
				mu.Lock()
				all.took = append(all.took, time.Since(began))
				if err != nil {
					all.errs = append(all.errs, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}

func (c calls) check(t *testing.T, when string) {
	t.Helper()
	if len(c.errs) > 0 {
		t.Errorf("%s: %d of %d calls failed, the first with %v", when, len(c.errs), len(c.took), c.errs[0])
	}
}

func (c calls) p99() time.Duration {
	sorted := slices.Sorted(slices.Values(c.took))
	return sorted[len(sorted)*99/100]
}
