package bridge

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

const patience = 10 * time.Second

// client is the side that starts a command: it writes and reads lines.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

// start runs a bridge to the handler.
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
	c := &client{t: t, in: inW, lines: make(chan string, 100), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := Run(ctx, Options{In: inR, Out: outW, Path: "/mcp", UserAgent: "test", Start: begin,
			Dial: func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", address())
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

// hear gives the next line, which must be JSON.
func (c *client) hear() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the output has ended")
		}
		if !json.Valid([]byte(line)) {
			c.t.Fatalf("no JSON in a line: %q", line)
		}
		return line
	case <-time.After(patience):
		c.t.Fatal("no line came")
	}
	return ""
}

func (c *client) expect(want string) {
	c.t.Helper()
	if got := c.hear(); got != want {
		c.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// end closes the input and wants a clean end.
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

// fake is a daemon with sessions.
type fake struct {
	mu        sync.Mutex
	sessions  map[string]chan string // what the stream of each is to say
	opened    int
	asked     []string // ids of requests that were answered
	told      []string // notifications and responses, in order
	headers   []http.Header
	arrived   chan string // requests that wait
	cancelled chan string
	ended     atomic.Int64
	lists     atomic.Int64
	mirror    atomic.Pointer[string] // the header that the tool weather wants
}

func newFake() *fake {
	f := &fake{sessions: map[string]chan string{}, arrived: make(chan string, 10), cancelled: make(chan string, 10)}
	city := "City"
	f.mirror.Store(&city)
	return f
}

// call refuses a call of the tool weather that does not mirror its argument.
func (f *fake) call(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	if name := r.Header.Get("Mcp-Name"); name == "weather" && r.Header.Get("Mcp-Param-"+*f.mirror.Load()) != "=?base64?WsO8cmljaA==?=" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"Header mismatch"}}`, id)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"method":"tools/call"}}`, id)
}

func (f *fake) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, stream := range f.sessions {
		close(stream)
		delete(f.sessions, id)
	}
}

func (f *fake) stream(id string) chan string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[id]
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Meta map[string]any `json:"_meta"`
		}
	}
	_ = json.Unmarshal(body, &m)
	f.mu.Lock()
	f.headers = append(f.headers, r.Header.Clone())
	f.mu.Unlock()
	stream := f.stream(id)
	switch {
	case r.Method == http.MethodDelete:
		f.ended.Add(1)
	case m.Method == "initialize":
		f.mu.Lock()
		f.opened++
		id = fmt.Sprint("session-", f.opened)
		f.sessions[id] = make(chan string, 10)
		f.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "{\"jsonrpc\":\"2.0\",\n \"id\":%s,\r\n \"result\":{\"protocolVersion\":\"2025-11-25\"}}", m.ID)
	case id != "" && stream == nil:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}`)
	case r.Method == http.MethodGet:
		f.talk(w, r, stream)
	case strings.HasPrefix(string(body), "["):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `[{"jsonrpc":"2.0","id":2,"result":{}}]`)
	case m.ID == nil || m.Method == "":
		f.mu.Lock()
		f.told = append(f.told, string(body))
		f.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	default:
		f.mu.Lock()
		f.asked = append(f.asked, string(m.ID))
		f.mu.Unlock()
		f.answer(w, r, m.Method, m.ID)
	}
}

func (f *fake) talk(w http.ResponseWriter, r *http.Request, stream chan string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case data, ok := <-stream:
			if !ok {
				return
			}
			fmt.Fprintf(w, "id: 7\ndata: %s\n\n", data)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) {
	switch method {
	case "wait", "subscriptions/listen":
		f.arrived <- string(id)
		<-r.Context().Done()
		f.cancelled <- string(id)
	case "stream":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"ask\",\"method\":\"elicitation/create\"}\n\n")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"big\":9007199254740993}}\n\n", id)
	case "cut":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
	case "refused":
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"too large"}}`)
	case "tools/call":
		f.call(w, r, id)
	case "tools/list":
		f.lists.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Mcp-Method") == "" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"method":%q}}`, id, method)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"weather","inputSchema":{"properties":{"city":{"type":"string","x-mcp-header":"%s"}}}}]}}`, id, *f.mirror.Load())
	case "page":
		io.WriteString(w, `<html>`)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"method":%q}}`, id, method)
	}
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

	f.stream("session-1") <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
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
		t.Errorf("told %q", f.told)
	}
	for _, h := range f.headers[1:] {
		if h.Get("Mcp-Session-Id") != "session-1" || h.Get("Mcp-Protocol-Version") != "2025-11-25" {
			t.Errorf("headers %v", h)
		}
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
	want := []string{"plain", "=?base64?c2Now7Zu?=", "=?base64?IGVkZ2U=?=", "=?base64?PT9iYXNlNjQ/eA==?=", ""}
	for i, h := range f.headers {
		if h.Get("Mcp-Name") != want[i] || h.Get("Mcp-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Method") == "" || h.Get("Mcp-Session-Id") != "" {
			t.Errorf("%d: headers %v", i, h)
		}
	}
	if f.ended.Load() != 0 {
		t.Error("a session was ended that there was not")
	}
}

func TestFailuresAreAnswered(t *testing.T) {
	c := start(t, newFake())
	c.greet()
	for _, tt := range []struct{ say, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"cut"}`, `"id":1,"error":{"code":-32603,"message":"MCPProxy gave no answer: the answer broke off.`},
		{`{"jsonrpc":"2.0","id":2,"method":"refused"}`, `"id":2,"error":{"code":-32600,"message":"too large"`},
		{`{"jsonrpc":"2.0","id":3,"method":"page"}`, `"id":3,"error":{"code":-32603,"message":"MCPProxy gave no answer: it answered with HTTP status 200 and no message of MCP.`},
		{`not JSON`, `"id":null,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":4}`, `"id":null,"error":{"code":-32600`},
	} {
		c.say(tt.say)
		got := c.hear()
		if strings.Contains(got, "notifications/progress") {
			got = c.hear()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.say, got)
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
	<-f.arrived // one that is cancelled before is not sent at all
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`)
	select {
	case <-f.cancelled:
	case <-time.After(patience):
		t.Fatal("the daemon does not hear of it")
	}
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"method":"ping"}}`)
	c.end()
}

// A daemon that was started anew does not know the session; the client need
// not know.
func TestDaemonStartedAnew(t *testing.T) {
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
	f.mu.Lock()
	f.asked = nil
	f.mu.Unlock()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"method":"ping"}}`)
	f.stream("session-2") <- `{"jsonrpc":"2.0","method":"notifications/message"}`
	c.expect(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	c.end()
	if f.opened != 2 {
		t.Errorf("%d sessions were opened", f.opened)
	}
	// What the client had asked of its session holds in the new one.
	slices.Sort(f.asked)
	if got := strings.Join(f.asked, " "); got != "12 14 2" {
		t.Errorf("asked in the new session: %s", got)
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
		t.Errorf("heard %v", heard)
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

func TestClientThatIsGone(t *testing.T) {
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
		t.Fatal("the bridge goes on without a client")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A tool that wants arguments in headers gets them, though the client has none,
// also when it wants others later.
func TestMirroredArguments(t *testing.T) {
	f := newFake()
	c := start(t, f)
	call := func(id int, tool, city string) {
		t.Helper()
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"city":%q},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, id, tool, city))
	}
	for id := range 3 {
		call(id, "weather", "Zürich")
		c.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"method":"tools/call"}}`, id))
	}
	if f.lists.Load() != 1 {
		t.Errorf("the tools were listed %d times", f.lists.Load())
	}
	town := "Town"
	f.mirror.Store(&town)
	call(3, "weather", "Zürich")
	c.expect(`{"jsonrpc":"2.0","id":3,"result":{"method":"tools/call"}}`)
	call(4, "weather", "Bern") // refused for another reason, and told so
	if got := c.hear(); !strings.Contains(got, `"id":4,"error":{"code":-32020`) {
		t.Error(got)
	}
	call(5, "other", "Bern")
	c.expect(`{"jsonrpc":"2.0","id":5,"result":{"method":"tools/call"}}`)
	c.end()
}
