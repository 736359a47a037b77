package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
)

// countingTransport counts the initialize requests of all clients. Each run of the daemon has new connections, because
// a request on an old connection could be in flight at the restart.
type countingTransport struct {
	introductions atomic.Int64
	now           atomic.Pointer[http.Transport]
}

// renew makes later requests use new connections.
func (c *countingTransport) renew() {
	if old := c.now.Swap(&http.Transport{MaxIdleConnsPerHost: 64}); old != nil {
		old.CloseIdleConnections()
	}
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		if bytes.Contains(body, []byte(`"method":"initialize"`)) {
			c.introductions.Add(1)
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.now.Load().RoundTrip(r)
}

// restarts tells clients when the daemon is up. A call that overlaps with a restart may fail, all others must not.
type restarts struct {
	mu     sync.RWMutex // held for writing while the daemon restarts
	phase  atomic.Int64 // changes when a restart begins; mu is held
	done   atomic.Int64 // calls that were answered
	lost   atomic.Int64 // calls that overlapped with a restart and failed
	enough atomic.Int64 // clients stop when so many calls were answered
}

// call makes calls until enough were answered.
func (r *restarts) call(t *testing.T, call func(mark int64) error) {
	for r.done.Load() < r.enough.Load() && !t.Failed() {
		r.mu.RLock() // the daemon is up
		before := r.phase.Load()
		r.mu.RUnlock()
		err := call(r.done.Load())
		switch {
		case err == nil:
			r.done.Add(1)
		case r.phase.Load() == before:
			t.Errorf("a call failed while the daemon ran: %v", err)
		default:
			r.lost.Add(1)
		}
	}
}

// TestSessionsSurviveRestarts: twenty clients of the official Go SDK hold sessions on five addresses while the daemon is
// stopped or killed five times under load. No call fails but those in flight, and no client initializes again.
func TestSessionsSurviveRestarts(t *testing.T) {
	t.Parallel()
	const clients, lives = 20, 5
	perLife := int64(volume.FullOrQuick(4_000, 200)) // calls of all clients
	server := mcptest.New(mcptest.Options{}, mcptest.Tool{
		Definition: `{"name":"note","description":"Notes a mark.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			return fmt.Appendf(nil, `{"content":[{"type":"text","text":"noted %d"}]}`, c.IntArgument("mark", -1)), nil
		},
	})
	d := startDaemon(t, fmt.Sprintf(`{"profiles":{"p":{"servers":["m"]}},"mcpServers":{"m":{"url":%q,"trust":"auto"}}}`, mcptest.Serve(t, server).URL))
	d.awaitTools("m:note")
	count := &countingTransport{}
	count.renew()
	t.Cleanup(count.renew)
	connect := func(path string) *mcp.ClientSession {
		client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		// A daemon that starts on a busy machine may take longer than the five attempts of the default.
		s, err := client.Connect(within(t), &mcp.StreamableClientTransport{Endpoint: "http://" + d.address + path, MaxRetries: 100,
			HTTPClient: &http.Client{Transport: count}}, &mcp.ClientSessionOptions{ProtocolVersion: legacyRevision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	addresses := []struct{ path, tool, arguments string }{
		{"/mcp", "call_tool_read", `{"name":"m:note","args":{"mark":%d}}`},
		{"/mcp/all", "m__note", `{"mark":%d}`},
		{"/mcp/all/read", "m__note", `{"mark":%d}`},
		{"/mcp/p/p/all", "m__note", `{"mark":%d}`},
		{"/mcp/servers/m", "note", `{"mark":%d}`},
	}
	var r restarts
	calls := make([]func(mark int64) error, clients)
	var sessions []*mcp.ClientSession
	var ids []string
	for i := range calls {
		at := addresses[i%len(addresses)]
		s := connect(at.path)
		sessions, ids = append(sessions, s), append(ids, s.ID())
		calls[i] = func(mark int64) error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			got, err := s.CallTool(ctx, &mcp.CallToolParams{Name: at.tool, Arguments: json.RawMessage(fmt.Sprintf(at.arguments, mark))})
			if err != nil {
				return fmt.Errorf("%s: %w", at.path, err)
			}
			if text, _ := json.Marshal(got); got.IsError || !bytes.Contains(text, fmt.Appendf(nil, "noted %d", mark)) {
				return fmt.Errorf("%s: %s", at.path, text)
			}
			return nil
		}
	}
	r.enough.Store((lives + 1) * perLife)
	var load sync.WaitGroup
	for _, call := range calls {
		load.Go(func() { r.call(t, call) })
	}
	for life := range int64(lives) {
		eventually(t, "the clients call", func() error {
			if done := r.done.Load(); done < (life+1)*perLife && !t.Failed() {
				return fmt.Errorf("%d calls", done)
			}
			return nil
		})
		r.mu.Lock()
		r.phase.Add(1)
		if life%2 == 0 {
			d.stop()
		} else {
			d.kill()
		}
		d.start()
		count.renew()
		r.mu.Unlock()
	}
	load.Wait()
	for i, s := range sessions {
		if s.ID() != ids[i] {
			t.Errorf("%s has another session", addresses[i%len(addresses)].path)
		}
		if err := calls[i](int64(i)); err != nil {
			t.Error(err)
		}
	}
	if n := count.introductions.Load(); n != clients {
		t.Errorf("%d clients have sent initialize %d times", clients, n)
	}
	t.Logf("%d calls were answered; %d overlapped with a restart and failed", r.done.Load(), r.lost.Load())
}
