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

// answer is the result that a client got for a call.
type answer int

const (
	nothing answer = iota // the daemon was not running
	acknowledged
	refused
	failed // any other error
)

// load has the clients and the server of a run.
type load struct {
	clients int
	gentle  bool // they pause after each call
	server  *httptest.Server
	stopped context.CancelFunc
	running sync.WaitGroup
	number  atomic.Int64

	mu      sync.Mutex
	told    map[string]answer
	reached map[string]int
	last    answer
}

const noteTool = `{"name":"note","description":"Notes a mark.","inputSchema":{"type":"object"}}`

func newLoad(clients int) *load {
	l := &load{clients: clients, told: map[string]answer{}, reached: map[string]int{}}
	l.server = httptest.NewServer(mcptest.New(mcptest.Options{Stateless: true, NoStream: true}, mcptest.Tool{Definition: noteTool, Handle: l.note}))
	return l
}

// note is the tool: it records each call, and sometimes returns a long result.
func (l *load) note(c *mcptest.Call) (json.RawMessage, error) {
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

func (l *load) config(more string) string {
	return fmt.Sprintf(`{%s"mcpServers":{"m":{"url":%q}}}`, more, l.server.URL)
}

func (l *load) close() {
	if l.stopped != nil {
		l.stop()
	}
	l.server.Close()
}

// begin starts the clients, until stop.
func (l *load) begin(ctx context.Context, address string) error {
	ctx, l.stopped = context.WithCancel(ctx)
	url := "http://" + address + "/mcp"
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
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
				case nothing:
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	return nil
}

func (l *load) stop() {
	l.stopped()
	l.running.Wait()
}

// refused returns nil if the last answer was a refusal.
func (l *load) refused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != refused {
		return errors.New("calls are made")
	}
	return nil
}

// client is a session.
type client struct {
	ctx     context.Context
	url     string
	session string
	http    *http.Client
}

func connect(ctx context.Context, url string) (*client, error) {
	c := &client{ctx: ctx, url: url, http: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
	resp, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"faultrun","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	c.session = resp.Header.Get("Mcp-Session-Id")
	return c, resp.Body.Close()
}

func (c *client) post(body string) (*http.Response, error) {
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

func (c *client) call(mark string, size int) answer {
	resp, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_write","arguments":`+
		`{"name":"m:note","args":{"mark":%q,"size":%d},"intent_reason":%q}}}`, mark, size, mark))
	if err != nil {
		return nothing
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nothing
	case bytes.Contains(body, []byte("AUDIT_UNAVAILABLE")):
		return refused
	case resp.StatusCode == http.StatusOK && bytes.Contains(body, []byte(mark)) && !bytes.Contains(body, []byte(`"isError":true`)) &&
		!bytes.Contains(body, []byte(`"error":`)):
		return acknowledged
	}
	return failed
}
