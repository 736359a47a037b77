package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpproxy/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// client is a fake MCP client that starts the command. It writes and reads lines.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	ended chan error
	left  chan struct{} // receives a value when the bridge closes a connection
}

// leaving is a connection that reports on left when it is closed.
type leaving struct {
	net.Conn
	left chan struct{}
}

func (c leaving) Close() error {
	select {
	case c.left <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}

// start runs a bridge that is connected to the handler.
func start(t *testing.T, daemon http.Handler) *client {
	t.Helper()
	server := httptest.NewServer(daemon)
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	return startAt(t, func() string { return address }, func(context.Context) error {
		return problem.New(problem.InvalidConfig, "The file is broken.", "Mend it.")
	})
}

func startAt(t *testing.T, address func() string, begin func(context.Context) error) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: t, in: inW, lines: make(chan string, 100), ended: make(chan error, 1), left: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := Run(ctx, Options{In: inR, Out: outW, Path: "/mcp", UserAgent: "test", Start: begin,
			Dial: func(ctx context.Context) (net.Conn, error) {
				nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", address())
				if err != nil {
					return nil, err
				}
				return leaving{nc, c.left}, nil
			}})
		outW.Close()
		c.ended <- err
	}()
	go func() {
		defer close(c.lines)
		scanner := bufio.NewScanner(outR)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			c.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		for range c.lines {
		}
	})
	return c
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the next line, which must be JSON.
func (c *client) hear() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the output has ended")
		}
		if !json.Valid([]byte(line)) {
			c.t.Fatalf("the line is not JSON: %q", line)
		}
		return line
	case <-time.After(patience):
		c.t.Fatal("got no line")
	}
	return ""
}

func (c *client) expect(want string) {
	c.t.Helper()
	if got := c.hear(); got != want {
		c.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// end closes the input and checks that the bridge ends without an error.
func (c *client) end() {
	c.t.Helper()
	c.in.Close()
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Errorf("the bridge ended with %v", err)
		}
	case <-time.After(patience):
		c.t.Fatal("the bridge does not end")
	}
}

// fake is a daemon that supports the line protocol.
type fake struct {
	mu        sync.Mutex
	conns     map[*fakeConn]bool
	opened    int
	asked     []string // ids of answered requests
	told      []string // received notifications and responses, in order
	heads     []http.Header
	arrived   chan string // requests that are waiting
	cancelled chan string
	ended     atomic.Int64  // connections with a session
	over      atomic.Int64  // number of requests to answer with "session has ended"
	ending    chan struct{} // signals that the end line was received
	release   chan struct{} // closed when held requests are to be answered
	deaf      atomic.Bool   // requests are not answered
}

// fakeConn is one connection.
type fakeConn struct {
	f  *fake
	nc net.Conn

	mu      sync.Mutex // guards the following fields, and orders the lines
	session bool
	waits   map[string]chan struct{}
	endless map[string]chan struct{} // those of waits that are endless requests
	running sync.WaitGroup
}

func newFake() *fake {
	return &fake{conns: map[*fakeConn]bool{}, arrived: make(chan string, 2*maxInFlight), cancelled: make(chan string, 10), ending: make(chan struct{}, 10), release: make(chan struct{})}
}

// forget closes all connections, as a restart of the daemon does.
func (f *fake) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.nc.Close()
	}
}

// broadcast sends a line to all clients with a session.
func (f *fake) broadcast(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if c.mu.Lock(); c.session {
			fmt.Fprintf(c.nc, "%s\n", line)
		}
		c.mu.Unlock()
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.heads = append(f.heads, r.Header.Clone())
	f.mu.Unlock()
	if r.Header.Get("Upgrade") != "mcpproxy-lines/1" || r.URL.Path != "/mcp" {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcpproxy-lines/1\r\n\r\n")
	c := &fakeConn{f: f, nc: nc, waits: map[string]chan struct{}{}, endless: map[string]chan struct{}{}}
	f.mu.Lock()
	f.conns[c] = true
	f.mu.Unlock()
	c.read(bufio.NewReader(rw))
	for _, wait := range c.waits {
		close(wait)
	}
	c.running.Wait()
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	if c.session {
		f.ended.Add(1)
	}
}

func (c *fakeConn) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.nc, format+"\n", args...)
}

func (c *fakeConn) read(in *bufio.Reader) {
	f, batches := c.f, 0
	var over []string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				RequestID json.RawMessage `json:"requestId"`
				Meta      map[string]any  `json:"_meta"`
			}
		}
		_ = json.Unmarshal([]byte(line), &m)
		switch {
		case line == "end":
			c.mu.Lock()
			for id, wait := range c.endless {
				close(wait)
				delete(c.waits, id)
			}
			c.mu.Unlock()
			f.ending <- struct{}{}
			c.running.Wait()
			return
		case f.deaf.Load() && m.Method != "initialize":
			f.arrived <- line
		case m.Method == "initialize":
			f.mu.Lock()
			f.opened++
			f.mu.Unlock()
			c.session = true
			c.say(`{"jsonrpc":"2.0",  "id":%s,   "result":{"protocolVersion":"2025-11-25"}}`, m.ID)
		case strings.HasPrefix(line, "["):
			batches++
			c.say(`batch %d [{"jsonrpc":"2.0","id":2,"result":{}}]`, batches)
		case m.Method == "notifications/cancelled":
			c.mu.Lock()
			if wait := c.waits[string(m.Params.RequestID)]; wait != nil {
				close(wait)
				delete(c.waits, string(m.Params.RequestID))
			}
			c.mu.Unlock()
		case m.ID == nil || m.Method == "":
			f.mu.Lock()
			f.told = append(f.told, line)
			f.mu.Unlock()
		case m.Params.Meta == nil && !c.session:
			c.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"no session"}}`, m.ID)
		case m.Params.Meta == nil && f.over.Load() > 0:
			if over = append(over, string(m.ID)); f.over.Add(-1) > 0 {
				continue
			}
			for i, id := range over {
				if i > 0 && i == len(over)-1 {
					<-f.ending
				}
				c.say(`over {"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"Session not found"}}`, id)
			}
			return
		default:
			f.mu.Lock()
			f.asked = append(f.asked, string(m.ID))
			f.mu.Unlock()
			if c.answer(m.Method, m.ID) {
				return
			}
		}
	}
}

// answer answers a request and reports whether the connection ends.
func (c *fakeConn) answer(method string, id json.RawMessage) (end bool) {
	switch method {
	case "wait", "subscriptions/listen":
		wait := make(chan struct{})
		c.mu.Lock()
		c.waits[string(id)] = wait
		if method == "subscriptions/listen" {
			c.endless[string(id)] = wait
		}
		c.mu.Unlock()
		c.f.arrived <- string(id)
		c.running.Go(func() {
			<-wait
			c.f.cancelled <- string(id)
			c.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"The request was cancelled."}}`, id)
		})
	case "held":
		c.running.Go(func() {
			<-c.f.release
			c.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		})
	case "stream":
		c.say(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
		c.say(`{"jsonrpc":"2.0","id":"ask","method":"elicitation/create"}`)
		c.say(`{"jsonrpc":"2.0","id":%s,"result":{"big":9007199254740993}}`, id)
	case "cut":
		c.say(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
		return true
	case "refused":
		c.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"too large"}}`, id)
	default:
		c.say(`{"jsonrpc":"2.0","id":%s,"result":{"method":%q}}`, id, method)
	}
	return false
}

const hello = `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`

func (c *client) greet() {
	c.t.Helper()
	c.say(hello)
	c.expect(`{"jsonrpc":"2.0",  "id":"h",   "result":{"protocolVersion":"2025-11-25"}}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func TestLegacySession(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"method":"tools/list"}}`)

	f.broadcast(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	c.expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)

	c.say(`{"jsonrpc":"2.0","id":2,"method":"stream"}`)
	c.expect(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
	c.expect(`{"jsonrpc":"2.0","id":"ask","method":"elicitation/create"}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"big":9007199254740993}}`)
	c.say(`{"jsonrpc":"2.0","id":"ask","result":{"action":"accept"}}`)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	c.expect(`{"jsonrpc":"2.0","id":3,"result":{"method":"ping"}}`)
	c.end()
	if f.ended.Load() != 1 {
		t.Error("the session was not ended")
	}
	if len(f.told) != 2 || !strings.Contains(f.told[1], `"action":"accept"`) {
		t.Errorf("received %q", f.told)
	}
	if len(f.heads) != 1 || f.heads[0].Get("User-Agent") != "test" {
		t.Errorf("headers %v", f.heads)
	}
}

func TestModernRequests(t *testing.T) {
	f := newFake()
	c := start(t, f)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for _, name := range []string{"plain", "schön", " edge", "=?base64?x"} {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":%q,%s}}`, name, meta))
		c.expect(`{"jsonrpc":"2.0","id":5,"result":{"method":"tools/call"}}`)
	}
	c.say(`{"jsonrpc":"2.0","id":6,"method":"server/discover","params":{` + meta + `}}`)
	c.hear()
	c.end()
	if got := strings.Join(f.asked, " "); got != "5 5 5 5 6" {
		t.Errorf("got requests %s", got)
	}
	if f.ended.Load() != 0 {
		t.Error("a session ended although none was opened")
	}
}

func TestFailuresAreAnswered(t *testing.T) {
	c := start(t, newFake())
	c.greet()
	for _, tt := range []struct{ say, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"cut"}`, `"id":1,"error":{"code":-32603,"message":"MCPProxy gave no answer: the answer broke off.`},
		{`{"jsonrpc":"2.0","id":2,"method":"refused"}`, `"id":2,"error":{"code":-32600,"message":"too large"`},
		{`not JSON`, `"id":null,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":4}`, `"id":null,"error":{"code":-32600`},
	} {
		c.say(tt.say)
		got := c.hear()
		if strings.Contains(got, "notifications/progress") {
			got = c.hear()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s", tt.say, got)
		}
	}
	c.say(strings.Repeat("x", maxLine+1))
	if got := c.hear(); !strings.Contains(got, "larger than 16 MiB") {
		t.Error(got)
	}
	c.end()
}

func TestCancellation(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":"w","method":"wait"}`)
	c.say(`{"jsonrpc":"2.0","id":"w","method":"wait"}`)
	if got := c.hear(); !strings.Contains(got, "Another request with this id") {
		t.Error(got)
	}
	<-f.arrived // a request that is cancelled earlier is not sent at all
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`)
	select {
	case <-f.cancelled:
	case <-time.After(patience):
		t.Fatal("the daemon did not receive the cancellation")
	}
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"method":"ping"}}`)
	c.end()
}

// TestDaemonRestart checks that the bridge restores the session after a restart of the daemon, without the client's
// involvement.
func TestDaemonRestart(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.hear()
	for _, say := range []string{
		`{"jsonrpc":"2.0","id":11,"method":"logging/setLevel","params":{"level":"info"}}`,
		`{"jsonrpc":"2.0","id":12,"method":"logging/setLevel","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","id":13,"method":"resources/subscribe","params":{"uri":"a"}}`,
		`{"jsonrpc":"2.0","id":14,"method":"resources/subscribe","params":{"uri":"b"}}`,
		`{"jsonrpc":"2.0","id":15,"method":"resources/unsubscribe","params":{"uri":"a"}}`,
	} {
		c.say(say)
		c.hear()
	}
	f.forget()
	<-c.left
	f.mu.Lock()
	f.asked = nil
	f.mu.Unlock()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"method":"ping"}}`)
	f.broadcast(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	c.expect(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	c.end()
	if f.opened != 2 {
		t.Errorf("got %d opened sessions, want 2", f.opened)
	}
	// The client's subscriptions and settings apply in the new session.
	slices.Sort(f.asked)
	if got := strings.Join(f.asked, " "); got != "12 14 2" {
		t.Errorf("requests in the new session: %s", got)
	}
}

func TestEndWaitsForAnswers(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.say(hello + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n" + `[{"jsonrpc":"2.0","id":2,"method":"ping"}]` + "\n" +
		`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	c.in.Close()
	heard := map[string]bool{}
	for range 3 {
		heard[c.hear()] = true
	}
	if !heard[`{"jsonrpc":"2.0","id":1,"result":{"method":"tools/list"}}`] || !heard[`[{"jsonrpc":"2.0","id":2,"result":{}}]`] {
		t.Errorf("received %v", heard)
	}
	c.end()
}

func TestStartsADaemon(t *testing.T) {
	server := httptest.NewServer(newFake())
	defer server.Close()
	var address atomic.Pointer[string]
	nowhere := "127.0.0.1:1"
	address.Store(&nowhere)
	var broken atomic.Bool
	broken.Store(true)
	c := startAt(t, func() string { return *address.Load() }, func(context.Context) error {
		if broken.Load() {
			return problem.New(problem.InvalidConfig, "The file is broken.", "Mend it.")
		}
		there := server.Listener.Addr().String()
		address.Store(&there)
		return nil
	})
	c.say(hello)
	c.expect(`{"jsonrpc":"2.0","id":"h","error":{"code":-32603,"message":"The file is broken. Mend it."}}`)
	c.say(`[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":9,"method":"ping"}]`)
	if got := c.hear(); !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":8,"error"`) || strings.Count(got, "broken") != 2 {
		t.Error(got)
	}
	broken.Store(false)
	c.greet()
	c.end()
}

func TestClientDisconnects(t *testing.T) {
	server := httptest.NewServer(newFake())
	defer server.Close()
	inR, inW := io.Pipe()
	defer inW.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(context.Background(), Options{In: inR, Out: brokenPipe{}, Path: "/mcp",
			Dial: func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
			}})
	}()
	io.WriteString(inW, hello+"\n")
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the bridge continues without a client")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestSessionIsReopened checks that the bridge reopens a session that its server has ended, and sends the failed
// request again.
func TestSessionIsReopened(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
	c.hear()
	f.over.Store(1)
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"method":"ping"}}`)
	c.end()
	if got := strings.Join(f.asked, " "); f.opened != 2 || got != "1 1 2" {
		t.Errorf("%d sessions, requests %s", f.opened, got)
	}
}

// TestReopenAfterEndOfInput checks the same for a request that fails after the end of the input.
func TestReopenAfterEndOfInput(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	f.over.Store(1)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.in.Close()
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"method":"ping"}}`)
	c.end()
}

// TestReopenForSeveralAfterEndOfInput checks that all of several requests that fail one after the other are answered.
// The end line remains the last line for the daemon.
func TestReopenForSeveralAfterEndOfInput(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	f.over.Store(2)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"held"}`)
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.in.Close()
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"method":"ping"}}`)
	close(f.release)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	c.end()
}

// TestEndWithClientThatDoesNotRead checks that a client that does not read does not prevent the command from ending.
func TestEndWithClientThatDoesNotRead(t *testing.T) {
	server := httptest.NewServer(newFake())
	defer server.Close()
	inR, inW := io.Pipe()
	defer inW.Close()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{In: inR, Out: outW, Path: "/mcp",
			Dial: func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
			}})
	}()
	io.WriteString(inW, hello+"\n")
	if _, err := io.ReadFull(outR, make([]byte, 5)); err != nil { // the bridge is writing
		t.Error(err)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the bridge waits for its client")
	}
	outR.Close()
}

// TestSilentClientGetsNotifications checks that the server's notifications arrive again after a restart, without a
// message of the client.
func TestSilentClientGetsNotifications(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.hear()
	f.forget()
	for opened := 1; opened < 2; time.Sleep(10 * time.Millisecond) {
		f.mu.Lock()
		opened = f.opened
		f.mu.Unlock()
	}
	f.broadcast(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	c.expect(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	c.end()
}

// TestDaemonEndsAmidRequests checks that each open request gets a response when the daemon ends.
func TestDaemonEndsAmidRequests(t *testing.T) {
	f := newFake()
	c := start(t, f)
	c.greet()
	f.deaf.Store(true)
	c.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	c.say(`[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping"}]`)
	for got := ""; !strings.HasPrefix(got, "["); got = <-f.arrived {
	}
	f.forget()
	heard := c.hear() + c.hear()
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"MCPProxy gave no answer`, `[{"jsonrpc":"2.0","id":3,"error"`, `"id":4,"error"`} {
		if !strings.Contains(heard, want) {
			t.Errorf("no %s in %s", want, heard)
		}
	}
	<-c.left
	f.deaf.Store(false)
	c.say(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	c.expect(`{"jsonrpc":"2.0","id":5,"result":{"method":"ping"}}`)
	c.end()
}

// TestOlderDaemon checks that the client gets an error with a fix if a daemon of an older version does not support the
// line protocol.
func TestOlderDaemon(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusMethodNotAllowed:   "The running MCPProxy has another version than this command",
		http.StatusServiceUnavailable: "Too many connections are open.",
		http.StatusOK:                 "HTTP status 200",
	} {
		c := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Too many connections are open.", status)
		}))
		c.say(hello)
		if got := c.hear(); !strings.Contains(got, `"id":"h","error"`) || !strings.Contains(got, want) {
			t.Errorf("status %d: %s", status, got)
		}
		c.end()
	}
}

// TestTooManyRequests checks that requests beyond the limit are rejected, each with its id.
func TestTooManyRequests(t *testing.T) {
	f := newFake()
	f.deaf.Store(true)
	c := start(t, f)
	c.greet()
	for id := range maxInFlight + 1 {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
	}
	if got := c.hear(); !strings.Contains(got, fmt.Sprintf(`"id":%d,"error"`, maxInFlight)) || !strings.Contains(got, "Too many requests are open") {
		t.Error(got)
	}
	c.say(`[{"jsonrpc":"2.0","id":"b","method":"ping"}]`)
	if got := c.hear(); !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":"b","error"`) || !strings.Contains(got, "Too many requests are open") {
		t.Error(got)
	}
}
