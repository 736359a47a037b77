package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/httpserver"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

const (
	callToolRead        = "call_tool_read"
	callToolWrite       = "call_tool_write"
	callToolDestructive = "call_tool_destructive"
	retrieveTools       = "retrieve_tools"
	readResult          = "read_result"
	upstreamServers     = "upstream_servers"
)

const testKey = "0123456789abcdef0123456789abcdef"

// fakeGateway answers with its functions, and stores the last requests.
type fakeGateway struct {
	call     func(context.Context, gate.LaneCall) (gate.CallResult, error)
	retrieve func(context.Context, ops.RetrieveRequest) (json.RawMessage, error)
	read     func(context.Context, ops.ReadResultRequest) (json.RawMessage, error)
	servers  []ops.ServerView
	usable   func() ([]ops.UsableServer, <-chan struct{})

	mu      sync.Mutex
	calls   []gate.LaneCall
	found   []ops.RetrieveRequest
	reads   []ops.ReadResultRequest
	added   []ops.AddServerRequest
	asked   []ops.Caller // of restart and add
	refused []gate.SurfaceRefusal
}

func (g *fakeGateway) UsableServers(*auth.Caller) ([]ops.UsableServer, <-chan struct{}) {
	if g.usable == nil {
		return nil, nil
	}
	return g.usable()
}

func (g *fakeGateway) PauseNotice() string { return "" }

func (g *fakeGateway) CallsPerServer(*auth.Caller) map[string]int64 { return nil }

func (g *fakeGateway) RecordRefusal(_ context.Context, r gate.SurfaceRefusal) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = append(g.refused, r)
	return "refusal"
}

func (g *fakeGateway) Call(ctx context.Context, r gate.LaneCall) (gate.CallResult, error) {
	g.mu.Lock()
	g.calls = append(g.calls, r)
	g.mu.Unlock()
	if g.call != nil {
		return g.call(ctx, r)
	}
	return gate.CallResult{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)}, nil
}

func (g *fakeGateway) RetrieveTools(ctx context.Context, r ops.RetrieveRequest) (json.RawMessage, error) {
	g.mu.Lock()
	g.found = append(g.found, r)
	g.mu.Unlock()
	if g.retrieve != nil {
		return g.retrieve(ctx, r)
	}
	return json.RawMessage(`{"query":"q","total":0,"tools":[]}`), nil
}

func (g *fakeGateway) ReadResult(ctx context.Context, r ops.ReadResultRequest) (json.RawMessage, error) {
	g.mu.Lock()
	g.reads = append(g.reads, r)
	g.mu.Unlock()
	if g.read != nil {
		return g.read(ctx, r)
	}
	return json.RawMessage(`{"text":"part"}`), nil
}

func (g *fakeGateway) Servers(context.Context, ops.Caller, ops.Nothing) (ops.ServerViews, error) {
	return ops.ServerViews{Servers: g.servers}, nil
}

func (g *fakeGateway) Server(_ context.Context, _ ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	for _, s := range g.servers {
		if s.Name == in.Name {
			return s, nil
		}
	}
	return ops.ServerView{}, problem.Newf(problem.ServerNotFound, "Server '%s' not found.", in.Name)
}

func (g *fakeGateway) RestartServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error) {
	g.asked = append(g.asked, c)
	return g.Server(ctx, c, in)
}

func (g *fakeGateway) AddServer(_ context.Context, c ops.Caller, s ops.AddServerRequest) (ops.ServerView, error) {
	g.asked, g.added = append(g.asked, c), append(g.added, s)
	if s.Name == "taken" {
		return ops.ServerView{}, problem.New(problem.Conflict, "There is a server with this name.", "Choose another one.")
	}
	return ops.ServerView{Name: s.Name, Protocol: "stdio", Enabled: true, Quarantined: true, State: "stopped", Command: s.Command, LastError: "said by the server", Failure: "EXITED: exit status 1"}, nil
}

func (g *fakeGateway) lastCall(t *testing.T) gate.LaneCall {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.calls) == 0 {
		t.Fatal("the gateway was not called")
	}
	return g.calls[len(g.calls)-1]
}

func (g *fakeGateway) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.calls)
}

// harness is a server over real HTTP.
type harness struct {
	t    *testing.T
	gw   *fakeGateway
	cfg  atomic.Pointer[config.Config]
	srv  *Server
	http *httptest.Server
	logs *lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newServer(gw BuiltinToolBackend, cfg func() *config.Config, logs io.Writer) *Server {
	logger := slog.New(slog.NewJSONHandler(logs, nil))
	w := session.NewReplyBuilder("1.2.3", logger)
	return New(Deps{BuiltIn: NewBuiltinTools(gw, cfg, w), Reply: w, Config: cfg, Auth: auth.NewAuthenticator(testKey, nil), Logger: logger,
		RecordRefusedCall: func(ctx context.Context, server string, r *session.Request, p *problem.Problem) {
			gw.RecordRefusal(ctx, gate.SurfaceRefusal{Caller: *r.Caller, Server: server, Problem: p})
		}})
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, gw: &fakeGateway{}, logs: &lockedBuffer{}}
	h.cfg.Store(&config.Config{MCPManagement: config.ManagePropose})
	h.srv = newServer(h.gw, h.cfg.Load, h.logs)
	h.http = httptest.NewServer(h.srv)
	t.Cleanup(func() {
		h.srv.Close()
		h.http.Close()
	})
	return h
}

// newPlainHarness is newHarness behind http1, as clients have it. stop waits for the
// handlers.
func newPlainHarness(t *testing.T) (h *harness, stop func()) {
	h = newHarness(t)
	h.http.Close()
	h.http = httptest.NewUnstartedServer(h.srv)
	l := httpserver.New(h.http.Listener, httpserver.Options{
		Handler: h.srv, Plain: func(string) bool { return true }, Base: func(net.Listener) context.Context { return context.Background() },
		HeaderTime: time.Minute, BodyTime: time.Minute, IdleTime: time.Minute, MaxConns: 40, Logger: slog.New(slog.DiscardHandler),
	})
	l.ApplyLimits(h.http.Config)
	h.http.Listener = l
	h.http.Start()
	stop = func() {
		if err := l.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop) // before the harness is closed
	return h, stop
}

// answer is a response with its body read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// do sends a request as it is. A header "Host" sets the host.
func (h *harness) do(method string, header map[string]string, body string) answer {
	h.t.Helper()
	req, err := http.NewRequest(method, h.http.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header[k] = []string{v} // the spelling as given
	}
	res, err := h.http.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{h.t, res.StatusCode, res.Header, data}
}

// post sends a body as JSON, with further headers.
func (h *harness) post(header map[string]string, body string) answer {
	h.t.Helper()
	all := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	for k, v := range header {
		if v == "-" {
			delete(all, k)
			continue
		}
		all[k] = v
	}
	return h.do(http.MethodPost, all, body)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"tester","version":"9"},"io.modelcontextprotocol/clientCapabilities":{}}`

// modern sends a valid request of the modern protocol. params has no _meta.
func (h *harness) modern(method, params string, header ...string) answer {
	h.t.Helper()
	all := map[string]string{mcp.HeaderVersion: mcp.Modern, mcp.HeaderMethod: method}
	var p struct{ Name, URI string }
	_ = json.Unmarshal([]byte("{"+params+"}"), &p)
	if method == "tools/call" {
		all[mcp.HeaderName] = p.Name
	}
	for i := 0; i+1 < len(header); i += 2 {
		all[header[i]] = header[i+1]
	}
	if params != "" {
		params += ","
	}
	return h.post(all, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+modernMeta+`}}`)
}

// callModern calls a built-in tool with the modern protocol.
func (h *harness) callModern(tool, args string) answer {
	h.t.Helper()
	return h.modern("tools/call", `"name":"`+tool+`","arguments":`+args)
}

// open opens a session of the legacy protocol.
func (h *harness) open(version string, header ...string) string {
	h.t.Helper()
	all := map[string]string{}
	for i := 0; i+1 < len(header); i += 2 {
		all[header[i]] = header[i+1]
	}
	a := h.post(all, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+version+
		`","capabilities":{},"clientInfo":{"name":"tester","version":"9"}}}`)
	a.is(http.StatusOK)
	id := a.header.Get(mcp.HeaderSession)
	if id == "" {
		h.t.Fatal("no session id")
	}
	return id
}

// legacy sends a request in a session; params complete.
func (h *harness) legacy(session, method, params string, header ...string) answer {
	h.t.Helper()
	all := map[string]string{mcp.HeaderSession: session}
	for i := 0; i+1 < len(header); i += 2 {
		all[header[i]] = header[i+1]
	}
	if params == "" {
		params = "{}"
	}
	return h.post(all, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":`+params+`}`)
}

func (h *harness) callLegacy(session, tool, args string) answer {
	h.t.Helper()
	return h.legacy(session, "tools/call", `{"name":"`+tool+`","arguments":`+args+`}`)
}

func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d; body %s", a.status, status, a.body)
	}
	return a
}

type rpcAnswer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (a answer) rpc() rpcAnswer {
	a.t.Helper()
	var m rpcAnswer
	if err := json.Unmarshal(a.body, &m); err != nil || m.JSONRPC != "2.0" {
		a.t.Fatalf("not a JSON-RPC message (%v): %s", err, a.body)
	}
	return m
}

// fails wants a JSON-RPC error.
func (a answer) fails(code int) rpcAnswer {
	a.t.Helper()
	m := a.rpc()
	if m.Error == nil || m.Error.Code != code || m.Error.Message == "" {
		a.t.Fatalf("want error %d: %s", code, a.body)
	}
	return m
}

type toolAnswer struct {
	ResultType string `json:"resultType"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StructuredContent json.RawMessage            `json:"structuredContent"`
	IsError           bool                       `json:"isError"`
	Meta              map[string]json.RawMessage `json:"_meta"`
}

// tool wants a result of tools/call.
func (a answer) tool() toolAnswer {
	a.t.Helper()
	m := a.is(http.StatusOK).rpc()
	if string(m.ID) != "7" || m.Result == nil {
		a.t.Fatalf("want a result: %s", a.body)
	}
	var r toolAnswer
	if err := json.Unmarshal(m.Result, &r); err != nil {
		a.t.Fatal(err)
	}
	return r
}

type problemAnswer struct {
	Code    problem.Code               `json:"code"`
	Message string                     `json:"message"`
	Hint    string                     `json:"hint"`
	Details map[string]json.RawMessage `json:"details"`
}

// refused wants a refusal.
func (a answer) refused(code problem.Code) problemAnswer {
	a.t.Helper()
	r := a.tool()
	var s struct {
		Error problemAnswer `json:"error"`
	}
	if err := json.Unmarshal(r.StructuredContent, &s); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	switch {
	case !r.IsError || s.Error.Code != code:
		a.t.Fatalf("want a refusal with %s: %s", code, a.body)
	case s.Error.Message == "" || len(r.Content) != 1 || !strings.HasPrefix(r.Content[0].Text+"\n", said(s.Error.Message, s.Error.Hint)):
		a.t.Fatalf("the text does not begin with message and hint: %s", a.body)
	}
	return s.Error
}

// said is the beginning of the text of a refusal.
func said(message, hint string) string {
	if hint != "" {
		message += "\nHint: " + hint
	}
	return message + "\n"
}

func shared(t testing.TB, path string) []byte {
	t.Helper()
	root := os.Getenv("MCPPROXY_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	data, err := os.ReadFile(filepath.Join(root, path))
	if os.IsNotExist(err) {
		t.Skipf("no %s: set MCPPROXY_SHARED to the folder with the shared data", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}
