package faultrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// callOutcome is the result that a client got for a call.
type callOutcome int

const (
	noAnswer callOutcome = iota // the daemon was not running
	acknowledged
	refused
	failed // any other error
)

// clientLoad has the clients and the server of a run.
type clientLoad struct {
	clients int
	gentle  bool // they pause after each call
	server  *httptest.Server
	stopped context.CancelFunc
	running sync.WaitGroup
	number  atomic.Int64

	mu      sync.Mutex
	told    map[string]callOutcome
	reached map[string]int
	last    callOutcome
}

const noteTool = `{"name":"note","description":"Notes a mark.","inputSchema":{"type":"object"}}`

func newClientLoad(clients int) *clientLoad {
	l := &clientLoad{clients: clients, told: map[string]callOutcome{}, reached: map[string]int{}}
	l.server = httptest.NewServer(mcptest.New(mcptest.Options{Stateless: true, NoStream: true}, mcptest.Tool{Definition: noteTool, Handle: l.handleNoteCall}))
	return l
}

// handleNoteCall is the tool: it records each call, and sometimes returns a long result.
func (l *clientLoad) handleNoteCall(c *mcptest.Call) (json.RawMessage, error) {
	var args struct {
		Mark string
		Size int
	}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.reached[args.Mark]++
	l.mu.Unlock()
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, args.Mark+strings.Repeat(" and so on", args.Size)), nil
}

func (l *clientLoad) formatConfig(more string) string {
	return fmt.Sprintf(`{%s"mcpServers":{"m":{"url":%q}}}`, more, l.server.URL)
}

func (l *clientLoad) close() {
	if l.stopped != nil {
		l.stopClients()
	}
	l.server.Close()
}

// startClients starts the clients, until stop.
func (l *clientLoad) startClients(ctx context.Context, address string) error {
	ctx, l.stopped = context.WithCancel(ctx)
	url := "http://" + address + "/mcp"
	for deadline := time.Now().Add(daemonTimeout); ; time.Sleep(10 * time.Millisecond) {
		c, err := connect(ctx, url)
		if err == nil && c.call("awaited", 0) == acknowledged {
			l.told["awaited"] = acknowledged
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server cannot be called: %w", err)
		}
	}
	for range l.clients {
		c, err := connect(ctx, url)
		if err != nil {
			return err
		}
		l.running.Go(func() {
			for ctx.Err() == nil {
				n := l.number.Add(1)
				mark := fmt.Sprintf("mark-%d", n)
				size := 0
				if n%50 == 0 {
					size = int(n % 3000)
				}
				got := c.call(mark, size)
				l.mu.Lock()
				l.told[mark], l.last = got, got
				l.mu.Unlock()
				if l.gentle {
					time.Sleep(5 * time.Millisecond)
				}
				switch got {
				case refused, failed:
					time.Sleep(2 * time.Millisecond) // a client that is refused does not spin
				case noAnswer:
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	return nil
}

func (l *clientLoad) stopClients() {
	l.stopped()
	l.running.Wait()
}

// checkLastRefused returns nil if the last answer was a refusal.
func (l *clientLoad) checkLastRefused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != refused {
		return errors.New("calls are made")
	}
	return nil
}

// mcpClient is a session.
type mcpClient struct {
	ctx     context.Context
	url     string
	session string
	http    *http.Client
}

func connect(ctx context.Context, url string) (*mcpClient, error) {
	c := &mcpClient{ctx: ctx, url: url, http: &http.Client{Timeout: daemonTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
	resp, err := c.postMessage(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"faultrun","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	c.session = resp.Header.Get("Mcp-Session-Id")
	return c, resp.Body.Close()
}

func (c *mcpClient) postMessage(body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	return c.http.Do(req)
}

func (c *mcpClient) call(mark string, size int) callOutcome {
	resp, err := c.postMessage(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_write","arguments":`+
		`{"name":"m:note","args":{"mark":%q,"size":%d},"intent_reason":%q}}}`, mark, size, mark))
	if err != nil {
		return noAnswer
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return noAnswer
	case bytes.Contains(body, []byte("AUDIT_UNAVAILABLE")):
		return refused
	case resp.StatusCode == http.StatusOK && bytes.Contains(body, []byte(mark)) && !bytes.Contains(body, []byte(`"isError":true`)) &&
		!bytes.Contains(body, []byte(`"error":`)):
		return acknowledged
	}
	return failed
}
